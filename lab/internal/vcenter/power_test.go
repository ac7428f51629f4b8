package vcenter

import (
	"slices"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"
)

const slowBoot = "boot: {tools_seconds: 30, sql_seconds: 0, shutdown_seconds: 30}\n"

func TestAtTheStartTheVMRunsAndSQLListens(t *testing.T) {
	l := startLab(t, "")
	vm := l.read()
	if vm.Runtime.PowerState != poweredOn || vm.Guest.GuestState != "running" || vm.Runtime.BootTime == nil {
		t.Errorf("power %s, guest %s, boot time %v", vm.Runtime.PowerState, vm.Guest.GuestState, vm.Runtime.BootTime)
	}
	if !l.service.answers() {
		t.Error("the service in the guest does not answer")
	}
	if boot := l.service.lastBoot(); boot.Number != 1 || boot.Sockets != 4 || !slices.Equal(sizes(boot), []int{4, 4, 4, 4}) || boot.FullyReserved {
		t.Errorf("first boot %+v", boot)
	}
}

func TestACycleShutsDownReconfiguresAndBoots(t *testing.T) {
	l := startLab(t, "")
	l.must(l.vm.ShutdownGuest(l.ctx))
	l.wait("runtime.powerState", poweredOff)
	vm := l.read()
	if vm.Guest.ToolsRunningStatus != "guestToolsNotRunning" || vm.Guest.IpAddress != "" || vm.Runtime.BootTime != nil {
		t.Errorf("the guest's state survived the power-off: %s, %q, %v", vm.Guest.ToolsRunningStatus, vm.Guest.IpAddress, vm.Runtime.BootTime)
	}
	if l.service.answers() {
		t.Error("the service answers with the VM off")
	}
	l.must(l.reconfigure(spec{
		NumCPUs: 16, NumCoresPerSocket: number(int32(8)), MemoryReservationLockedToMax: number(true), CpuAffinity: affinityTo(everySecond(16)...),
	}))
	l.must(l.powerOn())
	l.waitForTools()
	l.eventually("the service answers", l.service.answers)
	boot := l.service.lastBoot()
	if boot.Number != 2 || boot.Sockets != 2 || !slices.Equal(sizes(boot), []int{8, 8}) || !boot.FullyReserved ||
		!slices.Equal(boot.HostNodes, []int{0, 0}) || !slices.Equal(boot.Affinity, everySecond(16)) {
		t.Errorf("second boot %+v", boot)
	}
}

func TestPowerStatesAreHeld(t *testing.T) {
	l := startLab(t, "")
	wantFault[types.InvalidPowerState](t, l.powerOn())
	l.must(l.powerOff())
	wantFault[types.InvalidPowerState](t, l.powerOff())
	wantFault[types.InvalidPowerState](t, l.vm.ShutdownGuest(l.ctx))
}

func TestGuestOperationsNeedTools(t *testing.T) {
	l := startLab(t, slowBoot)
	l.must(l.powerOff())
	l.must(l.powerOn())
	wantFault[types.ToolsUnavailable](t, l.vm.ShutdownGuest(l.ctx))
	wantFault[types.ToolsUnavailable](t, l.vm.RebootGuest(l.ctx))
}

func TestAPowerOffCancelsABootUnderWay(t *testing.T) {
	l := startLab(t, "boot: {tools_seconds: 0.5, sql_seconds: 0, shutdown_seconds: 0}")
	started := l.service.started()
	l.must(l.powerOff())
	l.must(l.powerOn())
	l.must(l.powerOff())
	l.must(l.reconfigure(spec{Annotation: "still off"}))
	time.Sleep(700 * time.Millisecond) // longer than the boot would have taken
	if l.service.started() != started || l.read().Guest.ToolsRunningStatus != "guestToolsNotRunning" {
		t.Error("the cancelled boot went on")
	}
}

func TestAHostThatCannotRunTheVMIsRefused(t *testing.T) {
	l := startLab(t, offVM)
	on := func(host types.ManagedObjectReference) error {
		req := types.PowerOnVM_Task{This: l.vm.Reference(), Host: &host}
		res, err := methods.PowerOnVM_Task(l.ctx, l.client.Client, &req)
		if err != nil {
			return err
		}
		return object.NewTask(l.client.Client, res.Returnval).Wait(l.ctx)
	}
	wantFault[types.ManagedObjectNotFound](t, on(types.ManagedObjectReference{Type: "HostSystem", Value: "host-999"}))
	elsewhere := l.server.registry.Any("ComputeResource").Reference()
	wantArgument(t, on(elsewhere), "host")
	l.must(on(*l.read().Runtime.Host))
}

