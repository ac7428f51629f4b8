# What govc object.collect prints of VMs, hosts and clusters, as one list of VMs with their host and cluster.
# A property's list comes as {"_value": [...]}, and one that govc has no type for as it is.

def items: if type == "object" and has("_value") then ._value else . end // [];

def objects($kind):
  [.[] | select(.obj.type == $kind)
    | {id: .obj.value} + (.changeSet | map({key: .name, value: .val}) | from_entries)];

def release: split(".") | [.[0], .[1]] | map(tonumber);

# A host by its NUMA nodes: the cores and the memory of the smallest. Before API 8.0 nodes show no size (memoryRangeLength is
# that of one of their ranges): then each has an equal part of the host's memory.
def host_facts:
  (.["hardware.cpuInfo"].numCpuThreads / .["hardware.cpuInfo"].numCpuCores) as $threads_a_core
  | .["hardware.numaInfo"].numaNode as $nodes
  | (.["hardware.memorySize"] / ($nodes | length) | floor) as $part
  | {
      id,
      release: (.["config.product.version"] | release),
      packages: .["hardware.cpuInfo"].numCpuPackages,
      cores: .["hardware.cpuInfo"].numCpuCores,
      hyper_threading: ($threads_a_core > 1),
      nodes: ($nodes | length),
      node_cores: ($nodes | map((.cpuID | length) / $threads_a_core) | min),
      node_mb: ($nodes | map(if (.memorySize // 0) > 0 then .memorySize else $part end / 1048576 | floor) | min),
      memory_mb: (.["hardware.memorySize"] / 1048576),
      policy: .["config.powerSystemInfo.currentPolicy.shortName"],
      vms: (.vm | items | map(.value))
    };

def vm_facts:
  ((.config.extraConfig // []) | map({key, value}) | from_entries) as $keys
  | {
      id: .config.instanceUuid,
      moid: .id,
      host: (.["runtime.host"].value // ""),
      on: (.["runtime.powerState"] == "poweredOn"),
      vcpus: .config.hardware.numCPU,
      per_socket: .config.hardware.numCoresPerSocket,
      automatic: (.config.hardware.autoCoresPerSocket // false),
      memory_mb: .config.hardware.memoryMB,
      reserved_mb: .config.memoryAllocation.reservation,
      locked: .config.memoryReservationLockedToMax,
      hot_add: .config.cpuHotAddEnabled,
      exposed: (.config.numaInfo.vnumaOnCpuHotaddExposed // false),
      pinned: (.config.cpuAffinity.affinitySet // []),
      memory_pinned: (.config.memoryAffinity.affinitySet // []),
      latency: (.config.latencySensitivity.level // "normal"),
      stored_node: ($keys["numa.autosize.vcpu.maxPerVirtualNode"] // "" | if . == "" then null else tonumber end),
      windows: ($keys["guestInfo.detailed.data"] // ""),
      keys: $keys
    }
  | .sockets = .vcpus / .per_socket;

# The whole: every VM that shows its configuration; a host that is not connected shows what it was, and counts not.
def estate:
  (objects("HostSystem")
    | map(select(.["runtime.connectionState"] == "connected") | host_facts)
    | map({key: .id, value: .}) | from_entries) as $hosts
  | objects("ClusterComputeResource") as $clusters
  | (objects("VirtualMachine") | map(select(.config and (.config.template | not)) | vm_facts)) as $vms
  | ($vms | map({key: .moid, value: .}) | from_entries) as $by_moid
  | ($clusters | map(
      {id, drs: (.configurationEx.drsConfig.enabled // false),
       overrides: ((.configurationEx.drsVmConfig // []) | map({key: .key.value, value: .enabled}) | from_entries)}
      + {hosts: [.host | items | .[].value | $hosts[.] // empty]})) as $clusters
  | ($clusters | map(. as $cluster | .hosts[] | {key: .id, value: ($cluster | {id, drs, overrides, hosts})})
      | from_entries) as $cluster_of
  | [$vms[]
      | ($hosts[.host] // null) as $host
      | ($cluster_of[.host] // null) as $cluster
      | .host = $host
      | .cluster = $cluster
      # None where the host holds a VM that does not show itself: then nobody knows what runs there.
      | .beside = (if $host and ($host.vms | all(. as $moid | $by_moid | has($moid)))
                   then .moid as $own | [$host.vms[] | select(. != $own) | $by_moid[.] | select(.on)
                     | {moid, memory_mb}]
                   else null end)];

# The VMs whose host can be judged.
def placed: .[] | select(.host);

# As few host NUMA nodes as have a core for each vCPU.
def nodes_needed: (.vcpus / .host.node_cores) | ceil;

# The nodes of a VM that nobody set a node size for, on ESXi 6.5 and later: one below nine vCPUs; else what an earlier
# power-on stored, or what the host needs.
def sized_nodes:
  if .vcpus < 9 then 1
  elif .stored_node then (.vcpus / .stored_node) | ceil
  else nodes_needed end;

# What the guest gets: one node under CPU hot-add that hides the others.
def guest_nodes:
  if .hot_add and ((.host.release >= [8, 0] and .exposed) | not) then 1 else sized_nodes end;
