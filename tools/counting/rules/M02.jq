# Hosts whose running VMs have, with one more that it holds, more memory than it has.
include "estate";
[placed
  | select(.beside and (.memory_mb + ([.beside[].memory_mb] | add // 0)) > .host.memory_mb)
  | .host.id] | unique
