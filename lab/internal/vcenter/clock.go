package vcenter

import (
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// now is the host's own clock, on which it tells when a VM was powered on. vCenter's, on which task times and
// CurrentTime are, is real time.
func (h *host) now() time.Time { return h.onClock(time.Now()) }

// onClock is a moment as the host's clock shows it.
func (h *host) onClock(moment time.Time) time.Time {
	return moment.Add(time.Duration(h.want.ClockMinutes * float64(time.Minute)))
}

// dateTimeSystem tells a host's clock.
type dateTimeSystem struct {
	mo.HostDateTimeSystem

	host *host
}

// addClock gives the host what tells its clock.
func (s *Server) addClock(h *host) {
	system := &dateTimeSystem{host: h}
	system.Self = types.ManagedObjectReference{Type: "HostDateTimeSystem", Value: "dateTimeSystem-" + h.Self.Value}
	h.ConfigManager.DateTimeSystem = &system.Self
	s.registry.Put(system)
}

// QueryDateTime is the host's clock.
func (d *dateTimeSystem) QueryDateTime(*simulator.Context, *types.QueryDateTime) soap.HasFault {
	return &methods.QueryDateTimeBody{Res: &types.QueryDateTimeResponse{Returnval: d.host.now().UTC()}}
}
