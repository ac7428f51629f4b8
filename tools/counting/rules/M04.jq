# Hosts with a wide VM whose power policy is not High performance.
include "estate";
[placed | select(.vcpus > 8 and .host.policy != "static") | .host.id] | unique
