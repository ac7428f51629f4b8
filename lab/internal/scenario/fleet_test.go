package scenario

import (
	"reflect"
	"testing"
)

func TestAFleetFollowsFromItsCounts(t *testing.T) {
	fleet := Fleet{Hosts: 61, VMs: 100, HostsPerCluster: 15}
	if fleet.Clusters() != 5 {
		t.Errorf("%d clusters", fleet.Clusters())
	}
	if !reflect.DeepEqual(fleet.VMAt(42), fleet.VMAt(42)) {
		t.Error("two readings of one VM differ")
	}
	if fleet.HostAt(45).Cores() == fleet.HostAt(46).Cores() {
		t.Error("the fourth cluster's hosts are alike")
	}
	for number := range fleet.VMs {
		if vm := fleet.VMAt(number); vm.VCPUs%vm.CoresPerSocket != 0 {
			t.Errorf("%s: %d vCPUs with %d cores per socket", vm.Name, vm.VCPUs, vm.CoresPerSocket)
		}
	}
}

func TestAFurnishedFleetHasTheKeysOfVMsThatHaveRun(t *testing.T) {
	fleet := Fleet{Hosts: 1, VMs: 1, HostsPerCluster: 15, Furnished: true}
	keys := fleet.VMAt(0).ExtraConfig
	if len(keys) < 45 || keys["numa.autosize.cookie"] == "" || len(keys["guestinfo.appInfo"]) < 5000 {
		t.Errorf("%d keys, %d characters of applications", len(keys), len(keys["guestinfo.appInfo"]))
	}
	fleet.Furnished = false
	if got := len(fleet.VMAt(0).ExtraConfig); got != 7 {
		t.Errorf("%d keys of a bare one", got)
	}
}

func TestAFleetNeedsHosts(t *testing.T) {
	for _, text := range []string{"fleet: {vms: 5}", "fleet: {hosts: -1}", "fleet: {hosts: 2, hosts_per_cluster: -3}"} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s was accepted", text)
		}
	}
}
