package vcenter

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vnuma"
)

// machine is a VM whose configuration and power the lab controls itself. It replaces the
// simulator's own VM in every session; everything below is guarded by that VM's lock.
type machine struct {
	*simulator.VirtualMachine // must be first: the simulator looks for it there

	lab      *Server
	at       atomic.Pointer[host]
	scenario scenario.VM
	service  guest.Service

	boots      atomic.Int64           // power-ons so far; read without the lock when faults are dealt out
	boot       *guest.Boot            // of the current or the latest power-on
	generation int                    // outdates the timers of an earlier boot
	stopping   bool                   // a guest shutdown is in progress
	rebootOff  bool                   // the next guest reboot powers off
	toolsNever bool                   // Tools do not start in this boot
	pending    *pending               // an unanswered question
	absent     []types.PropertyChange // what the server leaves out until the next reconfigure
	running    atomic.Bool            // whether it is on; read without the lock by the file service

	// The resources that a running VM takes from its host, for the admission and placement of others.
	reservedWhileOn atomic.Int64          // MB
	placed          atomic.Pointer[[]int] // vCPUs on each physical NUMA node
}

// locked runs work outside any request, with the VM's lock.
func (m *machine) locked(work func(*simulator.Context)) {
	ctx := m.lab.context()
	defer m.lab.registry.AcquireLock(ctx, m.VirtualMachine)() // WithLock would keep it if work panics
	work(ctx)
}

// publish sets properties and notifies watchers. Paths are leaves, so that watchers of a
// leaf and of any parent are both notified.
func (m *machine) publish(ctx *simulator.Context, changes []types.PropertyChange) {
	ctx.Update(m.VirtualMachine, changes)
}

// host is where the VM runs, or is registered.
func (m *machine) host() *host { return m.at.Load() }

func (m *machine) isOn() bool {
	return m.Runtime.PowerState == types.VirtualMachinePowerStatePoweredOn
}

func (m *machine) toolsRunning() bool {
	return m.Guest.ToolsRunningStatus == string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
}

// hardware is the virtual hardware version: 11 for vmx-11.
func (m *machine) hardware() int {
	version, err := strconv.Atoi(strings.TrimPrefix(m.Config.Version, "vmx-"))
	if err != nil {
		return m.scenario.Hardware
	}
	return version
}

// nextChangeVersion is a timestamp, like vCenter's, and never the same twice.
func (m *machine) nextChangeVersion() string {
	const layout = "2006-01-02T15:04:05.000000Z"
	next := time.Now().UTC()
	for next.Format(layout) <= m.Config.ChangeVersion {
		next = next.Add(time.Microsecond)
	}
	return next.Format(layout)
}

// shape is the part of the VM's configuration that decides its layout.
func (m *machine) shape() vnuma.VM {
	shape := vnuma.VM{
		VCPUs:       int(m.Config.Hardware.NumCPU),
		Hardware:    m.hardware(),
		CPUHotAdd:   isTrue(m.Config.CpuHotAddEnabled),
		ExtraConfig: m.extraConfig(),
	}
	if cores := m.Config.Hardware.NumCoresPerSocket; cores != nil {
		shape.CoresPerSocket = int(*cores)
	}
	shape.AutoCoresPerSocket = isTrue(m.Config.Hardware.AutoCoresPerSocket)
	if info := m.Config.NumaInfo; info != nil {
		shape.ExposeOnHotAdd = isTrue(info.VnumaOnCpuHotaddExposed)
		if !isTrue(info.AutoCoresPerNumaNode) && info.CoresPerNumaNode != nil {
			shape.CoresPerNumaNode = int(*info.CoresPerNumaNode)
		}
	}
	return shape
}

func (m *machine) extraConfig() map[string]string { return optionMap(m.Config.ExtraConfig) }

func (m *machine) affinity() []int32 { return affinitySet(m.Config.CpuAffinity) }

func (m *machine) memoryReservation() int64 {
	if allocation := m.Config.MemoryAllocation; allocation != nil && allocation.Reservation != nil {
		return *allocation.Reservation
	}
	return 0
}

// withExtraConfig returns the VM's extraConfig with keys set, or removed where the value is empty.
func withExtraConfig(config []types.BaseOptionValue, keys map[string]string) []types.BaseOptionValue {
	changed := slices.DeleteFunc(slices.Clone(config), func(option types.BaseOptionValue) bool {
		return hasKey(keys, option.GetOptionValue().Key)
	})
	for _, key := range sortedKeys(keys) {
		if keys[key] != "" {
			changed = append(changed, &types.OptionValue{Key: key, Value: keys[key]})
		}
	}
	return changed
}

// hasKey looks a key up without case, as ESXi does.
func hasKey(keys map[string]string, key string) bool {
	return slices.ContainsFunc(sortedKeys(keys), func(candidate string) bool { return strings.EqualFold(candidate, key) })
}

func sortedKeys(keys map[string]string) []string { return slices.Sorted(maps.Keys(keys)) }

func isTrue(value *bool) bool { return value != nil && *value }
