# VMs with more memory than their host; hosts whose running VMs have, with one more that it holds, more than it has.
include "estate";
[placed
  | if .memory_mb > .host.memory_mb then .id
    elif .beside and (.memory_mb + ([.beside[].memory_mb] | add // 0)) > .host.memory_mb then .host.id
    else empty end] | unique
