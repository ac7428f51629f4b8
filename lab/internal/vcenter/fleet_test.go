package vcenter

import (
	"testing"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/view"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

func TestAFleetIsReadInBulkAndRefusesChanges(t *testing.T) {
	l := startLab(t, "esxi: {version: 8.0.2}\nfleet: {hosts: 31, vms: 1000}")
	views := view.NewManager(l.client.Client)
	all, err := views.CreateContainerView(l.ctx, l.client.ServiceContent.RootFolder, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	var vms []mo.VirtualMachine
	var hosts []mo.HostSystem
	var clusters []mo.ClusterComputeResource
	for kind, target := range map[string]any{
		"VirtualMachine": &vms, "HostSystem": &hosts, "ClusterComputeResource": &clusters,
	} {
		if err := all.Retrieve(l.ctx, []string{kind}, nil, target); err != nil {
			t.Fatal(err)
		}
	}
	if len(vms) != 1001 || len(hosts) != 32 || len(clusters) != 3 {
		t.Fatalf("%d VMs, %d hosts, %d clusters", len(vms), len(hosts), len(clusters))
	}
	states := map[types.VirtualMachineConnectionState]int{}
	for _, vm := range vms {
		states[vm.Runtime.ConnectionState]++
		if (vm.Runtime.ConnectionState == types.VirtualMachineConnectionStateOrphaned) != (vm.Runtime.Host == nil) {
			t.Errorf("%s: host %v, state %s", vm.Name, vm.Runtime.Host, vm.Runtime.ConnectionState)
		}
	}
	if states["orphaned"] != 2 || states["inaccessible"] != 1 || states["connected"] != 998 {
		t.Errorf("states %v", states)
	}
	vm := l.find(l.client, "/DC0/vm/cluster00/fleet-vm00005")
	if _, err := vm.PowerOff(l.ctx); err == nil {
		t.Error("a VM of the fleet was powered off")
	}
	var read mo.VirtualMachine
	if err := property.DefaultCollector(l.client.Client).RetrieveOne(l.ctx, vm.Reference(), []string{"config.hardware"}, &read); err != nil {
		t.Fatal(err)
	}
	if read.Config.Hardware.NumCPU != 12 {
		t.Errorf("%d vCPUs", read.Config.Hardware.NumCPU)
	}
}
