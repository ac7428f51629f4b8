package vcenter

import (
	"errors"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

const (
	poweredOn  = types.VirtualMachinePowerStatePoweredOn
	poweredOff = types.VirtualMachinePowerStatePoweredOff
	suspended  = types.VirtualMachinePowerStateSuspended
)

// PowerOnVMTask boots the VM, on the host asked for if any.
func (m *machine) PowerOnVMTask(ctx *simulator.Context, req *types.PowerOnVM_Task) soap.HasFault {
	if host := req.Host; host != nil && m.lab.registry.Get(*host) == nil {
		missing := &refusal{fault: &types.ManagedObjectNotFound{Obj: *host}, message: "The object has already been deleted or has not been completely created"}
		return &methods.PowerOnVM_TaskBody{Fault_: missing.soap()}
	}
	task := m.startTask(ctx, "powerOnVM", "powerOn", func(ctx *simulator.Context) *refusal {
		if req.Host != nil && *req.Host != m.host().Self {
			target := m.lab.hostOf(*req.Host)
			if target == nil || *target.Parent != *m.host().Parent {
				return invalidArgument("host", "%s cannot run this virtual machine", req.Host.Value)
			}
			m.moveTo(ctx, target)
		}
		return m.powerOn(ctx)
	})
	return &methods.PowerOnVM_TaskBody{Res: &types.PowerOnVM_TaskResponse{Returnval: task}}
}

func (m *machine) powerOn(ctx *simulator.Context) *refusal {
	if m.isOn() {
		return invalidPower(poweredOn, m.Runtime.PowerState)
	}
	if m.lab.faults.take(scenario.PowerOnRefused, m.scenario, int(m.boots.Load())+1) != nil {
		return cannotPowerOn("the scenario refuses this power-on (vnuma-lab)")
	}
	if m.lab.faults.take(scenario.FailoverRefused, m.scenario, int(m.boots.Load())+1) != nil {
		return &refusal{fault: &types.InsufficientFailoverResourcesFault{}, message: "Insufficient resources to satisfy configured failover level for vSphere HA."}
	}
	if m.datastoreFull() {
		return noSpace()
	}
	if refused := m.admit(); refused != nil {
		return refused
	}
	if m.Runtime.PowerState == suspended {
		m.resume(ctx)
		return nil
	}
	if m.asks(ctx) {
		return unanswered
	}
	return m.goOn(ctx)
}

// goOn is the rest of a power-on after all checks.
func (m *machine) goOn(ctx *simulator.Context) *refusal {
	m.start(ctx, m.lab.faults)
	m.bootAfter(m.lab.config.Scenario.Boot)
	m.meddle(m.lab.faults, int(m.boots.Load()))
	return nil
}

// powerOnAtStart boots a VM before the lab serves clients: it looks as if it had run for long.
// Only faults that name boot 1 hit it.
func (m *machine) powerOnAtStart() error {
	if m.scenario.Power == scenario.Off {
		return nil
	}
	var failure error
	m.locked(func(ctx *simulator.Context) {
		if refused := m.admit(); refused != nil {
			failure = errors.New(refused.message)
			return
		}
		atStart := m.lab.faults.naming(1)
		m.start(ctx, atStart)
		if m.scenario.Power == scenario.Suspended {
			m.suspend(ctx)
			return
		}
		m.meddle(atStart, 1)
		if !m.toolsNever {
			m.publish(ctx, m.guestRunning())
		}
		failure = m.startService()
	})
	return failure
}

// PowerOffVMTask switches the VM off, during a boot or shutdown as well.
func (m *machine) PowerOffVMTask(ctx *simulator.Context, _ *types.PowerOffVM_Task) soap.HasFault {
	task := m.startTask(ctx, "powerOffVM", "powerOff", func(ctx *simulator.Context) *refusal {
		if m.Runtime.PowerState == poweredOff {
			return invalidPower(poweredOff, m.Runtime.PowerState)
		}
		m.powerOff(ctx)
		return nil
	})
	return &methods.PowerOffVM_TaskBody{Res: &types.PowerOffVM_TaskResponse{Returnval: task}}
}

// ShutdownGuest asks the guest to shut down, which needs running Tools; it returns at once.
func (m *machine) ShutdownGuest(ctx *simulator.Context, _ *types.ShutdownGuest) soap.HasFault {
	if refused := m.needsTools(poweredOff); refused != nil {
		return &methods.ShutdownGuestBody{Fault_: refused.soap()}
	}
	answer := &methods.ShutdownGuestBody{Res: new(types.ShutdownGuestResponse)}
	if m.stopping || m.lab.faults.take(scenario.ShutdownNever, m.scenario, int(m.boots.Load())) != nil {
		return answer
	}
	m.stopGuest(ctx, m.shutdownTakes(), m.powerOff)
	return answer
}

// shutdownTakes is how long this boot's guest takes to shut down: longer where a fault says so, as while Windows
// installs its updates.
func (m *machine) shutdownTakes() time.Duration {
	takes := seconds(m.lab.config.Scenario.Boot.ShutdownSeconds)
	if slow := m.lab.faults.take(scenario.ShutdownSlow, m.scenario, int(m.boots.Load())); slow != nil {
		takes += seconds(slow.Seconds)
	}
	return takes
}

// RebootGuest restarts the guest: with the same topology, unless the VM is set to turn its next
// reboot into a power-off (rebootPowerOff) or a power cycle (vmx.reboot.PowerCycle).
func (m *machine) RebootGuest(ctx *simulator.Context, _ *types.RebootGuest) soap.HasFault {
	if refused := m.needsTools(poweredOn); refused != nil {
		return &methods.RebootGuestBody{Fault_: refused.soap()}
	}
	answer := &methods.RebootGuestBody{Res: new(types.RebootGuestResponse)}
	if !m.stopping {
		m.stopGuest(ctx, m.shutdownTakes(), m.rebooted)
	}
	return answer
}

// ResetVMTask restarts the guest without asking it. The VM stays powered on and keeps its topology.
func (m *machine) ResetVMTask(ctx *simulator.Context, _ *types.ResetVM_Task) soap.HasFault {
	task := m.startTask(ctx, "resetVM", "reset", func(ctx *simulator.Context) *refusal {
		if !m.isOn() {
			return invalidPower(poweredOn, m.Runtime.PowerState)
		}
		m.restart(ctx)
		return nil
	})
	return &methods.ResetVM_TaskBody{Res: &types.ResetVM_TaskResponse{Returnval: task}}
}

func (m *machine) needsTools(requested types.VirtualMachinePowerState) *refusal {
	if !m.isOn() {
		return invalidPower(requested, m.Runtime.PowerState)
	}
	if m.pending != nil {
		return m.pending.blocks()
	}
	if !m.toolsRunning() {
		return &refusal{fault: &types.ToolsUnavailable{}, message: "Cannot complete operation because VMware Tools is not running in this virtual machine."}
	}
	return nil
}

// stopGuest starts a shutdown; `then` runs when the guest has ended.
func (m *machine) stopGuest(ctx *simulator.Context, takes time.Duration, then func(*simulator.Context)) {
	m.stopping = true
	m.publish(ctx, []types.PropertyChange{{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateShuttingDown)}})
	m.after(takes, then)
}

func (m *machine) rebooted(ctx *simulator.Context) {
	const powerCycle = "vmx.reboot.PowerCycle"
	switch {
	case m.rebootOff:
		m.rebootOff = false
		m.publish(ctx, []types.PropertyChange{{Name: "config.rebootPowerOff", Val: false}})
		m.powerOff(ctx)
	case isTrueText(m.extraConfig()[powerCycle]):
		m.powerOff(ctx)
		m.storeKeys(ctx, map[string]string{powerCycle: ""}) // ESXi removes it after use
		if refused := m.powerOn(ctx); refused != nil && refused != unanswered {
			m.lab.tell(Event{"event": "power_cycle_failed", "vm": m.Name, "path": m.scenario.Path(), "reason": refused.message})
		}
	default:
		m.restart(ctx)
	}
}

func isTrueText(value string) bool { return value == "TRUE" || value == "true" || value == "1" }
