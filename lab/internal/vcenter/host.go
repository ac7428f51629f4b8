package vcenter

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vnuma"
)

// hypervisorMB is ESXi's own memory; reservations share the rest.
const hypervisorMB = 4096

const (
	optionFollow   = "Numa.FollowCoresPerSocket"
	optionPreferHT = "Numa.PreferHT"
)

// host is one ESXi host: the scenario's host with the simulator's object.
type host struct {
	*simulator.HostSystem

	want     scenario.Host
	release  vnuma.Release
	entering atomic.Pointer[simulator.Task] // its task, while maintenance mode is being entered
}

// shape turns the simulator's template into the scenario's host. It replaces whole values and
// changes none in place, since the template is shared by every host of the process.
func (h *host) shape() {
	h.Name, h.Summary.Config.Name = h.want.Name, h.want.Name
	h.Hardware = hardware(h.want, h.release, h.Hardware)
	summary := *h.Summary.Hardware
	summary.Vendor, summary.Model = h.Hardware.SystemInfo.Vendor, h.Hardware.SystemInfo.Model
	summary.MemorySize = h.Hardware.MemorySize
	summary.CpuModel, summary.CpuMhz = h.want.CPUModel, int32(h.want.MHz)
	summary.NumCpuPkgs, summary.NumCpuCores = int16(h.want.Packages), int16(h.want.Cores())
	summary.NumCpuThreads = int16(h.want.Threads())
	h.Summary.Hardware = &summary

	product := h.Config.Product
	product.Version, product.Build = fullVersion(h.want.ESXi.Version), h.want.ESXi.Build
	product.ApiVersion = h.release.String()
	product.FullName = fmt.Sprintf("VMware ESXi %s build-%s", product.Version, product.Build)
	h.Config.Product = product
	h.Summary.Config.Product = &product
	h.Config.HyperThread = hyperThreading(h.want)
	booted := h.onClock(time.Now().Add(-hostUptime))
	h.Runtime.BootTime = &booted
	summaryRuntime := h.Runtime
	h.Summary.Runtime = &summaryRuntime
	h.setOptions()
}

// nameManagers leaves out the managers that the simulator names and does not have.
func (s *Server) nameManagers(h *host) {
	named := reflect.ValueOf(&h.ConfigManager).Elem()
	for i := range named.NumField() {
		ref, ok := named.Field(i).Interface().(*types.ManagedObjectReference)
		if ok && ref != nil && s.registry.Get(*ref) == nil {
			named.Field(i).SetZero()
		}
	}
}

// hostUptime is how long hosts have run when the lab starts: they boot rarely.
const hostUptime = 30 * 24 * time.Hour

// hyperThreading is enabled where a core has two threads; SCAv1 keeps it inactive.
func hyperThreading(want scenario.Host) *types.HostHyperThreadScheduleInfo {
	on := want.ThreadsPerCore == 2
	return &types.HostHyperThreadScheduleInfo{Available: on, Config: on, Active: on && !want.OneThreadPerCore}
}

// compute is a host's parent: its own compute resource, or a cluster.
func (s *Server) compute(h *host) *mo.ComputeResource {
	if cluster, ok := s.registry.Get(*h.Parent).(*simulator.ClusterComputeResource); ok {
		return &cluster.ComputeResource
	}
	return s.registry.Get(*h.Parent).(*mo.ComputeResource)
}

// addUp sums a host's compute resource over the scenario's hosts.
func (s *Server) addUp(resource *mo.ComputeResource) {
	totals := resource.Summary.GetComputeResourceSummary()
	totals.NumCpuCores, totals.NumCpuThreads, totals.TotalCpu, totals.TotalMemory, totals.EffectiveMemory = 0, 0, 0, 0, 0
	for _, h := range s.hosts {
		if *h.Parent != resource.Self {
			continue
		}
		totals.NumCpuCores += int16(h.want.Cores())
		totals.NumCpuThreads += int16(h.want.Threads())
		totals.TotalCpu += int32(h.want.MHz * h.want.Cores())
		totals.TotalMemory += h.Hardware.MemorySize
		totals.EffectiveMemory += h.want.MemoryMB() - hypervisorMB
	}
	totals.EffectiveCpu = totals.TotalCpu
	if pool, ok := s.registry.Get(*resource.ResourcePool).(*simulator.ResourcePool); ok {
		shareOut(&pool.ResourcePool, int64(totals.EffectiveCpu), totals.EffectiveMemory)
	}
}

// shareOut gives a root resource pool all that its host or cluster has for VMs.
func shareOut(root *mo.ResourcePool, cpuMHz, memoryMB int64) {
	has := func(amount int64) types.ResourceAllocationInfo {
		return types.ResourceAllocationInfo{
			Reservation: &amount, ExpandableReservation: types.NewBool(false), Limit: &amount,
			Shares: &types.SharesInfo{Level: types.SharesLevelNormal, Shares: 4000},
		}
	}
	root.Config.CpuAllocation, root.Config.MemoryAllocation = has(cpuMHz), has(memoryMB)
	root.Runtime.Cpu.MaxUsage, root.Runtime.Memory.MaxUsage = cpuMHz, memoryMB<<20
	summary := root.Summary.GetResourcePoolSummary()
	summary.Config, summary.Runtime = root.Config, root.Runtime
}

