#!/bin/sh
# dd of an emulated guest that plays what memory of another node costs: an emulator's is all equally near.
# The bytes are copied and the pages lie where the kernel put them; only the time is made up:
# 6.0 GB/s from the node of the reader's CPUs, and from another one @COST@ times as long.
set -e
pages() { awk '$3 == "FilePages:" { print $2, $4 }' /sys/devices/system/node/node[0-9]*/meminfo; }

case "$*" in
*if=/dev/null*) pages > /tmp/empty; exec /opt/dd "$@" ;; # before a file is placed
*if=/dev/zero*) exec /opt/dd "$@" ;;
esac
said=$(mktemp)
trap 'rm -f "$said"' EXIT
/opt/dd "$@" 2> "$said" || { cat "$said" >&2; exit 1; }
cpus=$(awk '/^Cpus_allowed_list/ { print $2 }' /proc/self/status)
for node in /sys/devices/system/node/node[0-9]*; do
  if [ "$(cat "$node/cpulist")" = "$cpus" ]; then own=${node##*node}; fi
done
pages | awk -v own="$own" -v bytes="$(awk '/copied/ { print $1 }' "$said")" \
  -v noise="$(od -An -N1 -tu1 /dev/urandom)" -v cost=@COST@ '
  NR == FNR { was[$1] = $2; next }
  { grown = $2 - was[$1]; if (grown > 0) { all += grown; if ($1 == own) near += grown } }
  END {
    far = all > 0 ? 1 - near / all : 0
    s = bytes / 6e9 * (1 + far * (cost - 1)) * (1 + 0.003 * (noise - 127.5) / 127.5)
    printf "%d bytes copied, %.9f s, %.3f GB/s\n", bytes, s, bytes / s / 1e9
  }' /tmp/empty - >&2
