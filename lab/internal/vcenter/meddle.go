package vcenter

import (
	"slices"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

// meddle does, some time after a power-on, what others do to a VM under study: DRS migrates it,
// or a colleague changes it.
func (m *machine) meddle(faults *injector, boot int) {
	if fault := faults.take(scenario.VMMoved, m.scenario, boot); fault != nil {
		m.after(seconds(fault.Seconds), func(ctx *simulator.Context) { m.migrate(ctx, fault.To) })
	}
	if fault := faults.take(scenario.VMChanged, m.scenario, boot); fault != nil {
		m.after(seconds(fault.Seconds), func(ctx *simulator.Context) { m.changeByHand(ctx, fault.CPUReservation) })
	}
	if m.isOn() {
		if fault := faults.take(scenario.QuestionRunning, m.scenario, boot); fault != nil {
			m.after(seconds(fault.Seconds), m.stop)
		}
	}
	if fault := faults.take(scenario.HostMaintenance, m.scenario, boot); fault != nil {
		m.after(seconds(fault.Seconds), func(*simulator.Context) { m.lab.enterMaintenance(m.host()) })
	}
	if fault := faults.take(scenario.HostDisconnected, m.scenario, boot); fault != nil {
		m.after(seconds(fault.Seconds), func(*simulator.Context) { m.lab.disconnect(m.host()) })
	}
}

// enterMaintenance starts maintenance mode: the host is in it once no VM of the host is on, and the task runs
// until then.
func (s *Server) enterMaintenance(h *host) {
	task := s.newTask(h.Self, "enterMaintenanceModeTask")
	s.registry.Put(task)
	h.entering.Store(task)
	s.setHost(h, "recentTask", append(slices.Clone(h.RecentTask), task.Self))
	s.tell(Event{"event": "host_entering_maintenance", "host": h.want.Name})
	s.emptied(h)
}

// emptied completes maintenance mode when the host's last VM is off.
func (s *Server) emptied(h *host) {
	task := h.entering.Load()
	if task == nil || slices.ContainsFunc(s.order, func(m *machine) bool { return m.host() == h && m.isOn() }) {
		return
	}
	h.entering.Store(nil)
	s.setHost(h, "runtime.inMaintenanceMode", true)
	s.finish(task, nil)
	s.tell(Event{"event": "host_maintenance", "host": h.want.Name})
}

func (s *Server) disconnect(h *host) {
	s.setHost(h, "runtime.connectionState", types.HostSystemConnectionStateDisconnected)
	s.tell(Event{"event": "host_disconnected", "host": h.want.Name})
}

func (s *Server) setHost(h *host, property string, value any) {
	s.registry.AtomicUpdate(s.context(), h.HostSystem, []types.PropertyChange{{Name: property, Val: value}})
}

// writtenByOthers is what hostd, a backup or Tools write to a VM just after its shutdown: a key
// that no study sets, and a new changeVersion.
func (m *machine) writtenByOthers(ctx *simulator.Context) {
	if m.isOn() || m.lab.faults.take(scenario.KeysWritten, m.scenario, int(m.boots.Load())+1) == nil {
		return
	}
	m.storeKeys(ctx, map[string]string{"guestinfo.written": m.nextChangeVersion()})
	m.lab.tell(Event{"event": "keys_written", "vm": m.Name, "path": m.scenario.Path()})
}

// migrate moves the VM as DRS or a vMotion would. A running VM with CPU affinity stays
// (AffinityConfigured), and so does one whose DRS override says so.
func (m *machine) migrate(ctx *simulator.Context, to string) {
	target := m.lab.hostNamed(to)
	stays := ""
	switch {
	case target == m.host():
		stays = "it is there already"
	case m.isOn() && len(m.affinity()) > 0:
		stays = "it has CPU affinity"
	case m.drsDisabled():
		stays = "its DRS override is disabled"
	}
	if stays != "" {
		m.lab.tell(Event{"event": "not_moved", "vm": m.Name, "path": m.scenario.Path(), "to": to, "reason": stays})
		return
	}
	from := m.host().want.Name
	m.moveTo(ctx, target)
	m.lab.tell(Event{"event": "moved", "vm": m.Name, "path": m.scenario.Path(), "from": from, "to": to})
}

// moveTo registers the VM at another host, and in its resource pool.
func (m *machine) moveTo(ctx *simulator.Context, target *host) {
	registry, from := m.lab.registry, m.host()
	registry.RemoveReference(ctx, from.HostSystem, &from.Vm, m.Self)
	registry.AppendReference(ctx, target.HostSystem, &target.Vm, m.Self)
	m.at.Store(target)
	pool := *m.lab.compute(target).ResourcePool
	m.publish(ctx, []types.PropertyChange{
		{Name: "runtime.host", Val: target.Self},
		{Name: "summary.runtime.host", Val: target.Self},
		{Name: "resourcePool", Val: pool},
	})
}

// drsDisabled reports whether the VM's own setting prevents DRS from moving it.
func (m *machine) drsDisabled() bool {
	cluster, ok := m.lab.registry.Get(*m.host().Parent).(*simulator.ClusterComputeResource)
	if !ok {
		return false
	}
	config, ok := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
	return ok && slices.ContainsFunc(config.DrsVmConfig, func(own types.ClusterDrsVmConfigInfo) bool {
		return own.Key == m.Self && own.Enabled != nil && !*own.Enabled
	})
}

// colleague is the user of changes from outside.
const colleague = `VSPHERE.LOCAL\colleague`

// changeByHand sets a CPU reservation, as a user of the vSphere Client would.
func (m *machine) changeByHand(ctx *simulator.Context, mhz int64) {
	spec := &types.VirtualMachineConfigSpec{CpuAllocation: &types.ResourceAllocationInfo{Reservation: &mhz}}
	event := Event{"event": "changed", "vm": m.Name, "path": m.scenario.Path(), "cpu_reservation_mhz": mhz}
	if refused := m.apply(ctx, colleague, spec); refused != nil {
		event["event"], event["reason"] = "not_changed", refused.message
	}
	m.lab.tell(event)
}
