package vcenter

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/event"
	"github.com/vmware/govmomi/vim25/types"
)

// A reconfigure creates an event with its user, the request, and what it changed.
func TestAReconfigureIsAnEvent(t *testing.T) {
	l := startLab(t, "accounts: [{user: dba@corp.example, privileges: [VirtualMachine.Config.CPUCount, "+
		"VirtualMachine.Config.AdvancedConfig]}]\n"+offVM)
	other := l.find(l.login("dba@corp.example"), l.vm.InventoryPath)
	wanted := spec{NumCoresPerSocket: number(int32(8)), NumCPUs: 16, ExtraConfig: []types.BaseOptionValue{option("numa.vcpu.min", "9")}}
	task, err := other.Reconfigure(l.ctx, wanted)
	if err == nil {
		err = task.Wait(l.ctx)
	}
	l.must(err)
	filter := types.EventFilterSpec{
		Entity:      &types.EventFilterSpecByEntity{Entity: l.vm.Reference(), Recursion: types.EventFilterSpecRecursionOptionSelf},
		EventTypeId: []string{"VmReconfiguredEvent"},
	}
	found, err := event.NewManager(l.client.Client).QueryEvents(l.ctx, filter)
	l.must(err)
	if len(found) != 1 {
		t.Fatalf("%d events, want 1", len(found))
	}
	told := found[0].(*types.VmReconfiguredEvent)
	if told.UserName != `CORP.EXAMPLE\dba` || told.CreatedTime.IsZero() {
		t.Errorf("by %q at %s", told.UserName, told.CreatedTime)
	}
	if told.ConfigSpec.NumCPUs != 16 || *told.ConfigSpec.NumCoresPerSocket != 8 {
		t.Errorf("spec %+v", told.ConfigSpec)
	}
	if want := "config.hardware.numCoresPerSocket: 4 -> 8; \n\n"; told.ConfigChanges.Modified != want {
		t.Errorf("modified %q, want %q", told.ConfigChanges.Modified, want)
	}
	if want := `config.extraConfig("numa.vcpu.min"): (key = "numa.vcpu.min", value = "9"); `; !strings.HasPrefix(told.ConfigChanges.Added, want) {
		t.Errorf("added %q, want %q", told.ConfigChanges.Added, want)
	}
}
