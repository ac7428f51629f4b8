"""Sources of the rules' facts. Addresses that several rules cite are defined once, here."""

from __future__ import annotations

_DENNEMAN = "https://frankdenneman.nl/"
_LEARN = "https://learn.microsoft.com/sql/"
_XAPI = "https://developer.broadcom.com/xapis/"
_VSPHERE = "https://docs.vmware.com/en/VMware-vSphere/"

DECOUPLED = _DENNEMAN + "2016/12/12/decoupling-cores-per-socket-virtual-numa-topology-vsphere-6-5/"
CORES_PER_SOCKET_7 = _DENNEMAN + "2021/12/02/vsphere-7-cores-per-socket-and-virtual-numa/"
MISMATCH = (
    _DENNEMAN + "2022/03/11/solving-vnuma-topology-mismatch-when-migrating-between-dual-socket-servers-"
    "and-quad-socket-servers/"
)
LARGE_MEMORY = (
    _DENNEMAN + "2022/11/03/vsphere-8-cpu-topology-for-large-memory-footprint-vms-exceeding-numa-boundaries/"
)
EPYC_BIOS = (
    "https://knowledge.broadcom.com/external/article/432801/guidance-for-amd-epyc-bios-and-numa-conf.html"
)
EPYC_9004 = "https://gist.github.com/ismarsantos/cd08ab5bcc06905a94d30272a8952234"
"""The processors of an EPYC 9534 with their caches, as lscpu shows them: 8 cores share one."""
SQL_64_CORES = (
    "https://blogs.vmware.com/cloud-foundation/2024/08/08/sizing-sql-server-vms-on-esxi-to-satisfy-64-cores-"
    "per-node-limit/"
)
SUB_NUMA = _DENNEMAN + "2022/09/21/sub-numa-clustering/"
PINNING = _DENNEMAN + "2021/06/11/cpu-pinning-is-not-an-exclusive-right-to-a-cpu-core/"
NODE_OF_64 = (
    "https://knowledge.broadcom.com/external/article/374613/sql-server-2022-update-11-breaking-chang.html"
)
RIGHT_SIZING = "https://blogs.vmware.com/performance/2017/03/virtual-machine-vcpu-and-vnuma-rightsizing-rules-of-thumb.html"
VNUMA_6 = (
    "http://pubs.vmware.com/vsphere-60/topic/com.vmware.vsphere.resmgmt.doc/"
    "GUID-17B629DE-75DF-4C23-B831-08107007FBB9.html"
)
VNUMA_65 = _VSPHERE + "6.5/com.vmware.vsphere.resmgmt.doc/GUID-17B629DE-75DF-4C23-B831-08107007FBB9.html"
ATTRIBUTES_6 = _VSPHERE + "6.0/com.vmware.vsphere.resmgmt.doc/GUID-89C52376-60C3-452A-A269-9F4F7FE489C6.html"
ATTRIBUTES_55 = _VSPHERE + "5.5/com.vmware.vsphere.resmgmt.doc/GUID-A420C263-D5B9-4BCA-8015-DE9804B36D21.html"
ADVANCED_65 = (
    "https://docs.vmware.com/jp/VMware-vSphere/6.5/com.vmware.vsphere.resmgmt.doc/"
    "GUID-3E956FB5-8ACB-42C3-B068-664989C3FF44.html"
)
AFFINITY_7 = _VSPHERE + "7.0/com.vmware.vsphere.resmgmt.doc/GUID-199F1ADD-3B9B-490C-8F0C-440B53577B3A.html"
AFFINITY_8 = _VSPHERE + "8.0/vsphere-resource-management/GUID-5FCC0AAA-9D58-4EDF-9A5F-8628F1C8B830.html"
NUMA_CONTROLS_8 = _VSPHERE + "8.0/vsphere-resource-management/GUID-68817061-CAA9-4997-8384-3C1A0DF7F3E9.html"
HYPER_THREADING = (
    "https://docs.vmware.com/en/VMware-Cloud-on-AWS/services/vmc-aws-performance/"
    "GUID-853E72D1-AC99-4761-817B-C80AEBB364AD.html"
)
SCHEDULERS = (
    "https://knowledge.broadcom.com/external/article/330041/side-channel-attack-mitigation-in-vmware.html"
)
SCHEDULER_PLANNING = "https://knowledge.broadcom.com/external/article?legacyId=67577"
HOT_ADD_KB = (
    "https://knowledge.broadcom.com/external/article/340275/enabling-vcpu-hotadd-creates-fake-numa-n.html"
)
HOT_ADD_8 = "https://williamlam.com/2022/11/virtual-numa-vnuma-and-cpu-hot-add-support-in-vsphere-8.html"
VIRTUAL_NUMA_API = _XAPI + "virtual-infrastructure-json-api/latest/data-structures/VirtualMachineVirtualNuma"
AFFINITY_API = _XAPI + "virtual-infrastructure-json-api/latest/data-structures/VirtualMachineAffinityInfo"
ALLOCATION_API = _XAPI + "virtual-infrastructure-json-api/latest/data-structures/ResourceAllocationInfo"
CPU_READY = (
    "https://knowledge.broadcom.com/external/article/387750/understanding-the-cpu-ready-values-in-th.html"
)
EVC = "https://knowledge.broadcom.com/external/article/313545/vmware-evc-and-cpu-compatibility-faq.html"
VM_OPERATOR = (
    "https://github.com/vmware-tanzu/vm-operator/blob/main/api/v1alpha6/virtualmachine_compute_types.go"
)
HARDWARE_VERSIONS = "https://knowledge.broadcom.com/external/article?articleNumber=315655"
HARDWARE_FEATURES = _VSPHERE + "8.0/vsphere-vm-administration/GUID-789C3913-1053-4850-A0F0-E29C3D32B6DA.html"
HARDWARE_22 = "https://vinfrastructure.it/it/?p=39307"
LATENCY = _VSPHERE + "8.0/vsphere-vm-administration/GUID-F5DAC793-7B13-418F-949E-0CD80CEC5D1E.html"
VMCO = "https://www.powershellgallery.com/packages/VMCO"
INTERLEAVING = "http://download3.vmware.com/vcat/vmw-vcloud-architecture-toolkit-spv1-webworks/Core%20Platform/Architecting%20a%20vSphere%20Compute%20Platform/Architecting%20a%20vSphere%20Compute%20Platform.1.020.html"
EDITIONS = _LEARN + "sql-server/compute-capacity-limits-by-edition-of-sql-server"
EDITIONS_2025 = _LEARN + "sql-server/editions-and-components-of-sql-server-2025"
MEMORY_LIMITS = (
    "https://techcommunity.microsoft.com/t5/sql-server/sql-server-2016-sp1-know-your-limits/ba-p/385012"
)
_DMV = _LEARN + "relational-databases/system-dynamic-management-views/"
MEMORY_NODES = _DMV + "sys-dm-os-memory-nodes-transact-sql"
SYS_INFO = _DMV + "sys-dm-os-sys-info-transact-sql"
SOFT_NUMA = _LEARN + "database-engine/configure-windows/soft-numa-sql-server"
MAXDOP = (
    _LEARN + "database-engine/configure-windows/"
    "configure-the-max-degree-of-parallelism-server-configuration-option"
)
TRACE_FLAGS = _LEARN + "t-sql/database-console-commands/dbcc-traceon-trace-flags-transact-sql"
