package vcenter

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/simulator/esx"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
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

// createHosts creates clusters and hosts, and mounts the one datastore on all of them.
func (s *Server) createHosts(ctx context.Context, client *vim25.Client, folder *object.Folder) error {
	clusters := map[string]*object.ClusterComputeResource{}
	for _, cluster := range s.config.Scenario.Clusters {
		made, err := folder.CreateCluster(ctx, cluster.Name, types.ClusterConfigSpecEx{})
		if err == nil {
			err = reconfigureCluster(ctx, made, clusterSpec(cluster)) // the simulator ignores the spec here
		}
		if err != nil {
			return fmt.Errorf("cluster %s: %w", cluster.Name, err)
		}
		s.watchVMs(made.Reference(), cluster)
		clusters[cluster.Name] = made
	}
	// A cluster of the simulator checks the releases of its hosts when one is added, and panics on unknown ones such as
	// 8.0.3: hosts become the scenario's when all have been added.
	created := make([]types.ManagedObjectReference, len(s.config.Scenario.Hosts))
	for i, want := range s.config.Scenario.Hosts {
		var err error
		if created[i], err = createHost(ctx, folder, clusters[want.Cluster], want.Name); err != nil {
			return fmt.Errorf("host %s: %w", want.Name, err)
		}
	}
	for i, want := range s.config.Scenario.Hosts {
		if err := s.addHost(ctx, client, created[i], want); err != nil {
			return fmt.Errorf("host %s: %w", want.Name, err)
		}
	}
	for _, h := range s.hosts {
		s.addUp(s.compute(h))
	}
	return nil
}

func createHost(
	ctx context.Context, folder *object.Folder, cluster *object.ClusterComputeResource, name string,
) (host types.ManagedObjectReference, err error) {
	spec := types.HostConnectSpec{HostName: name}
	var task *object.Task
	if cluster == nil {
		task, err = folder.AddStandaloneHost(ctx, spec, true, nil, nil)
	} else {
		task, err = cluster.AddHost(ctx, spec, true, nil, nil)
	}
	if err != nil {
		return host, err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return host, err
	}
	return info.Result.(types.ManagedObjectReference), nil
}

// furnishHost makes the API's one host, without vCenter, the scenario's.
func (s *Server) furnishHost(ctx context.Context, client *vim25.Client, identity string) error {
	want := s.config.Scenario.Hosts[0]
	if err := s.addHost(ctx, client, s.registry.Any("HostSystem").Reference(), want); err != nil {
		return fmt.Errorf("host %s: %w", want.Name, err)
	}
	h := s.hosts[0]
	h.Summary.Hardware.Uuid, h.Hardware.SystemInfo.Uuid = identity, identity
	s.addUp(s.compute(h))
	return nil
}

// addHost gives a host of the simulator the scenario's hardware and options, and the one datastore.
func (s *Server) addHost(ctx context.Context, client *vim25.Client, ref types.ManagedObjectReference, want scenario.Host) error {
	h := &host{HostSystem: s.registry.Get(ref).(*simulator.HostSystem), want: want, release: want.Release()}
	h.shape()
	for _, cluster := range s.config.Scenario.Clusters {
		if cluster.Name == want.Cluster {
			h.Summary.CurrentEVCModeKey = cluster.EVC
		}
	}
	s.addClock(h)
	// The host's own manager of advanced options shows them, and keeps both consistent.
	s.registry.Put(simulator.NewOptionManager(h.ConfigManager.AdvancedOption, nil, &h.Config.Option).(mo.Reference))
	if want.Cluster == "" {
		s.compute(h).Name = want.Name
	}
	s.nameManagers(h)
	s.showLimits(h)
	s.hosts = append(s.hosts, h)
	datastores, err := object.NewHostSystem(client, ref).ConfigManager().DatastoreSystem(ctx)
	if err != nil {
		return err
	}
	_, err = datastores.CreateLocalDatastore(ctx, datastore, s.storage)
	return err
}

