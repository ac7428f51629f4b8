package vcenter

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vnuma"
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
	task := m.startTask(ctx, "powerOnVM", "powerOn", func(ctx *simulator.Context) {
		if req.Host != nil && *req.Host != m.host().Self {
			target := m.lab.hostWith(func(h *host) bool { return h.Self == *req.Host })
			if target == nil || *target.Parent != *m.host().Parent {
				panic(invalidArgument("host", "%s cannot run this virtual machine", req.Host.Value))
			}
			m.moveTo(ctx, target)
		}
		m.powerOn(ctx)
	})
	return &methods.PowerOnVM_TaskBody{Res: &types.PowerOnVM_TaskResponse{Returnval: task}}
}

func (m *machine) powerOn(ctx *simulator.Context) {
	if m.isOn() {
		panic(invalidPower(poweredOn, m.Runtime.PowerState))
	}
	if m.nextFault(scenario.PowerOnRefused) != nil {
		panic(cannotPowerOn("the scenario refuses this power-on (vnuma-lab)"))
	}
	if m.nextFault(scenario.FailoverRefused) != nil {
		panic(&refusal{fault: &types.InsufficientFailoverResourcesFault{}, message: "Insufficient resources to satisfy configured failover level for vSphere HA."})
	}
	if m.nextFault(scenario.DatastoreFull) != nil {
		panic(noSpace())
	}
	m.admit()
	if m.Runtime.PowerState == suspended {
		m.resume(ctx)
		return
	}
	if m.asks(ctx) {
		panic(unanswered)
	}
	m.goOn(ctx)
}

// goOn is the rest of a power-on after all checks.
func (m *machine) goOn(ctx *simulator.Context) {
	m.start(ctx, m.lab.faults)
	m.bootAfter(m.lab.config.Scenario.Boot)
	m.meddle(m.lab.faults, int(m.boots.Load()))
}

