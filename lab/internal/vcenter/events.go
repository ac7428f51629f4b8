package vcenter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"
)

// userNow is the user of a request in the form of events: DOMAIN\user.
func userNow(ctx *simulator.Context) string {
	if ctx.Session == nil {
		return ""
	}
	user, domain, found := strings.Cut(ctx.Session.UserName, "@")
	if !found {
		return user
	}
	return strings.ToUpper(domain) + `\` + user
}

// tellReconfigured posts the event of a reconfigure: the user, the request, and what it changed.
func (m *machine) tellReconfigured(ctx *simulator.Context, user string, spec *types.VirtualMachineConfigSpec, changes *types.ChangesInfoEventArgument) {
	manager := m.lab.registry.EventManager()
	if manager == nil || m.lab.registry.IsESX() {
		return // a host alone has no history
	}
	ctx.Session = &simulator.Session{UserSession: types.UserSession{UserName: user}, Registry: m.lab.registry, Map: m.lab.registry}
	defer func() { ctx.Session = nil }() // a task's context has none
	of := func(name string) types.EntityEventArgument { return types.EntityEventArgument{Name: name} }
	host, center := m.host(), m.lab.registry.Any("Datacenter").Reference()
	event := &types.VmReconfiguredEvent{
		VmEvent: types.VmEvent{Event: types.Event{
			Datacenter: &types.DatacenterEventArgument{EntityEventArgument: of(m.lab.config.Scenario.Datacenter()), Datacenter: center},
			Host:       &types.HostEventArgument{EntityEventArgument: of(host.want.Name), Host: host.Self},
			Vm:         &types.VmEventArgument{EntityEventArgument: of(m.Name), Vm: m.Self},
		}},
		ConfigSpec: *spec, ConfigChanges: changes,
	}
	ctx.WithLock(manager, func() { manager.PostEvent(ctx, &types.PostEvent{EventToPost: event}) })
}

// changed is the difference of two drafts in an event's text: `config.PATH: OLD -> NEW; ` with an
// empty line after each. Seen in https://github.com/puppetlabs/vmpooler/pull/629.
func (m *machine) changed(before, after draft) *types.ChangesInfoEventArgument {
	var changes types.ChangesInfoEventArgument
	old := before.shown()
	for i, now := range after.shown() {
		if was := old[i]; was.value != now.value {
			changes.Modified += fmt.Sprintf("%s: %s -> %s; \n\n", now.path, was.value, now.value)
		}
	}
	keys := m.extraConfig()
	for _, key := range slices.Sorted(maps.Keys(after.extraConfig)) {
		was, value := keys[key], after.extraConfig[key]
		path := fmt.Sprintf("config.extraConfig(%q)", key)
		switch {
		case was == value:
		case was == "":
			changes.Added += fmt.Sprintf("%s: (key = %q, value = %q); \n\n", path, key, value)
		case value == "":
			changes.Deleted += fmt.Sprintf("%s: (key = %q, value = %q); \n\n", path, key, was)
		default:
			changes.Modified += fmt.Sprintf("%s.value: %q -> %q; \n\n", path, was, value)
		}
	}
	return &changes
}

type shown struct{ path, value string }

// shown are a draft's properties in the form of events.
func (d draft) shown() []shown {
	show := func(path string, value any) shown { return shown{"config." + path, fmt.Sprint(value)} }
	text := func(path, value string) shown { return show(path, fmt.Sprintf("%q", value)) }
	set := func(path string, numbers []int32) shown {
		if len(numbers) == 0 {
			return show(path, "<unset>")
		}
		return show(path, "(affinitySet = ("+strings.Trim(strings.ReplaceAll(fmt.Sprint(numbers), " ", ", "), "[]")+"))")
	}
	return []shown{
		text("name", d.name), text("annotation", d.annotation), text("guestId", d.guestID),
		show("hardware.numCPU", d.vcpus), show("hardware.numCoresPerSocket", d.perSocket),
		show("hardware.autoCoresPerSocket", d.autoPerSocket), show("hardware.simultaneousThreads", d.threads),
		show("hardware.memoryMB", d.memoryMB), show("cpuHotAddEnabled", d.cpuHotAdd),
		show("memoryHotAddEnabled", d.memoryHotAdd), set("cpuAffinity", d.cpuAffinity),
		set("memoryAffinity", d.memoryAffinity), show("memoryReservationLockedToMax", d.locked),
		text("latencySensitivity.level", string(d.latency)), show("numaInfo.coresPerNumaNode", d.coresPerNode),
		show("numaInfo.vnumaOnCpuHotaddExposed", d.exposeOnHotAdd), show("rebootPowerOff", d.rebootOff),
		show("memoryAllocation.reservation", *d.memory.Reservation), show("memoryAllocation.limit", *d.memory.Limit),
		show("memoryAllocation.shares.shares", d.memory.Shares.Shares), show("cpuAllocation.reservation", *d.cpu.Reservation),
		show("cpuAllocation.limit", *d.cpu.Limit), show("cpuAllocation.shares.shares", d.cpu.Shares.Shares),
	}
}
