package vcenter

import (
	"fmt"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

const twoHosts = `
clusters: [{name: prod}]
hosts:
  - {name: esx01, cluster: prod}
  - {name: esx02, cluster: prod, memory_gb: 256}
  - {name: esx03, esxi: {version: "8.0.3"}}
vms:
  - {name: sql16}
  - {name: pinned, host: esx02, memory_gb: 32, drs: disabled}
  - {name: alone, host: esx03}
`

func TestEveryHostIsTheScenariosMachine(t *testing.T) {
	l := startLab(t, twoHosts)
	var hosts []mo.HostSystem
	refs, err := find.NewFinder(l.client.Client).HostSystemList(l.ctx, "*/*")
	l.must(err)
	for _, ref := range refs {
		var host mo.HostSystem
		l.must(ref.Properties(l.ctx, ref.Reference(), []string{"name", "hardware", "summary", "vm"}, &host))
		hosts = append(hosts, host)
	}
	if len(hosts) != 3 {
		t.Fatalf("%d hosts", len(hosts))
	}
	memory := map[string]int64{"esx01": 192, "esx02": 256, "esx03": 192}
	for _, host := range hosts {
		if got := host.Hardware.MemorySize >> 30; got != memory[host.Name] {
			t.Errorf("%s has %d GB, want %d", host.Name, got, memory[host.Name])
		}
		if len(host.Vm) != 1 {
			t.Errorf("%s has %d VMs, want 1", host.Name, len(host.Vm))
		}
		if release := host.Summary.Config.Product.Version; (host.Name == "esx03") != (release == "8.0.3") {
			t.Errorf("%s runs ESXi %s", host.Name, release)
		}
	}
}

func TestAClustersTotalsAndOverridesAreTheScenarios(t *testing.T) {
	l := startLab(t, twoHosts)
	ref, err := find.NewFinder(l.client.Client).ClusterComputeResource(l.ctx, "prod")
	l.must(err)
	var cluster mo.ClusterComputeResource
	l.must(ref.Properties(l.ctx, ref.Reference(), []string{"summary", "configurationEx"}, &cluster))
	if got := cluster.Summary.GetComputeResourceSummary().TotalMemory >> 30; got != 448 {
		t.Errorf("%d GB in the cluster, want 448", got)
	}
	config := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
	if !*config.DrsConfig.Enabled || config.DrsConfig.DefaultVmBehavior != types.DrsBehaviorFullyAutomated {
		t.Errorf("DRS %+v", config.DrsConfig)
	}
	pinned := l.find(l.client, "/DC0/vm/pinned").Reference()
	if len(config.DrsVmConfig) != 1 || config.DrsVmConfig[0].Key != pinned || *config.DrsVmConfig[0].Enabled {
		t.Errorf("overrides %+v", config.DrsVmConfig)
	}
}

func (l *lab) hostOf(vm *object.VirtualMachine) string {
	l.t.Helper()
	ref, err := vm.HostSystem(l.ctx)
	l.must(err)
	name, err := ref.ObjectName(l.ctx)
	l.must(err)
	return name
}

func TestPowerOnPlacesWithinTheClusterOnly(t *testing.T) {
	l := startLab(t, twoHosts)
	l.must(l.powerOff())
	for name, works := range map[string]bool{"esx02": true, "esx03": false} {
		host, err := find.NewFinder(l.client.Client).HostSystem(l.ctx, "*/"+name)
		l.must(err)
		ref := host.Reference()
		response, err := methods.PowerOnVM_Task(l.ctx, l.client.Client, &types.PowerOnVM_Task{This: l.vm.Reference(), Host: &ref})
		l.must(err)
		err = object.NewTask(l.client.Client, response.Returnval).Wait(l.ctx)
		if (err == nil) != works {
			t.Errorf("power-on at %s: %v", name, err)
		}
		if works {
			if here := l.hostOf(l.vm); here != name {
				t.Errorf("runs on %s", here)
			}
			l.must(l.powerOff())
		}
	}
}

func TestDRSMovesAVMUnlessAffinityOrItsOverrideKeepIt(t *testing.T) {
	l := startLab(t, twoHosts+`
faults:
  - {kind: vm_moved, vm: sql16, to: esx02, boot: 2}
  - {kind: vm_moved, vm: sql16, to: esx01, boot: 3}
  - {kind: vm_moved, vm: pinned, to: esx01, boot: 2}
`)
	l.must(l.powerOff())
	l.must(l.powerOn())
	l.eventually("the move", func() bool { return len(l.told("moved")) == 1 })
	if here := l.hostOf(l.vm); here != "esx02" {
		t.Errorf("sql16 runs on %s", here)
	}
	l.must(l.powerOff())
	affinity := &types.VirtualMachineAffinityInfo{}
	for cpu := range int32(16) {
		affinity.AffinitySet = append(affinity.AffinitySet, cpu)
	}
	l.must(l.reconfigure(types.VirtualMachineConfigSpec{CpuAffinity: affinity}))
	l.must(l.powerOn())
	l.eventually("the refusal", func() bool { return len(l.told("not_moved")) == 1 })
	l.vm = l.find(l.client, "/DC0/vm/pinned")
	l.must(l.powerOff())
	l.must(l.powerOn())
	l.eventually("the other refusal", func() bool { return len(l.told("not_moved")) == 2 })
	if len(l.told("moved")) != 1 {
		t.Errorf("moved: %v", l.told("moved"))
	}
}

func TestOnlyNeighboursOfTheSameHostTakeItsMemory(t *testing.T) {
	const reserved = `
hosts: [{name: a, memory_gb: 64}, {name: b, memory_gb: 64}]
vms:
  - {name: sql16, host: a, memory_gb: 40, reservation_locked: true}
  - {name: other, host: %s, memory_gb: 40, reservation_locked: true, power: off}
`
	for host, works := range map[string]bool{"a": false, "b": true} {
		l := startLab(t, fmt.Sprintf(reserved, host))
		l.vm = l.find(l.client, "/DC0/vm/other")
		if err := l.powerOn(); (err == nil) != works {
			t.Errorf("beside a VM of 40 GB on a, other on %s: %v", host, err)
		}
	}
}

// The simulator's clusters know no release after 8.0.2.
func TestAClusterHoldsHostsOfReleasesThatTheSimulatorDoesNotKnow(t *testing.T) {
	for _, version := range []string{"7.0.3", "8.0.3"} {
		l := startLab(t, fmt.Sprintf("{esxi: {version: %s}, clusters: [{name: prod}], hosts: [{name: esx01, cluster: prod}, {name: esx02, cluster: prod}]}", version))
		hosts, err := find.NewFinder(l.client.Client).HostSystemList(l.ctx, "prod/*")
		l.must(err)
		if len(hosts) != 2 {
			t.Errorf("%s: %d hosts in the cluster", version, len(hosts))
		}
	}
}

// A host in a VM of VMware says so; of one that could not be asked there is no hardware.
func TestNestedAndHalfReadHosts(t *testing.T) {
	l := startLab(t, "hosts: [{name: esx01, nested: true}, {name: esx02, half_read: true}]")
	for path, vendor := range map[string]string{"*/esx01": "VMware, Inc.", "*/esx02": ""} {
		ref, err := find.NewFinder(l.client.Client).HostSystem(l.ctx, path)
		l.must(err)
		var host mo.HostSystem
		l.must(ref.Properties(l.ctx, ref.Reference(), []string{"hardware"}, &host))
		if got := host.Hardware; (got == nil) != (vendor == "") || got != nil && got.SystemInfo.Vendor != vendor {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