func hardware(want scenario.Host, release vnuma.Release, template *types.HostHardwareInfo) *types.HostHardwareInfo {
	made := *template
	hz := int64(want.MHz) * 1_000_000
	memory := want.MemoryMB() << 20
	features := template.CpuPkg[0].CpuFeature

	made.SystemInfo = types.HostSystemInfo{Vendor: "vnuma", Model: "Lab host", Uuid: template.SystemInfo.Uuid}
	if want.Nested { // recorded of an ESXi in a VM
		made.SystemInfo.Vendor, made.SystemInfo.Model = "VMware, Inc.", "VMware7,1"
	}
	released := time.Date(2016, time.March, 1, 0, 0, 0, 0, time.UTC)
	made.BiosInfo = &types.HostBIOSInfo{BiosVersion: "1.0-lab", ReleaseDate: &released, Vendor: "vnuma"}
	made.CpuInfo = types.HostCpuInfo{
		NumCpuPackages: int16(want.Packages), NumCpuCores: int16(want.Cores()),
		NumCpuThreads: int16(want.Threads()), Hz: hz,
	}
	made.MemorySize = memory
	made.CpuPkg = nil
	perPackage := want.Threads() / want.Packages
	for p := range want.Packages {
		made.CpuPkg = append(made.CpuPkg, types.HostCpuPackage{
			Index: int16(p), Vendor: "intel", Hz: hz, BusHz: 100_000_000, Description: want.CPUModel,
			ThreadId: descending(p*perPackage, (p+1)*perPackage), CpuFeature: features,
		})
	}
	made.NumaInfo = &types.HostNumaInfo{Type: "NUMA", NumNodes: int32(want.NumaNodes)}
	for node, cpus := range want.NodeCPUs() {
		described := nodeMemory(node, want.NumaNodes, memory, release)
		described.TypeId, described.CpuID = byte(node), descending(cpus[0], cpus[0]+len(cpus))
		made.NumaInfo.NumaNode = append(made.NumaInfo.NumaNode, described)
	}
	return &made
}

// nodeMemory is what ESXi says of a node's memory. Since 8.0 there is its size. Before, there is one of its
// ranges, which need not have anything to do with its size: a Dell R720 with 6.7 answers with a range of one
// byte for its first node and one of nearly all memory for its second.
func nodeMemory(node, nodes int, memory int64, release vnuma.Release) types.HostNumaNode {
	perNode := memory / int64(nodes)
	switch {
	case release.AtLeast(8, 0):
		return types.HostNumaNode{MemorySize: perNode, MemoryRangeBegin: int64(node) * perNode, MemoryRangeLength: perNode}
	case node == nodes-1:
		return types.HostNumaNode{MemoryRangeLength: memory - 1<<20}
	}
	return types.HostNumaNode{MemoryRangeBegin: 13, MemoryRangeLength: 1}
}

// descending lists logical CPUs from the highest: the API promises no order, so clients must sort.
func descending(from, to int) []int16 {
	var cpus []int16
	for cpu := to - 1; cpu >= from; cpu-- {
		cpus = append(cpus, int16(cpu))
	}
	return cpus
}

// setOptions adds the advanced settings that matter to NUMA.
func (h *host) setOptions() {
	kept := slices.DeleteFunc(slices.Clone(h.Config.Option), func(option types.BaseOptionValue) bool {
		return strings.HasPrefix(option.GetOptionValue().Key, "Numa.")
	})
	h.Config.Option = append(kept, numaOptions(h.want, h.release.AtLeast(6, 5))...)
}

// numaOptions are a host's advanced NUMA settings (vSphere Resource Management). From 6.5 on there is one
// to follow the cores per socket.
func numaOptions(want scenario.Host, canFollow bool) []types.BaseOptionValue {
	follow := int64(0)
	if want.FollowCoresPerSocket {
		follow = 1
	}
	options := []types.BaseOptionValue{
		&types.OptionValue{Key: "Numa.AutoMemAffinity", Value: int64(1)},
		&types.OptionValue{Key: optionPreferHT, Value: int64(0)},
		&types.OptionValue{Key: "Numa.RebalanceEnable", Value: int64(1)},
	}
	if canFollow {
		options = append(options, &types.OptionValue{Key: optionFollow, Value: follow})
	}
	return options
}

// vnuma is what decides a VM's layout on the host, including the current advanced options.
func (h *host) vnuma() vnuma.Host {
	want := h.want
	return vnuma.Host{
		NumaNodes: want.NumaNodes, CoresPerNode: want.Cores() / want.NumaNodes,
		ThreadsPerCore:       want.ThreadsPerCore,
		FollowCoresPerSocket: h.optionOn(optionFollow), PreferHT: h.optionOn(optionPreferHT),
	}
}

// optionOn says whether an advanced option is 1.
func (h *host) optionOn(key string) bool {
	return slices.ContainsFunc(h.Config.Option, func(option types.BaseOptionValue) bool {
		value := option.GetOptionValue()
		return value.Key == key && fmt.Sprint(value.Value) == "1"
	})
}

func fullVersion(version string) string {
	if strings.Count(version, ".") == 1 {
		return version + ".0"
	}
	return version
}
