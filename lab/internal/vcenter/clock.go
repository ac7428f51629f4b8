package vcenter

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
)

// now is the host's own clock, on which it tells when a VM was powered on. It is ahead of vCenter's, on which task times
// and CurrentTime are, by what its guests have worked without real time: a VM is then never on for less than its guest.
func (s *Server) now(h *host) time.Time {
	var passed time.Duration
	for _, m := range s.order {
		if worker, ok := m.service.(guest.Worker); ok && m.host() == h {
			passed = max(passed, worker.Passed())
		}
	}
	return h.onClock(time.Now().Add(passed))
}

// onClock is a moment as the host's clock shows it.
func (h *host) onClock(moment time.Time) time.Time {
	return moment.Add(time.Duration(h.want.ClockMinutes * float64(time.Minute)))
}

// dateTimeSystem tells a host's clock.
type dateTimeSystem struct {
	mo.HostDateTimeSystem

	lab  *Server
	host *host
}

// addClock gives the host what tells its clock.
func (s *Server) addClock(h *host) {
	system := &dateTimeSystem{lab: s, host: h}
	system.Self = types.ManagedObjectReference{Type: "HostDateTimeSystem", Value: "dateTimeSystem-" + h.Self.Value}
	h.ConfigManager.DateTimeSystem = &system.Self
	s.registry.Put(system)
}

// QueryDateTime is the host's clock.
func (d *dateTimeSystem) QueryDateTime(*simulator.Context, *types.QueryDateTime) soap.HasFault {
	return &methods.QueryDateTimeBody{Res: &types.QueryDateTimeResponse{Returnval: d.lab.now(d.host).UTC()}}
}
