package vcenter

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

const limited = `accounts: [{user: limited, privileges: [VirtualMachine.Config.CPUCount, VirtualMachine.Interact.PowerOff]}]`

func TestAWrongPasswordIsRefused(t *testing.T) {
	l := startLab(t, "")
	for _, user := range []string{administrator, "nobody"} {
		err := session.NewManager(l.connect()).Login(l.ctx, url.UserPassword(user, "wrong"))
		wantFault[types.InvalidLogin](t, err)
	}
	err := session.NewManager(l.connect()).Login(l.ctx, url.UserPassword("nobody", testPassword))
	wantFault[types.InvalidLogin](t, err)
}

func TestOnlyTheLabsOwnCAIsTrusted(t *testing.T) {
	l := startLab(t, "")
	address := &url.URL{Scheme: "https", Host: l.server.Addr().String(), Path: "/sdk"}
	_, err := vim25.NewClient(l.ctx, soap.NewClient(address, false))
	if err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the lab's CA: %v, want a certificate error", err)
	}
}

func TestMissingPrivilegesAreNamed(t *testing.T) {
	l := startLab(t, limited)
	l.must(l.powerOff())
	client := l.login("limited")
	vm := l.find(client, "/DC0/vm/sql16")
	for name, c := range map[string]struct {
		change    spec
		privilege string
	}{
		"memory":       {spec{MemoryMB: 32768}, "VirtualMachine.Config.Memory"},
		"affinity":     {spec{CpuAffinity: affinityTo()}, "VirtualMachine.Config.Resource"},
		"extra config": {spec{ExtraConfig: []types.BaseOptionValue{option("a", "b")}}, "VirtualMachine.Config.AdvancedConfig"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := vm.Reconfigure(l.ctx, c.change)
			if got := wantFault[types.NoPermission](t, err).PrivilegeId; got != c.privilege {
				t.Errorf("missing %s, want %s", got, c.privilege)
			}
		})
	}
	_, err := vm.PowerOn(l.ctx)
	wantFault[types.NoPermission](t, err)
	l.must(l.finished(vm.Reconfigure(l.ctx, spec{NumCPUs: 8})))
}

func TestPrivilegesAreAnsweredTruthfully(t *testing.T) {
	l := startLab(t, limited)
	asked := []string{"VirtualMachine.Config.CPUCount", "VirtualMachine.Config.Resource", "System.Read"}
	manager := object.NewAuthorizationManager(l.client.Client)
	answer, err := manager.HasUserPrivilegeOnEntities(l.ctx, []types.ManagedObjectReference{l.vm.Reference()}, "limited", asked)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{true, false, true} {
		if got := answer[0].PrivAvailability[i]; got.IsGranted != want {
			t.Errorf("%s: %v, want %v", got.PrivId, got.IsGranted, want)
		}
	}
}

func TestMethodsThatWouldEscapeTheRulesAreRefused(t *testing.T) {
	l := startLab(t, offVM)
	_, err := l.vm.Destroy(l.ctx)
	wantFault[types.NotSupported](t, err)
	_, err = l.vm.Suspend(l.ctx)
	wantFault[types.NotSupported](t, err)
}

func TestTheHostIsTheScenarios(t *testing.T) {
	l := startLab(t, "")
	var host mo.HostSystem
	l.must(object.NewHostSystem(l.client.Client, *l.read().Runtime.Host).Properties(l.ctx, *l.read().Runtime.Host,
		[]string{"name", "config.product", "hardware", "summary.hardware", "runtime.connectionState"}, &host))
	cpu, numa := host.Hardware.CpuInfo, host.Hardware.NumaInfo
	if host.Name != "esx01" || host.Config.Product.Version != "6.0.0" || cpu.NumCpuPackages != 2 || cpu.NumCpuCores != 32 || cpu.NumCpuThreads != 64 {
		t.Errorf("%s, %s, %+v", host.Name, host.Config.Product.Version, cpu)
	}
	if numa.NumNodes != 2 || len(numa.NumaNode[1].CpuID) != 32 || numa.NumaNode[0].MemoryRangeLength != 1 {
		t.Errorf("%+v", numa)
	}
	if host.Hardware.MemorySize != 192<<30 || host.Summary.Hardware.MemorySize != 192<<30 || len(host.Hardware.CpuPkg) != 2 {
		t.Errorf("%d bytes of memory, %d packages", host.Hardware.MemorySize, len(host.Hardware.CpuPkg))
	}
	if about := l.client.ServiceContent.About; about.ApiVersion != "8.0.3.0" || !strings.HasSuffix(about.FullName, "(simulated by vnuma-lab, scenario paper)") {
		t.Errorf("%+v", about)
	}
}

func TestVMsOfOneNameLiveInDifferentFolders(t *testing.T) {
	l := startLab(t, "vms: [{name: sql16}, {name: sql16, folder: Old, hardware: 4, vcpus: 4, power: off}, "+
		"{name: sql16, folder: Old/2019 %2f Q1}, {name: other, folder: Old/2019 %2f Q1}]")
	l.find(l.client, "/DC0/vm/Old/2019 %2f Q1/sql16")
	l.find(l.client, "/DC0/vm/Old/2019 %2f Q1/other")
	old := l.find(l.client, "/DC0/vm/Old/sql16")
	var vm mo.VirtualMachine
	l.must(old.Properties(l.ctx, old.Reference(), []string{"config.version"}, &vm))
	if old.Reference() == l.vm.Reference() || vm.Config.Version != "vmx-04" {
		t.Errorf("%s with hardware %s", old.Reference(), vm.Config.Version)
	}
}

func TestAVMInAVAppIsThereAndInNoFolder(t *testing.T) {
	l := startLab(t, "vms: [{name: sql16}, {name: other, folder: Test, around: {vapp: Shop}}]")
	var vm mo.VirtualMachine
	other := l.find(l.client, "/DC0/vm/Test/Shop/other")
	l.must(other.Properties(l.ctx, other.Reference(), []string{"parent", "parentVApp", "resourcePool"}, &vm))
	if vm.Parent != nil || vm.ParentVApp == nil || *vm.ParentVApp != *vm.ResourcePool {
		t.Errorf("in %v, the vApp %v and the pool %v", vm.Parent, vm.ParentVApp, vm.ResourcePool)
	}
	for sees, want := range map[string]bool{"Test": true, "Shop": true, "sql16": false} {
		if l.server.visible(other.Reference(), []string{sees}) != want {
			t.Errorf("seen by who sees %s: want %v", sees, want)
		}
	}
}

func TestTheCertificateAndIdentitySurviveARestart(t *testing.T) {
	dir := t.TempDir()
	var serial, identity []string
	for range 2 {
		kept, err := MakeCertificates(dir, time.Now(), 365)
		if err != nil {
			t.Fatal(err)
		}
		serial = append(serial, string(kept.Server.Certificate[0]))
		id, err := keptIdentity(dir)
		if err != nil {
			t.Fatal(err)
		}
		identity = append(identity, id)
	}
	if serial[0] != serial[1] || identity[0] != identity[1] {
		t.Error("a second lab in the same folder is a stranger to its clients")
	}
	later, err := MakeCertificates(dir, time.Now().Add(validity), 365)
	if err != nil || string(later.Server.Certificate[0]) == serial[0] {
		t.Errorf("an expired certificate was kept (%v)", err)
	}
}
