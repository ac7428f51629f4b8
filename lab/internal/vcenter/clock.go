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

// now is the host's clock, used for the time of a VM's power-on. It is ahead of vCenter's, used for task times and
// CurrentTime, by the simulated time of its guests: a VM's time since power-on is then never less than its guest's.
func (s *Server) now(h *host) time.Time {
	var passed time.Duration
	for _, m := range s.order {
		if worker, ok := m.service.(guest.Worker); ok && m.host() == h {
			passed = max(passed, worker.Passed())
		}
	}
	return h.onClock(time.Now().Add(passed))
}

// onClock is a time on the host's clock.
func (h *host) onClock(moment time.Time) time.Time {
	return moment.Add(time.Duration(h.want.ClockMinutes * float64(time.Minute)))
}

// dateTimeSystem reports a host's clock.
type dateTimeSystem struct {
	mo.HostDateTimeSystem

	lab  *Server
	host *host
}

// addClock adds the dateTimeSystem to the host.
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
