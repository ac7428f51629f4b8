package vcenter

import (
	"testing"
	"time"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// A host's clock may be off: the time of a power-on is from it, CurrentTime is not.
func TestPowerOnIsTimedByTheHostsOwnClock(t *testing.T) {
	l := startLab(t, "host: {clock_minutes: -9}")
	var vm mo.VirtualMachine
	collect := property.DefaultCollector(l.client.Client)
	if err := collect.RetrieveOne(l.ctx, l.vm.Reference(), []string{"runtime.bootTime", "guest.net"}, &vm); err != nil {
		t.Fatal(err)
	}
	if behind := time.Since(*vm.Runtime.BootTime); behind < 9*time.Minute || behind > 11*time.Minute {
		t.Errorf("the VM was powered on %v ago by another clock than the host's", behind)
	}
	if addresses := vm.Guest.Net[0].IpAddress; len(addresses) != 1 || addresses[0] != "127.0.0.1" {
		t.Errorf("Tools report %v", addresses)
	}
	if behind := time.Since(l.hostClock()); behind < 8*time.Minute || behind > 10*time.Minute {
		t.Errorf("the host's clock is %v behind", behind)
	}
}

// A guest with an hour of simulated work has been on for that hour by its host's clock.
func TestAHostsClockIsNotBehindItsGuests(t *testing.T) {
	l := startLab(t, "")
	l.service.passed = time.Hour
	if behind := time.Since(l.hostClock()); behind > -time.Hour+time.Minute {
		t.Errorf("the host's clock is %v behind", behind)
	}
}

// hostClock is the time on the clock of the VM's host.
func (l *lab) hostClock() time.Time {
	l.t.Helper()
	var vm mo.VirtualMachine
	var host mo.HostSystem
	collect := property.DefaultCollector(l.client.Client)
	if err := collect.RetrieveOne(l.ctx, l.vm.Reference(), []string{"runtime.host"}, &vm); err != nil {
		l.t.Fatal(err)
	}
	if err := collect.RetrieveOne(l.ctx, *vm.Runtime.Host, []string{"configManager.dateTimeSystem"}, &host); err != nil {
		l.t.Fatal(err)
	}
	answer, err := methods.QueryDateTime(l.ctx, l.client, &types.QueryDateTime{This: *host.ConfigManager.DateTimeSystem})
	if err != nil {
		l.t.Fatal(err)
	}
	return answer.Returnval
}
