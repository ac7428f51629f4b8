package vcenter

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

// ReconfigVMTask changes the configuration completely or not at all.
func (m *machine) ReconfigVMTask(ctx *simulator.Context, req *types.ReconfigVM_Task) soap.HasFault {
	spec, user := req.Spec, userNow(ctx)
	task := m.startTask(ctx, "reconfigVM", "reconfigure", func(ctx *simulator.Context) {
		m.reconfigure(ctx, user, &spec)
	})
	return &methods.ReconfigVM_TaskBody{Res: &types.ReconfigVM_TaskResponse{Returnval: task}}
}

// RenameTask changes the display name, which is part of the configuration, so the change version changes.
func (m *machine) RenameTask(ctx *simulator.Context, req *types.Rename_Task) soap.HasFault {
	task := m.startTask(ctx, "rename", "rename", func(ctx *simulator.Context) {
		for _, vm := range m.lab.machines {
			if vm != m && vm.Name == req.NewName && vm.Parent != nil && m.Parent != nil && *vm.Parent == *m.Parent {
				panic(&refusal{fault: &types.DuplicateName{Name: req.NewName, Object: vm.Self}, message: "The name '" + req.NewName + "' already exists."})
			}
		}
		m.complete(ctx)
		before := m.draft()
		after := before
		after.name = req.NewName
		m.publish(ctx, m.changes(before, after))
	})
	return &methods.Rename_TaskBody{Res: &types.Rename_TaskResponse{Returnval: task}}
}

func (m *machine) reconfigure(ctx *simulator.Context, user string, spec *types.VirtualMachineConfigSpec) {
	if fault := m.nextFault(scenario.ReconfigureRefused); fault != nil {
		reason := "vnuma-lab: the scenario refuses this reconfigure"
		panic(&refusal{fault: &types.SystemError{Reason: reason}, message: "A general system error occurred: " + reason})
	}
	if m.nextFault(scenario.DatastoreFull) != nil {
		panic(noSpace())
	}
	m.writtenByOthers(ctx)
	m.apply(ctx, user, spec)
}

func (m *machine) apply(ctx *simulator.Context, user string, spec *types.VirtualMachineConfigSpec) {
	if spec.ChangeVersion != "" && spec.ChangeVersion != m.Config.ChangeVersion {
		panic(&refusal{fault: &types.ConcurrentAccess{}, message: "The object has been modified since the caller's change version."})
	}
	if field := m.unmodelled(spec); field != "" {
		panic(notSupported("the lab does not model spec.%s", field))
	}
	m.complete(ctx)
	before := m.draft()
	after := before
	after.extraConfig = map[string]string{}
	editNames(&after, spec)
	m.editProcessors(&after, spec)
	editMemory(&after, spec)
	m.editVirtualNuma(&after, spec)
	editExtraConfig(&after, spec)
	if m.Runtime.PowerState != poweredOff {
		coldOnly(before, after, m.Runtime.PowerState)
	}
	m.check(&after)
	if m.isOn() {
		m.admitMemory(*after.memory.Reservation)
	}
	m.rebootOff = after.rebootOff
	if m.isOn() {
		m.reservedWhileOn.Store(*after.memory.Reservation)
	}
	changes := m.changed(before, after)
	m.publish(ctx, m.changes(before, after))
	m.tellReconfigured(ctx, user, spec, changes)
}

// modelled lists the fields of a ConfigSpec that the lab implements.
var modelled = map[string]bool{
	"ChangeVersion": true, "Name": true, "Annotation": true, "GuestId": true,
	"NumCPUs": true, "NumCoresPerSocket": true, "SimultaneousThreads": true, "VirtualNuma": true,
	"MemoryMB": true, "MemoryHotAddEnabled": true, "CpuHotAddEnabled": true,
	"CpuAllocation": true, "MemoryAllocation": true, "MemoryReservationLockedToMax": true,
	"CpuAffinity": true, "MemoryAffinity": true, "LatencySensitivity": true,
	"ExtraConfig": true, "RebootPowerOff": true,
}

// unmodelled names the first field that asks for something that the lab would have to ignore. What is so already is no
// change: providers send all that they know.
func (m *machine) unmodelled(spec *types.VirtualMachineConfigSpec) string {
	value, config := reflect.ValueOf(spec).Elem(), reflect.ValueOf(m.Config).Elem()
	for i := range value.NumField() {
		field := value.Type().Field(i)
		if !field.Anonymous && !modelled[field.Name] && !alreadySo(value.Field(i), config.FieldByName(field.Name)) {
			return strings.ToLower(field.Name[:1]) + field.Name[1:]
		}
	}
	return ""
}

