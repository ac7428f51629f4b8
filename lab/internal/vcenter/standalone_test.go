package vcenter

import (
	"net/http"
	"testing"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

// A lab without vCenter serves the host's own API, in its release, and has nothing that only vCenter has.
func TestAStandaloneHostServesItsOwnAPI(t *testing.T) {
	for version, api := range map[string]string{"6.0.0": "6.0", "6.7.0": "6.7", "7.0.3": "7.0.3.0", "8.0.3": "8.0.3.0", "9.0.0": "9.0.0.0"} {
		l := startLab(t, "{standalone: true, esxi: {version: "+version+"}}")
		content := l.client.ServiceContent
		if about := content.About; about.ApiType != "HostAgent" || about.ApiVersion != api || about.InstanceUuid != "" {
			t.Errorf("%s: %s serving %s, instance %q", version, about.ApiType, about.ApiVersion, about.InstanceUuid)
		}
		if content.CustomFieldsManager != nil {
			t.Errorf("%s has custom attributes", version)
		}
		var host mo.HostSystem
		l.must(l.vm.Properties(l.ctx, types.ManagedObjectReference{Type: "HostSystem", Value: "ha-host"},
			[]string{"name", "summary.hardware"}, &host))
		if host.Name != "esx01" || host.Summary.Hardware.NumCpuThreads != 64 {
			t.Errorf("%s is %s with %d logical CPUs", version, host.Name, host.Summary.Hardware.NumCpuThreads)
		}
	}
}

// The hardware's UUID identifies a host without vCenter: each lab has its own.
func TestAStandaloneHostIsKnownByItsHardware(t *testing.T) {
	uuid := func() string { return startLab(t, "standalone: true").server.hosts[0].Summary.Hardware.Uuid }
	if one, other := uuid(), uuid(); one == "" || one == other {
		t.Errorf("%q and %q", one, other)
	}
}

// The host's own file service gives the log of a running VM to a session; vCenter does not.
func TestAStandaloneHostGivesTheLogOfARunningVM(t *testing.T) {
	l := startLab(t, "standalone: true")
	if status, text := l.folder(hostsDatacenter, l.sessionCookie()); status != http.StatusOK || text == "" {
		t.Errorf("%d, %d bytes", status, len(text))
	}
}
