package vcenter

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

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

// showLimits puts into the ConfigOption what check refuses: of a real one's hundreds of options, only this.
func (s *Server) showLimits(h *host) {
	browser := s.registry.Get(*s.compute(h).EnvironmentBrowser).(*simulator.EnvironmentBrowser)
	shares := types.ResourceAllocationOption{
		SharesOption: types.SharesOption{DefaultLevel: types.SharesLevelNormal},
	}
	browser.QueryConfigOptionResponse.Returnval = &types.VirtualMachineConfigOption{
		Version: h.Config.Product.Version,
		HardwareOptions: types.VirtualHardwareOption{
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

// overrideDRS gives VMs their own DRS settings in their clusters.
func (s *Server) overrideDRS(ctx context.Context, client *vim25.Client) error {
	for _, m := range s.order {
		if m.scenario.DRS == "" {
			continue
		}
		enabled := m.scenario.DRS != "disabled"
		info := &types.ClusterDrsVmConfigInfo{Key: m.Self, Enabled: &enabled}
		if enabled {
			info.Behavior = types.DrsBehavior(m.scenario.DRS)
		}
		override := types.ClusterDrsVmConfigSpec{
			ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd}, Info: info,
		}
		cluster := object.NewClusterComputeResource(client, *m.host().Parent)
		spec := types.ClusterConfigSpecEx{DrsVmConfigSpec: []types.ClusterDrsVmConfigSpec{override}}
		if err := reconfigureCluster(ctx, cluster, spec); err != nil {
			return fmt.Errorf("DRS override of %s: %w", m.scenario.Path(), err)
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

// overrideHA gives VMs their own settings of HA's VM monitoring in their clusters.
func (s *Server) overrideHA(ctx context.Context, client *vim25.Client) error {
	for _, m := range s.order {
		state := m.scenario.Around.VMMonitoring
		if state == "" {
			continue
		}
		own := &types.ClusterVmToolsMonitoringSettings{ClusterSettings: types.NewBool(false), VmMonitoring: state}
		override := types.ClusterDasVmConfigSpec{
			ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationAdd},
			Info: &types.ClusterDasVmConfigInfo{
				Key: m.Self, DasSettings: &types.ClusterDasVmSettings{VmToolsMonitoringSettings: own},
			},
		}
		cluster := object.NewClusterComputeResource(client, *m.host().Parent)
		spec := types.ClusterConfigSpecEx{DasVmConfigSpec: []types.ClusterDasVmConfigSpec{override}}
		if err := reconfigureCluster(ctx, cluster, spec); err != nil {
			return fmt.Errorf("VM monitoring of %s: %w", m.scenario.Path(), err)
		}
	}
	return nil
}

func (s *Server) hostNamed(name string) *host {
	for _, h := range s.hosts {
		if h.want.Name == name {
			return h
		}
	}
	return nil
}

func (s *Server) hostOf(ref types.ManagedObjectReference) *host {
	for _, h := range s.hosts {
		if h.Self == ref {
			return h
		}
	}
	return nil
}
