package vcenter

import (
	"slices"
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

type spec = types.VirtualMachineConfigSpec

const offVM = "vms: [{name: sql16, power: off}]"

func option(key, value string) types.BaseOptionValue {
	return &types.OptionValue{Key: key, Value: value}
}

func affinityTo(cpus ...int32) *types.VirtualMachineAffinityInfo {
	return &types.VirtualMachineAffinityInfo{AffinitySet: cpus}
}

func everySecond(count int) []int32 {
	var cpus []int32
	for cpu := range count {
		cpus = append(cpus, int32(cpu*2))
	}
	return cpus
}

func TestARunningVMKeepsItsTopology(t *testing.T) {
	l := startLab(t, "")
	before := l.read().Config.ChangeVersion
	for name, change := range map[string]spec{
		"vCPUs":            {NumCPUs: 8},
		"cores per socket": {NumCoresPerSocket: number(int32(8))},
		"affinity":         {CpuAffinity: affinityTo(everySecond(16)...)},
		"memory":           {MemoryMB: 32768},
		"CPU hot-add":      {CpuHotAddEnabled: number(true)},
		"memory hot-add":   {MemoryHotAddEnabled: number(true)},
	} {
		t.Run(name, func(t *testing.T) { wantFault[types.InvalidPowerState](t, l.reconfigure(change)) })
	}
	if after := l.read().Config.ChangeVersion; after != before {
		t.Errorf("refused changes left version %s, was %s", after, before)
	}
	l.must(l.reconfigure(spec{NumCPUs: 16, NumCoresPerSocket: number(int32(4)), MemoryMB: 65536}))
}

func TestHotAddAllowsGrowthOnly(t *testing.T) {
	l := startLab(t, "vms: [{name: sql16, cpu_hot_add: true, memory_hot_add: true}]")
	l.must(l.reconfigure(spec{NumCPUs: 20, MemoryMB: 69632}))
	wantFault[types.InvalidPowerState](t, l.reconfigure(spec{NumCPUs: 16}))
	wantFault[types.InvalidPowerState](t, l.reconfigure(spec{MemoryMB: 65536}))
}

// Providers send all that they know: what is so already is no change, anything else is refused by its name.
func TestWhatIsSoAlreadyIsAccepted(t *testing.T) {
	l := startLab(t, offVM)
	so := spec{
		NestedHVEnabled: number(false), CpuHotRemoveEnabled: number(false), Tools: &types.ToolsConfigInfo{SyncTimeWithHost: number(false)},
		Flags: &types.VirtualMachineFlagInfo{DiskUuidEnabled: number(false)}, BootOptions: &types.VirtualMachineBootOptions{EnterBIOSSetup: number(false)},
	}
	l.must(l.reconfigure(so))
	for field, change := range map[string]spec{
		"nestedHVEnabled": {NestedHVEnabled: number(true)}, "flags": {Flags: &types.VirtualMachineFlagInfo{DiskUuidEnabled: number(true)}},
		"bootOptions": {BootOptions: &types.VirtualMachineBootOptions{BootDelay: 5}}, "swapPlacement": {SwapPlacement: "hostLocal"},
	} {
		t.Run(field, func(t *testing.T) { wantFault[types.NotSupported](t, l.reconfigure(change)) })
	}
}

func TestImpossibleConfigurationsAreRefused(t *testing.T) {
	l := startLab(t, offVM)
	for _, c := range []struct {
		name, property string
		change         spec
	}{
		{"indivisible", "spec.numCoresPerSocket", spec{NumCoresPerSocket: number(int32(3))}},
		{"negative vCPUs", "spec.numCPUs", spec{NumCPUs: -4}},
		{"negative cores", "spec.numCoresPerSocket", spec{NumCoresPerSocket: number(int32(-1))}},
		{"automatic before hardware 20", "spec.numCoresPerSocket", spec{NumCoresPerSocket: number(int32(0))}},
		{"affinity beyond the host", "spec.cpuAffinity", spec{CpuAffinity: affinityTo(append(everySecond(15), 64)...)}},
		{"affinity too small", "spec.cpuAffinity", spec{CpuAffinity: affinityTo(0, 1)}},
		{"affinity by repetition", "spec.cpuAffinity", spec{CpuAffinity: affinityTo(append(everySecond(15), 0)...)}},
		{"memory affinity beyond the host", "spec.memoryAffinity", spec{MemoryAffinity: affinityTo(2)}},
		{"odd memory", "spec.memoryMB", spec{MemoryMB: 65537}},
		{"reservation above memory", "spec.memoryAllocation.reservation", spec{MemoryAllocation: &types.ResourceAllocationInfo{Reservation: number(int64(65537))}}},
		{"reservation above the host", "spec.memoryAllocation.reservation",
			spec{MemoryMB: 262144, MemoryAllocation: &types.ResourceAllocationInfo{Reservation: number(int64(200000))}}},
		{"limit below -1", "spec.memoryAllocation.limit", spec{MemoryAllocation: &types.ResourceAllocationInfo{Limit: number(int64(-2))}}},
		{"CPU reservation above the host", "spec.cpuAllocation.reservation", spec{CpuAllocation: &types.ResourceAllocationInfo{Reservation: number(int64(1 << 30))}}},
		{"virtualNuma before 8.0", "spec.virtualNuma", spec{VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: number(int32(4))}}},
	} {
		t.Run(c.name, func(t *testing.T) { wantArgument(t, l.reconfigure(c.change), c.property) })
	}
	wantFault[types.NumVirtualCpusNotSupported](t, l.reconfigure(spec{NumCPUs: 100000}))
	wantFault[types.NotSupported](t, l.reconfigure(spec{BootOptions: &types.VirtualMachineBootOptions{BootDelay: 5}}))
}

