# Pinned to as many CPUs as it has vCPUs: none is left for its other worlds.
include "estate";
[.[] | select((.pinned | length) == .vcpus) | .id]
