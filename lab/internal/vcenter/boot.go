package vcenter

import (
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vmlog"
	"vnuma.dev/lab/internal/vnuma"
)

// start turns the VM on: it decides what the guest gets, from the current configuration.
func (m *machine) start(ctx *simulator.Context, faults *injector) {
	number := int(m.boots.Add(1))
	shape := m.shape()
	layout := vnuma.Decide(m.host().release, vnuma.Reading(m.lab.config.Scenario.Reading), m.host().vnuma(), shape)
	previous := m.boot
	m.boot = m.newBoot(number, shape, layout)
	m.boot.Faults = faults.sqlFaults(m.scenario, number)
	clients := layout.Clients
	if faults.take(scenario.TopologyStuck, m.scenario, number) != nil {
		keepTopology(m.boot, previous)
		clients = sizesOf(m.boot.Nodes)
	}
	m.toolsNever = faults.take(scenario.ToolsNever, m.scenario, number) != nil
	m.generation++
	m.stopping = false

	changes := append(guestOff(), powerState(poweredOn)...)
	changes = append(changes,
		types.PropertyChange{Name: "runtime.bootTime", Val: m.host().onClock(m.boot.PoweredOnAt)},
		types.PropertyChange{Name: "summary.runtime.bootTime", Val: m.host().onClock(m.boot.PoweredOnAt)})
	m.publish(ctx, append(changes, m.assigned(layout)...))
	m.running.Store(true)
	stored := vnuma.Store(m.host().release, shape, layout)
	m.writeLog(shape, clients, m.extraConfig(), stored, faults)
	m.storeKeys(ctx, stored)
	m.tell("boot", Event{
		"host": m.host().want.Name, "number": number, "vcpus": m.boot.VCPUs,
		"sockets": m.boot.Sockets, "cores_per_socket": m.boot.CoresPerSocket, "nodes": m.boot.Nodes,
		"host_nodes": m.boot.HostNodes, "affinity": m.boot.Affinity, "memory_affinity": affinitySet(m.Config.MemoryAffinity),
		"clients": clients, "rule": layout.Rule,
	})
}

func (m *machine) newBoot(number int, shape vnuma.VM, layout vnuma.Layout) *guest.Boot {
	var up time.Duration
	if number == 1 && m.scenario.Power != scenario.Off {
		up = time.Duration(m.scenario.Around.UpMinutes * float64(time.Minute))
	}
	return &guest.Boot{
		VM: m.Name, UUID: m.Config.Uuid, Number: number, PoweredOnAt: time.Now().Add(-up), UpFor: up,
		VCPUs: shape.VCPUs, Sockets: shape.VCPUs / layout.CoresPerSocket, CoresPerSocket: layout.CoresPerSocket,
		MemoryMB: int64(m.Config.Hardware.MemoryMB), Nodes: vnuma.VCPUs(layout.Sizes), Affinity: m.affinity(),
		FullyReserved: m.allMemoryReserved(),
		HostNodes:     vnuma.Place(layout.Sizes, m.affinity(), m.host().want.NodeCPUs(), m.neighbours(), vnuma.AllowedNodes(shape.ExtraConfig)),
	}
}

// keepTopology gives a boot the shape of an earlier one, as far as its number of vCPUs allows.
func keepTopology(boot, previous *guest.Boot) {
	if previous == nil || previous.VCPUs != boot.VCPUs {
		return
	}
	boot.Nodes, boot.HostNodes = slices.Clone(previous.Nodes), slices.Clone(previous.HostNodes)
	boot.Sockets, boot.CoresPerSocket = previous.Sockets, previous.CoresPerSocket
}

// neighbours counts the vCPUs that other running VMs have on each NUMA node of this VM's host.
func (m *machine) neighbours() []int {
	load := make([]int, m.host().want.NumaNodes)
	for _, other := range m.lab.order {
		if other == m || other.host() != m.host() {
			continue
		}
		if placed := other.placed.Load(); placed != nil {
			for node, vcpus := range *placed {
				load[node] += vcpus
			}
		}
	}
	return load
}

// assigned is what power-on sets where the configuration is automatic (vSphere 8).
func (m *machine) assigned(layout vnuma.Layout) []types.PropertyChange {
	m.occupy()
	var changes []types.PropertyChange
	if isTrue(m.Config.Hardware.AutoCoresPerSocket) {
		changes = append(changes, types.PropertyChange{Name: "config.hardware.numCoresPerSocket", Val: int32(layout.CoresPerSocket)})
	}
	if info := m.Config.NumaInfo; info != nil && isTrue(info.AutoCoresPerNumaNode) {
		changes = append(changes, types.PropertyChange{Name: "config.numaInfo.coresPerNumaNode", Val: int32(layout.Sizes[0])})
	}
	return changes
}

// occupy takes the boot's share of the host: its reservation, and its vCPUs on each physical NUMA node.
func (m *machine) occupy() {
	perNode := make([]int, m.host().want.NumaNodes)
	for i, node := range m.boot.HostNodes {
		perNode[node] += len(m.boot.Nodes[i])
	}
	m.placed.Store(&perNode)
	m.reservedWhileOn.Store(m.memoryReservation())
}

