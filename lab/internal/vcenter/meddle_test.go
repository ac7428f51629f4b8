package vcenter

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

func TestOthersWriteAfterAShutdown(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: keys_written, times: 2}]")
	version := func() string { return l.read().Config.ChangeVersion }
	l.must(l.reconfigure(spec{Annotation: "while it is on nobody interferes", ChangeVersion: version()}))
	l.must(l.powerOff())
	for range 2 {
		wantFault[types.ConcurrentAccess](t, l.reconfigure(spec{NumCPUs: 8, ChangeVersion: version()}))
	}
	l.must(l.reconfigure(spec{NumCPUs: 8, ChangeVersion: version()}))
}

func TestAHostReachesMaintenanceModeWhenItsLastVMGoesOff(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: host_maintenance, boot: 1}]")
	l.eventually("maintenance mode is entered", func() bool { return len(l.told("host_entering_maintenance")) == 1 })
	if len(l.told("host_maintenance")) != 0 {
		t.Error("reached with a VM that is on")
	}
	l.must(l.powerOff())
	l.eventually("maintenance mode", func() bool { return len(l.told("host_maintenance")) == 1 })
	wantFault[types.InvalidState](t, l.powerOn())
}

func TestALostHostPowersNothingOn(t *testing.T) {
	l := startLab(t, quick+"faults: [{kind: host_disconnected, boot: 1}]")
	l.must(l.powerOff())
	l.eventually("disconnected", func() bool { return len(l.told("host_disconnected")) == 1 })
	wantFault[types.HostNotConnected](t, l.powerOn())
}