// powerOnAtStart boots a VM before the lab serves clients: it looks as if it had run for long.
// Only faults that name boot 1 hit it.
func (m *machine) powerOnAtStart() error {
	if m.scenario.Power == scenario.Off {
		return nil
	}
	var failure error
	m.locked(func(ctx *simulator.Context) {
		if refused := refusing(m.admit); refused != nil {
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
	task := m.startTask(ctx, "powerOffVM", "powerOff", func(ctx *simulator.Context) {
		if m.Runtime.PowerState == poweredOff {
			panic(invalidPower(poweredOff, m.Runtime.PowerState))
		}
		m.powerOff(ctx)
	})
	return &methods.PowerOffVM_TaskBody{Res: &types.PowerOffVM_TaskResponse{Returnval: task}}
}

// ShutdownGuest asks the guest to shut down, which needs running Tools; it returns at once.
func (m *machine) ShutdownGuest(ctx *simulator.Context, _ *types.ShutdownGuest) soap.HasFault {
	if refused := m.needsTools(poweredOff); refused != nil {
		return &methods.ShutdownGuestBody{Fault_: refused.soap()}
	}
	answer := &methods.ShutdownGuestBody{Res: new(types.ShutdownGuestResponse)}
	if m.stopping || m.fault(scenario.ShutdownNever) != nil {
		return answer
	}
	m.stopGuest(ctx, m.shutdownTakes(), m.powerOff)
	return answer
}

// shutdownTakes is how long this boot's guest takes to shut down: longer where a fault says so, as while Windows
// installs its updates.
func (m *machine) shutdownTakes() time.Duration {
	takes := seconds(m.lab.config.Scenario.Boot.ShutdownSeconds)
	if slow := m.fault(scenario.ShutdownSlow); slow != nil {
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
	task := m.startTask(ctx, "resetVM", "reset", func(ctx *simulator.Context) {
		if !m.isOn() {
			panic(invalidPower(poweredOn, m.Runtime.PowerState))
		}
		m.restart(ctx)
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
		if refused := refusing(func() { m.powerOn(ctx) }); refused != nil && refused != unanswered {
			m.tell("power_cycle_failed", Event{"reason": refused.message})
		}
	default:
		m.restart(ctx)
	}
}

func isTrueText(value string) bool { return value == "TRUE" || value == "true" || value == "1" }

// admit returns ESXi's refusal to power on with this configuration on this host, or nil.
func (m *machine) admit() {
	m.host().admits()
	shape := m.shape()
	host := m.host().want
	if shape.VCPUs > host.Threads() {
		panic(cannotPowerOn("%d vCPUs on a host with %d logical CPUs.", shape.VCPUs, host.Threads()))
	}
	checkTopology(shape)
	if slices.Contains(m.scenario.Around.Devices, scenario.Passthrough) && !m.allMemoryReserved() {
		panic(memoryNotReserved())
	}
	if latencyLevel(m.Config) == types.LatencySensitivitySensitivityLevelHigh {
		m.admitLatencySensitive(shape.VCPUs)
	}
	m.admitMemory(m.memoryReservation())
}

// admits refuses every power-on on a host that vCenter has lost, or that is in maintenance mode, in which a
// virtual machine cannot be powered on (vSphere Web Services API, HostSystem.EnterMaintenanceMode_Task).
func (h *host) admits() {
	switch {
	case h.Runtime.ConnectionState != types.HostSystemConnectionStateConnected:
		panic(&refusal{fault: &types.HostNotConnected{}, message: "Unable to communicate with the remote host, since it is disconnected."})
	case h.Runtime.InMaintenanceMode:
		panic(&refusal{fault: &types.InvalidState{}, message: "The operation is not allowed in the current state: the host is in maintenance mode."})
	}
}

// admitLatencySensitive requires all memory to be reserved, and a core's clock for each vCPU (vSphere 8.0 Resource
// Management, "Latency Sensitivity": numVcpus x cpuFrequency).
func (m *machine) admitLatencySensitive(vcpus int) {
	if !m.allMemoryReserved() {
		panic(memoryNotReserved())
	}
	needed := int64(vcpus) * int64(m.host().want.MHz)
	if *m.Config.CpuAllocation.Reservation < needed {
		panic(cannotPowerOn("Invalid CPU reservation for the latency-sensitive VM, (sched.cpu.min) should be at least %d MHz.", needed))
	}
}

func (m *machine) allMemoryReserved() bool {
	return m.memoryReservation() == int64(m.Config.Hardware.MemoryMB)
}

// memoryNotReserved refuses a VM whose devices or latency need all of its memory (vSphere 8.0, "Add a PCI Device to a
// Virtual Machine": all memory must be reserved for DirectPath I/O).
func memoryNotReserved() *refusal {
	return cannotPowerOn("Invalid memory setting: memory reservation (sched.mem.min) should be equal to memsize.")
}

// checkTopology has the rules for an explicit virtualNuma: it is stored as it is, and an invalid one makes the
// power-on fail.
func checkTopology(shape vnuma.VM) {
	perNode, perSocket := shape.CoresPerNumaNode, shape.CoresPerSocket
	switch {
	case perNode == 0:
		return
	case shape.AutoCoresPerSocket:
		panic(cannotPowerOn("coresPerNumaNode is %d, but cores per socket are automatic.", perNode))
	case shape.VCPUs%perNode != 0:
		panic(cannotPowerOn("%d vCPUs do not divide into nodes of %d.", shape.VCPUs, perNode))
	case perNode%perSocket != 0 && perSocket%perNode != 0:
		panic(cannotPowerOn("coresPerNumaNode %d is neither a multiple nor a divisor of %d cores per socket.", perNode, perSocket))
	}
}

// admitMemory refuses a reservation that exceeds what the host has left after other running VMs.
func (m *machine) admitMemory(reservationMB int64) {
	free := m.host().want.MemoryMB() - hypervisorMB
	for _, other := range m.lab.order {
		if other != m && other.host() == m.host() {
			free -= other.reservedWhileOn.Load()
		}
	}
	if reservationMB <= free {
		return
	}
	fault := &types.InsufficientMemoryResourcesFault{Unreserved: free << 20, Requested: reservationMB << 20}
	panic(&refusal{fault: fault, message: "The host does not have sufficient memory resources to satisfy the reservation."})
}

// unanswered is how a task's work ends while it waits for a question's answer.
var unanswered = new(refusal)

// pending is a question that waits for an answer.
type pending struct {
	id, text string
	task     *simulator.Task // nil when no client's task waits for it
	answered func(ctx *simulator.Context, choice string)
}

// blocks is the refusal of whatever is asked of a VM that has a question.
func (p *pending) blocks() *refusal {
	message := "The operation is not allowed at the moment because the VM has a question pending: '" + p.text + "'."
	return &refusal{fault: &types.QuestionPending{Text: p.text}, message: message}
}

// ask shows a question with its choices, whose keys are their positions.
func (m *machine) ask(ctx *simulator.Context, text string, usual int32, labels []string, answered func(*simulator.Context, string)) {
	boot := m.boots.Load()
	if !m.isOn() {
		boot++ // the one to come
	}
	m.pending = &pending{id: fmt.Sprint(boot), text: text, answered: answered}
	choice := types.ChoiceOption{DefaultIndex: usual}
	for key, label := range labels {
		described := types.Description{Label: label, Summary: label}
		choice.ChoiceInfo = append(choice.ChoiceInfo, &types.ElementDescription{Key: fmt.Sprint(key), Description: described})
	}
	asked := types.VirtualMachineQuestionInfo{Id: m.pending.id, Text: text, Choice: choice}
	m.publish(ctx, []types.PropertyChange{{Name: "runtime.question", Val: asked}})
	m.tell("question", Event{"boot": boot})
}

// asks raises the scenario's question, if any, for the next power-on.
func (m *machine) asks(ctx *simulator.Context) bool {
	if m.nextFault(scenario.Question) == nil {
		return false
	}
	text := "msg.uuid.altered:This virtual machine might have been moved or copied.\n" +
		"If you don't know, answer \"I Copied It\"."
	m.ask(ctx, text, 2, []string{"Cancel", "I Moved It", "I Copied It"}, func(ctx *simulator.Context, choice string) {
		if choice == "0" {
			panic(cannotPowerOn("The operation was cancelled by an answer"))
		}
		m.goOn(ctx)
	})
	return true
}

// stop makes a running VM stand still with a question, as one whose datastore is full. Text and choices are those of
// published support cases.
func (m *machine) stop(ctx *simulator.Context) {
	text := "msg.hbacommon.outofspace:There is no more space for virtual disk '" + m.Name + ".vmdk'. You might be able to " +
		"continue this session by freeing disk space on the relevant volume, and clicking Retry. Click Cancel to terminate this session."
	m.generation++ // what its boot would do next
	if m.service != nil {
		m.service.Pause()
	}
	m.ask(ctx, text, 0, []string{"Retry", "Cancel"}, func(ctx *simulator.Context, choice string) {
		if m.service != nil {
			m.service.Resume()
		}
		switch {
		case choice == "1":
			m.powerOff(ctx)
		case !m.toolsRunning():
			m.bootAfter(m.lab.config.Scenario.Boot)
		}
	})
}

// AnswerVM answers the pending question: the operation continues, or is cancelled.
func (m *machine) AnswerVM(ctx *simulator.Context, req *types.AnswerVM) soap.HasFault {
	if m.pending == nil || req.QuestionId != m.pending.id {
		return &methods.AnswerVMBody{Fault_: invalidArgument("questionId", "no such question is pending").soap()}
	}
	asked := m.pending
	m.pending = nil
	m.publish(ctx, []types.PropertyChange{{Name: "runtime.question"}})
	refused := refusing(func() { asked.answered(ctx, req.AnswerChoice) })
	if asked.task != nil {
		m.lab.finish(asked.task, refused)
	}
	return &methods.AnswerVMBody{Res: new(types.AnswerVMResponse)}
}