func TestARefusedReconfigureChangesNothing(t *testing.T) {
	l := startLab(t, offVM)
	err := l.reconfigure(spec{
		Annotation: "half", NumCoresPerSocket: number(int32(8)), ExtraConfig: []types.BaseOptionValue{option("numa.vcpu.min", "8")},
		MemoryAllocation: &types.ResourceAllocationInfo{Reservation: number(int64(-5))},
	})
	wantArgument(t, err, "spec.memoryAllocation.reservation")
	config := l.read().Config
	if config.Annotation != "" || *config.Hardware.NumCoresPerSocket != 4 || len(config.ExtraConfig) != 0 {
		t.Errorf("partly applied: %q, %d cores per socket, %d keys", config.Annotation, *config.Hardware.NumCoresPerSocket, len(config.ExtraConfig))
	}
}

func TestAnEmptyAffinityClearsIt(t *testing.T) {
	l := startLab(t, offVM)
	cpus := everySecond(16)
	l.must(l.reconfigure(spec{CpuAffinity: affinityTo(cpus...), MemoryAffinity: affinityTo(1)}))
	if config := l.read().Config; !slices.Equal(config.CpuAffinity.AffinitySet, cpus) || !slices.Equal(config.MemoryAffinity.AffinitySet, []int32{1}) {
		t.Fatalf("read back %v and %v", config.CpuAffinity, config.MemoryAffinity)
	}
	wantArgument(t, l.reconfigure(spec{NumCPUs: 32}), "spec.cpuAffinity")
	l.must(l.reconfigure(spec{CpuAffinity: affinityTo(), MemoryAffinity: affinityTo()}))
	if config := l.read().Config; config.CpuAffinity != nil || config.MemoryAffinity != nil {
		t.Errorf("after clearing: %v and %v, want unset", config.CpuAffinity, config.MemoryAffinity)
	}
}

func TestAllocationsKeepWhatIsNotSent(t *testing.T) {
	l := startLab(t, "")
	l.must(l.reconfigure(spec{MemoryAllocation: &types.ResourceAllocationInfo{Reservation: number(int64(1024))}}))
	got := l.read().Config.MemoryAllocation
	if *got.Reservation != 1024 || *got.Limit != -1 || got.Shares.Level != types.SharesLevelNormal || got.Shares.Shares != 655360 {
		t.Errorf("got %d, %d, %+v", *got.Reservation, *got.Limit, got.Shares)
	}
}

func TestALockedReservationFollowsTheMemory(t *testing.T) {
	l := startLab(t, offVM)
	l.must(l.reconfigure(spec{MemoryReservationLockedToMax: number(true)}))
	l.must(l.reconfigure(spec{MemoryMB: 32768}))
	if got := *l.read().Config.MemoryAllocation.Reservation; got != 32768 {
		t.Errorf("reservation %d, want the memory of 32768", got)
	}
	lower := &types.ResourceAllocationInfo{Reservation: number(int64(0))}
	wantArgument(t, l.reconfigure(spec{MemoryAllocation: lower}), "spec.memoryAllocation.reservation")
	l.must(l.reconfigure(spec{MemoryReservationLockedToMax: number(false), MemoryAllocation: lower}))
}

func TestExtraConfig(t *testing.T) {
	l := startLab(t, "")
	l.must(l.reconfigure(spec{ExtraConfig: []types.BaseOptionValue{
		option("numa.vcpu.min", "8"), option("vnuma.run", "r1"),
		option("cpuid.coresPerSocket", "2"), option("sched.cpu.affinity", "1,2"), option("sched.mem.min", "5"),
	}}))
	if got := optionMap(l.read().Config.ExtraConfig); len(got) != 2 || got["numa.vcpu.min"] != "8" || got["vnuma.run"] != "r1" {
		t.Errorf("stored %v: typed fields own the other keys", got)
	}
	l.must(l.reconfigure(spec{ExtraConfig: []types.BaseOptionValue{option("vnuma.run", "")}}))
	if got := optionMap(l.read().Config.ExtraConfig); len(got) != 1 {
		t.Errorf("an empty value deletes; left %v", got)
	}
}

