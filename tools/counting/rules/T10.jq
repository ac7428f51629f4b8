# More vCPUs than the host has cores.
include "estate";
[placed | select(.vcpus > .host.cores) | .id]