// released is what the configuration shows once the VM is off: what a power-on assigned is gone (recorded of 8.0).
func (m *machine) released() []types.PropertyChange {
	var changes []types.PropertyChange
	if isTrue(m.Config.Hardware.AutoCoresPerSocket) {
		changes = append(changes, types.PropertyChange{Name: "config.hardware.numCoresPerSocket", Val: int32(1)})
	}
	if info := m.Config.NumaInfo; info != nil && isTrue(info.AutoCoresPerNumaNode) {
		changes = append(changes, types.PropertyChange{Name: "config.numaInfo.coresPerNumaNode"})
	}
	return changes
}

// storeKeys writes extraConfig that ESXi itself changes, which makes a new version of the configuration.
func (m *machine) storeKeys(ctx *simulator.Context, keys map[string]string) {
	before := m.extraConfig()
	if !slices.ContainsFunc(sortedKeys(keys), func(key string) bool { return before[key] != keys[key] }) {
		return
	}
	config := types.PropertyChange{Name: "config.extraConfig", Val: withExtraConfig(m.Config.ExtraConfig, keys)}
	m.publish(ctx, append(m.version(), config))
}

// bootAfter starts Tools, then SQL Server.
func (m *machine) bootAfter(times scenario.Boot) {
	m.after(seconds(times.ToolsSeconds), func(ctx *simulator.Context) {
		if !m.toolsNever {
			m.publish(ctx, m.guestRunning())
			m.tell("tools_running", Event{"boot": m.boot.Number})
		}
		m.after(seconds(times.SQLSeconds), func(*simulator.Context) {
			if err := m.startService(); err != nil {
				log.Printf("%s: %v", m.scenario.Path(), err)
			}
		})
	})
}

func (m *machine) startService() error {
	if m.service == nil {
		return nil
	}
	if err := m.service.Start(*m.boot); err != nil {
		m.tell("sql_failed", Event{"reason": err.Error()})
		return err
	}
	if !m.boot.Faults.NeverListens {
		m.tell("sql_listening", Event{"boot": m.boot.Number, "address": m.service.Addr()})
	}
	return nil
}

// restart reboots the guest in place: same power-on, same topology.
func (m *machine) restart(ctx *simulator.Context) {
	m.generation++
	m.stopping = false
	if m.service != nil {
		m.service.Stop()
	}
	m.publish(ctx, guestOff())
	m.bootAfter(m.lab.config.Scenario.Boot)
}

func (m *machine) powerOff(ctx *simulator.Context) {
	m.abandon()
	m.stopping = false
	changes := append(guestOff(), powerState(poweredOff)...)
	changes = append(changes,
		types.PropertyChange{Name: "runtime.bootTime"}, types.PropertyChange{Name: "summary.runtime.bootTime"})
	m.publish(ctx, append(changes, m.released()...))
	m.tell("power_off", Event{"boot": m.boots.Load()})
	m.lab.emptied(m.host())
}

// suspend saves the VM's state: its guest neither runs nor ends.
func (m *machine) suspend(ctx *simulator.Context) {
	m.abandon()
	m.publish(ctx, append(guestOff(), powerState(suspended)...))
}

// resume continues a suspended VM with the topology of its power-on. Only its SQL Server starts anew, unlike a real one.
func (m *machine) resume(ctx *simulator.Context) {
	m.occupy()
	m.running.Store(true)
	m.publish(ctx, powerState(poweredOn))
	m.bootAfter(m.lab.config.Scenario.Boot)
}

// abandon ends everything of the current boot.
func (m *machine) abandon() {
	m.generation++
	m.running.Store(false)
	m.reservedWhileOn.Store(0)
	m.placed.Store(nil)
	if m.service != nil {
		m.service.Stop()
	}
}

// after runs work later, unless the VM has been switched off, on or restarted since.
func (m *machine) after(delay time.Duration, work func(*simulator.Context)) {
	generation := m.generation
	time.AfterFunc(delay, func() {
		m.locked(func(ctx *simulator.Context) {
			if m.generation == generation {
				surviving(func() { work(ctx) })
			}
		})
	})
}

const (
	logName  = "vmware.log"
	keptLogs = 6 // older ones, vmware-1.log the newest of them
)

// logFolder is the VM's log directory as a path on the datastore.
func (m *machine) logFolder() string {
	_, folder, _ := strings.Cut(m.Config.Files.LogDirectory, "] ")
	return folder
}