func TestAStaleChangeVersionIsRefused(t *testing.T) {
	l := startLab(t, "")
	first := l.read().Config.ChangeVersion
	l.must(l.reconfigure(spec{Annotation: "one", ChangeVersion: first}))
	if l.read().Config.ChangeVersion == first {
		t.Fatal("a reconfigure left the version as it was")
	}
	wantFault[types.ConcurrentAccess](t, l.reconfigure(spec{Annotation: "two", ChangeVersion: first}))
	if got := l.read().Config.Annotation; got != "one" {
		t.Errorf("annotation %q, want the first writer's", got)
	}
}

func TestTopologyFieldsOfVSphere8(t *testing.T) {
	l := startLab(t, `{esxi: {version: "8.0.3"}, vms: [{name: sql16, power: off}]}`)
	info := l.read().Config.NumaInfo
	if info == nil || !*info.AutoCoresPerNumaNode {
		t.Fatalf("at first: %+v, want automatic", info)
	}
	l.must(l.reconfigure(spec{VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: number(int32(8)), ExposeVnumaOnCpuHotadd: number(true)}}))
	info = l.read().Config.NumaInfo
	if *info.CoresPerNumaNode != 8 || *info.AutoCoresPerNumaNode || !*info.VnumaOnCpuHotaddExposed {
		t.Errorf("read back %d, %v, %v", *info.CoresPerNumaNode, *info.AutoCoresPerNumaNode, *info.VnumaOnCpuHotaddExposed)
	}
	l.must(l.reconfigure(spec{NumCoresPerSocket: number(int32(0)), VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: number(int32(0))}}))
	config := l.read().Config
	if !*config.Hardware.AutoCoresPerSocket || *config.Hardware.NumCoresPerSocket != 1 || !*config.NumaInfo.AutoCoresPerNumaNode {
		t.Errorf("0 is automatic: %+v", config.Hardware)
	}
	wantArgument(t, l.reconfigure(spec{NumCoresPerSocket: number(int32(0))}), "spec.numCoresPerSocket")
	l.must(l.powerOn())
	if config := l.read().Config; *config.Hardware.NumCoresPerSocket != 16 || *config.NumaInfo.CoresPerNumaNode != 16 {
		t.Errorf("power-on assigned %d and %d, want 16 and 16", *config.Hardware.NumCoresPerSocket, *config.NumaInfo.CoresPerNumaNode)
	}
}

func TestAManualNodeSizeThatDoesNotFitFailsThePowerOn(t *testing.T) {
	l := startLab(t, `{esxi: {version: "8.0"}, vms: [{name: sql16, power: off, cores_per_socket: 4}]}`)
	for _, size := range []int32{3, 12} { // 12 is a multiple of 4, but does not divide 16
		l.must(l.reconfigure(spec{VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: &size}}))
		wantFault[types.GenericVmConfigFault](t, l.powerOn())
	}
	l.must(l.reconfigure(spec{NumCPUs: 24, NumCoresPerSocket: number(int32(8)), VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: number(int32(12))}}))
	wantFault[types.GenericVmConfigFault](t, l.powerOn()) // 12 is neither a multiple nor a divisor of 8
	l.must(l.reconfigure(spec{VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: number(int32(4))}}))
	l.must(l.powerOn())
}

// As recorded of 8.0: old virtual hardware shows what it cannot set, and what a power-on assigned goes with it.
func TestESXi8ShowsTheTopologyOfOldHardware(t *testing.T) {
	l := startLab(t, "esxi: {version: \"8.0.3\"}\nvms: [{name: sql16, hardware: 10, power: off}]")
	info := l.read().Config.NumaInfo
	if info == nil || info.CoresPerNumaNode != nil || !isTrue(info.AutoCoresPerNumaNode) || l.read().Config.Hardware.AutoCoresPerSocket == nil {
		t.Errorf("off: %+v", info)
	}
	wantArgument(t, l.reconfigure(spec{VirtualNuma: &types.VirtualMachineVirtualNuma{CoresPerNumaNode: number(int32(8))}}), "spec.virtualNuma")
	l.must(l.powerOn())
	if info = l.read().Config.NumaInfo; info.CoresPerNumaNode == nil {
		t.Error("on: a power-on assigned nothing")
	}
	l.must(l.powerOff())
	if info = l.read().Config.NumaInfo; info.CoresPerNumaNode != nil {
		t.Errorf("off again: %d cores in a node", *info.CoresPerNumaNode)
	}
}