// alreadySo reports whether every part of what is sent is unset or equal to the present one; an absent part is false, zero
// or empty.
func alreadySo(sent, now reflect.Value) bool {
	if sent.IsZero() {
		return true
	}
	sent, now = reflect.Indirect(sent), reflect.Indirect(now)
	switch {
	case sent.Kind() == reflect.Struct && (!now.IsValid() || now.Type() == sent.Type()):
		for i := range sent.NumField() {
			part := reflect.Value{}
			if now.IsValid() {
				part = now.Field(i)
			}
			if !alreadySo(sent.Field(i), part) {
				return false
			}
		}
		return true
	case !now.IsValid():
		return sent.IsZero()
	}
	return reflect.DeepEqual(sent.Interface(), now.Interface())
}

func editNames(d *draft, spec *types.VirtualMachineConfigSpec) {
	set(&d.name, spec.Name)
	set(&d.annotation, spec.Annotation)
	set(&d.guestID, spec.GuestId)
	setBool(&d.rebootOff, spec.RebootPowerOff)
}

func (m *machine) editProcessors(d *draft, spec *types.VirtualMachineConfigSpec) {
	set(&d.vcpus, spec.NumCPUs)
	setBool(&d.cpuHotAdd, spec.CpuHotAddEnabled)
	if cores := spec.NumCoresPerSocket; cores != nil {
		switch {
		case *cores != 0:
			d.perSocket, d.autoPerSocket = *cores, false
		case !m.setsTopology():
			panic(invalidArgument("spec.numCoresPerSocket", "0 (automatic) needs virtual hardware 20"))
		case d.autoPerSocket:
			panic(invalidArgument("spec.numCoresPerSocket", "already automatic"))
		default:
			d.perSocket, d.autoPerSocket = 1, true
		}
	}
	if spec.SimultaneousThreads != 0 {
		if !m.setsTopology() {
			panic(invalidArgument("spec.simultaneousThreads", "needs virtual hardware 20"))
		}
		d.threads = spec.SimultaneousThreads
	}
	if spec.CpuAffinity != nil {
		d.cpuAffinity = spec.CpuAffinity.AffinitySet
	}
	if spec.CpuAllocation != nil {
		d.cpu = merged(d.cpu, spec.CpuAllocation)
	}
	if spec.LatencySensitivity != nil {
		d.latency = spec.LatencySensitivity.Level
	}
}

func editMemory(d *draft, spec *types.VirtualMachineConfigSpec) {
	set(&d.memoryMB, spec.MemoryMB)
	setBool(&d.memoryHotAdd, spec.MemoryHotAddEnabled)
	setBool(&d.locked, spec.MemoryReservationLockedToMax)
	if spec.MemoryAffinity != nil {
		d.memoryAffinity = spec.MemoryAffinity.AffinitySet
	}
	if spec.MemoryAllocation != nil {
		d.memory = merged(d.memory, spec.MemoryAllocation)
		d.sentReservation = spec.MemoryAllocation.Reservation != nil
	}
}

func (m *machine) editVirtualNuma(d *draft, spec *types.VirtualMachineConfigSpec) {
	if spec.VirtualNuma == nil {
		return
	}
	if !m.setsTopology() {
		panic(invalidArgument("spec.virtualNuma", "needs ESXi 8.0 and virtual hardware 20"))
	}
	if cores := spec.VirtualNuma.CoresPerNumaNode; cores != nil {
		d.coresPerNode = *cores
	}
	setBool(&d.exposeOnHotAdd, spec.VirtualNuma.ExposeVnumaOnCpuHotadd)
}

// owned are the extraConfig keys that typed fields own: vSphere ignores them silently
// (comment of VirtualMachineConfigSpec.extraConfig).
var owned = []string{"cpuid.corespersocket", "sched.cpu.", "sched.mem.", "numvcpus", "memsize"}

func editExtraConfig(d *draft, spec *types.VirtualMachineConfigSpec) {
	for _, option := range spec.ExtraConfig {
		value := option.GetOptionValue()
		if value.Key == "" {
			panic(invalidArgument("spec.extraConfig", "a key is empty"))
		}
		if !isOwned(value.Key) {
			d.extraConfig[value.Key] = text(value.Value)
		}
	}
}

func isOwned(key string) bool {
	key = strings.ToLower(key)
	for _, prefix := range owned {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

func set[T comparable](field *T, sent T) {
	var unset T
	if sent != unset {
		*field = sent
	}
}

func setBool(field *bool, sent *bool) {
	if sent != nil {
		*field = *sent
	}
}