// writeLog starts the vmware.log of this power-on; the previous one becomes vmware-1.log. found is the
// extraConfig at power-on, stored what power-on added.
func (m *machine) writeLog(shape vnuma.VM, clients []int, found, stored map[string]string, faults *injector) {
	missing := faults.take(scenario.LogMissing, m.scenario, m.boot.Number) != nil
	stale := faults.take(scenario.LogStale, m.scenario, m.boot.Number) != nil
	file := filepath.Join(m.lab.storage, m.logFolder(), logName)
	if stale {
		return
	}
	rotate(file)
	if missing {
		return
	}
	product := m.host().Config.Product
	text := vmlog.Text(vmlog.PowerOn{
		At: m.boot.PoweredOnAt, Release: m.host().release, Version: product.Version, Build: product.Build, Name: m.Name,
		VCPUs: m.boot.VCPUs, Sockets: m.boot.Sockets, CoresPerSocket: m.boot.CoresPerSocket, MemoryMB: m.boot.MemoryMB,
		Sizes: sizesOf(m.boot.Nodes), Clients: clients,
		HotAdd: shape.CPUHotAdd, ExposeOnHotAdd: shape.ExposeOnHotAdd, ExtraConfig: found, Stored: stored,
	})
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Printf("%s: %v", m.scenario.Path(), err)
	}
}

func sizesOf(nodes [][]int) []int {
	sizes := make([]int, len(nodes))
	for i, node := range nodes {
		sizes[i] = len(node)
	}
	return sizes
}

// rotate makes room for a new log and keeps some older ones.
func rotate(file string) {
	numbered := func(number int) string {
		return strings.TrimSuffix(file, ".log") + fmt.Sprintf("-%d.log", number)
	}
	for number := keptLogs - 1; number > 0; number-- {
		os.Rename(numbered(number), numbered(number+1)) // fails where there are fewer
	}
	os.Rename(file, numbered(1))
}

// addresses are what Tools report: the one on which the guest's SQL Server listens, unless the scenario sets others.
func (m *machine) addresses() []string {
	if m.scenario.Around.GuestAddresses != nil || m.service == nil {
		return m.scenario.Around.GuestAddresses
	}
	address, _, err := net.SplitHostPort(m.service.Addr())
	if err != nil { // it comes from a listener
		panic(err)
	}
	return []string{address}
}

// network is the guest's one network card with these addresses.
func network(addresses []string) []types.GuestNicInfo {
	card := types.GuestNicInfo{
		Network: "VM Network", IpAddress: addresses, MacAddress: "00:50:56:00:00:01", Connected: true, DeviceConfigId: 4000,
		IpConfig: &types.NetIpConfigInfo{},
	}
	for _, address := range addresses {
		card.IpConfig.IpAddress = append(card.IpConfig.IpAddress, types.NetIpConfigInfoIpAddress{
			IpAddress: address, PrefixLength: 8, State: string(types.NetIpConfigInfoIpAddressStatusPreferred),
		})
	}
	return []types.GuestNicInfo{card}
}

func powerState(state types.VirtualMachinePowerState) []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "runtime.powerState", Val: state},
		{Name: "summary.runtime.powerState", Val: state},
	}
}

// guestOff is what vCenter shows of a guest without running Tools: nothing remains of an earlier boot.
func guestOff() []types.PropertyChange {
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)},
		{Name: "guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsNotRunning},
		{Name: "guest.toolsVersionStatus2", Val: string(types.VirtualMachineToolsVersionStatusGuestToolsCurrent)},
		{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateNotRunning)},
		{Name: "guest.guestOperationsReady", Val: false},
		{Name: "guest.ipAddress", Val: ""},
		{Name: "guest.net", Val: []types.GuestNicInfo(nil)},
		{Name: "guest.hostName", Val: ""},
		{Name: "guestHeartbeatStatus", Val: types.ManagedEntityStatusGray},
		{Name: "summary.guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsNotRunning)},
		{Name: "summary.guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsNotRunning},
		{Name: "summary.guest.ipAddress", Val: ""},
		{Name: "summary.guest.hostName", Val: ""},
	}
}

func (m *machine) guestRunning() []types.PropertyChange {
	os := m.host().guestOS()
	hostName := strings.ToUpper(m.Name)
	if m.scenario.Around.GuestName != "" {
		hostName = m.scenario.Around.GuestName
	}
	addresses, first := m.addresses(), ""
	if len(addresses) > 0 {
		first = addresses[0]
	}
	return []types.PropertyChange{
		{Name: "guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsOk},
		{Name: "guest.guestState", Val: string(types.VirtualMachineGuestStateRunning)},
		{Name: "guest.guestOperationsReady", Val: true},
		{Name: "guest.guestId", Val: string(os.id)},
		{Name: "guest.guestFamily", Val: string(types.VirtualMachineGuestOsFamilyWindowsGuest)},
		{Name: "guest.guestFullName", Val: os.name},
		{Name: "guest.ipAddress", Val: first},
		{Name: "guest.net", Val: network(addresses)},
		{Name: "guest.hostName", Val: hostName},
		{Name: "guestHeartbeatStatus", Val: types.ManagedEntityStatusGreen},
		{Name: "summary.guest.toolsRunningStatus", Val: string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)},
		{Name: "summary.guest.toolsStatus", Val: types.VirtualMachineToolsStatusToolsOk},
		{Name: "summary.guest.guestFullName", Val: os.name},
		{Name: "summary.guest.ipAddress", Val: first},
		{Name: "summary.guest.hostName", Val: hostName},
	}
}
