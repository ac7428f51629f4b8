# Windows before build 20348 that has, or may be given, more than 64 CPUs.
include "estate";
[.[]
  | select(.windows | test("buildNumber='[0-9]+'"))
  | select((.windows | capture("buildNumber='(?<build>[0-9]+)'").build | tonumber) < 20348)
  | select(.vcpus > 64 or .hot_add)
  | .id]