func TestReservationsShareTheHost(t *testing.T) {
	l := startLab(t, "vms: [{name: big, memory_gb: 128, reservation_locked: true}, {name: sql16, power: off}]")
	l.must(l.reconfigure(spec{MemoryReservationLockedToMax: number(true)}))
	refused := wantFault[types.InsufficientMemoryResourcesFault](t, l.powerOn())
	if refused.Requested>>20 != 65536 || refused.Unreserved>>20 != 192*1024-hypervisorMB-128*1024 {
		t.Errorf("requested %d, unreserved %d", refused.Requested>>20, refused.Unreserved>>20)
	}
	l.must(l.reconfigure(spec{MemoryReservationLockedToMax: number(false), MemoryAllocation: &types.ResourceAllocationInfo{Reservation: number(int64(1024))}}))
	l.must(l.powerOn())
	wantFault[types.InsufficientMemoryResourcesFault](t, l.reconfigure(spec{MemoryReservationLockedToMax: number(true)}))
}

func TestStoredKeysAppearWithTheFirstPowerOnFrom65(t *testing.T) {
	l := startLab(t, `{esxi: {version: "6.5"}, vms: [{name: sql16, power: off, vcpus: 32, cores_per_socket: 1}]}`)
	before := l.read().Config
	l.must(l.powerOn())
	after := l.read().Config
	keys := optionMap(after.ExtraConfig)
	if keys["numa.autosize.cookie"] != "320001" || keys["numa.autosize.vcpu.maxPerVirtualNode"] != "16" {
		t.Errorf("stored %v", keys)
	}
	if before.ChangeVersion == after.ChangeVersion {
		t.Error("storing keys is a change of the configuration")
	}
}

func TestAGuestRebootKeepsTheTopology(t *testing.T) {
	l := startLab(t, "boot: {tools_seconds: 0.01, sql_seconds: 0, shutdown_seconds: 0}")
	l.must(l.vm.RebootGuest(l.ctx))
	l.eventually("the guest is back", func() bool { return l.service.started() == 2 })
	if boot := l.service.lastBoot(); boot.Number != 1 {
		t.Errorf("a reboot counted as power-on %d", boot.Number)
	}
}

func TestAPowerCycleKeyTurnsARebootIntoAPowerOn(t *testing.T) {
	l := startLab(t, "boot: {tools_seconds: 0.01, sql_seconds: 0, shutdown_seconds: 0}")
	l.must(l.reconfigure(spec{ExtraConfig: []types.BaseOptionValue{option("vmx.reboot.PowerCycle", "TRUE"), option("numa.vcpu.maxPerVirtualNode", "8")}}))
	l.must(l.vm.RebootGuest(l.ctx))
	l.eventually("the guest is back", func() bool { return l.service.started() == 2 })
	if boot := l.service.lastBoot(); boot.Number != 2 || !slices.Equal(sizes(boot), []int{8, 8}) {
		t.Errorf("boot %+v", boot)
	}
	if _, left := optionMap(l.read().Config.ExtraConfig)["vmx.reboot.PowerCycle"]; left {
		t.Error("the key is still set after its use")
	}
}

func TestRebootPowerOffEndsInPowerOff(t *testing.T) {
	l := startLab(t, "boot: {tools_seconds: 0.01, sql_seconds: 0, shutdown_seconds: 0}")
	l.must(l.reconfigure(spec{RebootPowerOff: number(true)}))
	l.must(l.vm.RebootGuest(l.ctx))
	l.wait("runtime.powerState", poweredOff)
}

// A suspended VM takes no change and no guest operation, and resumes with the topology of its power-on.
func TestASuspendedVMResumesAsItWas(t *testing.T) {
	l := startLab(t, quick+"vms: [{name: sql16, power: suspended}]")
	if state := l.read().Runtime.PowerState; state != suspended || l.service.started() != 0 {
		t.Errorf("%s, service started %d times", state, l.service.started())
	}
	wantFault[types.InvalidPowerState](t, l.reconfigure(spec{NumCPUs: 8}))
	wantFault[types.InvalidPowerState](t, l.vm.ShutdownGuest(l.ctx))
	l.must(l.powerOn())
	l.waitForTools()
	if boot := l.service.lastBoot(); boot.Number != 1 || !slices.Equal(sizes(boot), []int{4, 4, 4, 4}) {
		t.Errorf("resumed as %+v", boot)
	}
}

// DirectPath I/O needs all memory reserved.
func TestAPassthroughDeviceNeedsAllMemory(t *testing.T) {
	l := startLab(t, "vms: [{name: sql16, power: off, around: {devices: [passthrough]}}]")
	wantFault[types.GenericVmConfigFault](t, l.powerOn())
	l.must(l.reconfigure(spec{MemoryReservationLockedToMax: number(true)}))
	l.must(l.powerOn())
}