// showLimits puts into the ConfigOption what check refuses, and the devices that every VM has: of a real one's hundreds of
// options, only this.
func (s *Server) showLimits(h *host) {
	browser := s.registry.Get(*s.compute(h).EnvironmentBrowser).(*simulator.EnvironmentBrowser)
	shares := types.ResourceAllocationOption{
		SharesOption: types.SharesOption{DefaultLevel: types.SharesLevelNormal},
	}
	browser.QueryConfigOptionResponse.Returnval = &types.VirtualMachineConfigOption{
		Version:       h.Config.Product.Version,
		DefaultDevice: esx.VirtualDevice,
		HardwareOptions: types.VirtualHardwareOption{
			HwVersion:            int32(scenario.NewestHardware(h.release)),
			NumCoresPerSocket:    types.IntOption{Min: 1, Max: maxCoresPerSocket, DefaultValue: 1},
			ResourceConfigOption: types.ResourceConfigOption{CpuAllocationOption: shares, MemoryAllocationOption: shares},
		},
	}
}

func clusterSpec(cluster scenario.Cluster) types.ClusterConfigSpecEx {
	enabled := cluster.DRS != "off"
	config := &types.ClusterDrsConfigInfo{Enabled: &enabled, VmotionRate: 3}
	if enabled {
		config.DefaultVmBehavior = types.DrsBehavior(cluster.DRS)
	}
	if cluster.DRS == "" {
		config.DefaultVmBehavior = types.DrsBehaviorFullyAutomated
	}
	return types.ClusterConfigSpecEx{DrsConfig: config, DasConfig: &types.ClusterDasConfigInfo{Enabled: &cluster.HA}}
}

func reconfigureCluster(ctx context.Context, cluster *object.ClusterComputeResource, spec types.ClusterConfigSpecEx) error {
	task, err := cluster.Reconfigure(ctx, &spec, true)
	if err != nil {
		return err
	}
	return task.Wait(ctx)
}

// override gives VMs their own settings of DRS and of HA's VM monitoring in their clusters.
func (s *Server) override(ctx context.Context, client *vim25.Client) error {
	add := types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}
	for _, m := range s.order {
		var spec types.ClusterConfigSpecEx
		if behavior := m.scenario.DRS; behavior != "" {
			enabled := behavior != "disabled"
			info := &types.ClusterDrsVmConfigInfo{Key: m.Self, Enabled: &enabled}
			if enabled {
				info.Behavior = types.DrsBehavior(behavior)
			}
			spec.DrsVmConfigSpec = []types.ClusterDrsVmConfigSpec{{ArrayUpdateSpec: add, Info: info}}
		}
		if state := m.scenario.Around.VMMonitoring; state != "" {
			own := &types.ClusterVmToolsMonitoringSettings{ClusterSettings: types.NewBool(false), VmMonitoring: state}
			info := &types.ClusterDasVmConfigInfo{Key: m.Self, DasSettings: &types.ClusterDasVmSettings{VmToolsMonitoringSettings: own}}
			spec.DasVmConfigSpec = []types.ClusterDasVmConfigSpec{{ArrayUpdateSpec: add, Info: info}}
		}
		if spec.DrsVmConfigSpec == nil && spec.DasVmConfigSpec == nil {
			continue
		}
		if err := reconfigureCluster(ctx, object.NewClusterComputeResource(client, *m.host().Parent), spec); err != nil {
			return fmt.Errorf("cluster settings of %s: %w", m.scenario.Path(), err)
		}
	}
	return nil
}

// watchVMs sets what the simulator's reconfiguration omits: HA's VM monitoring, admission control and defaults, and vSAN.
func (s *Server) watchVMs(ref types.ManagedObjectReference, want scenario.Cluster) {
	cluster := s.registry.Get(ref).(*simulator.ClusterComputeResource)
	state := want.VMMonitoring
	if state == "" {
		state = string(types.ClusterDasConfigInfoVmMonitoringStateVmMonitoringDisabled)
	}
	config := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
	config.DasConfig.VmMonitoring, config.DasConfig.AdmissionControlEnabled = state, &want.AdmissionControl
	config.DasConfig.DefaultVmSettings = &types.ClusterDasVmSettings{
		RestartPriority: string(types.ClusterDasVmSettingsRestartPriorityMedium), IsolationResponse: string(types.ClusterDasVmSettingsIsolationResponseNone),
	}
	config.VsanConfigInfo = &types.VsanClusterConfigInfo{Enabled: types.NewBool(false)}
}

func (s *Server) hostNamed(name string) *host {
	return s.hostWith(func(h *host) bool { return h.want.Name == name })
}

// hostWith is the first host that has it, nil for none.
func (s *Server) hostWith(has func(*host) bool) *host {
	if at := slices.IndexFunc(s.hosts, has); at >= 0 {
		return s.hosts[at]
	}
	return nil
}

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
