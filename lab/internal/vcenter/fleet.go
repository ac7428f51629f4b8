package vcenter

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vnuma"
)

// addFleet adds the scenario's fleet to the inventory. Its objects have properties and no methods:
// every change to them is refused.
func (s *Server) addFleet(ctx context.Context, folders *object.DatacenterFolders) error {
	fleet := s.config.Scenario.Fleet
	if fleet.Hosts == 0 {
		return nil
	}
	vmFolders := make([]*mo.Folder, fleet.Clusters())
	clusters := make([]*mo.ClusterComputeResource, fleet.Clusters())
	hostFolder := s.folder(folders.HostFolder.Reference())
	for i := range clusters {
		clusters[i] = s.fleetCluster(hostFolder, i)
		made, err := folders.VmFolder.CreateFolder(ctx, fmt.Sprintf("cluster%02d", i))
		if err != nil {
			return err
		}
		vmFolders[i] = s.folder(made.Reference())
	}
	hosts := make([]*mo.HostSystem, fleet.Hosts)
	for i := range hosts {
		want := fleet.HostAt(i)
		hosts[i] = s.fleetHost(clusters[want.Cluster], want)
	}
	for i := range fleet.VMs {
		want := fleet.VMAt(i)
		vm := s.fleetVM(vmFolders[fleet.HostAt(i%fleet.Hosts).Cluster], want)
		if want.Host >= 0 {
			host := hosts[want.Host]
			vm.Runtime.Host, vm.Summary.Runtime.Host = &host.Self, &host.Self
			host.Vm = append(host.Vm, vm.Self)
		}
	}
	return nil
}

func (s *Server) folder(ref types.ManagedObjectReference) *mo.Folder {
	return &s.registry.Get(ref).(*simulator.Folder).Folder
}

func (s *Server) fleetCluster(parent *mo.Folder, number int) *mo.ClusterComputeResource {
	cluster := &mo.ClusterComputeResource{}
	s.registry.NewEntity(cluster)
	cluster.Name = fmt.Sprintf("cluster%02d", number)
	cluster.ConfigurationEx = &types.ClusterConfigInfoEx{
		DrsConfig: types.ClusterDrsConfigInfo{
			Enabled:           types.NewBool(number%2 == 0),
			DefaultVmBehavior: types.DrsBehaviorFullyAutomated,
		},
	}
	pool := &mo.ResourcePool{}
	s.registry.NewEntity(pool)
	pool.Name, pool.Owner = "Resources", cluster.Self
	s.registry.PutEntity(cluster, pool)
	cluster.ResourcePool = &pool.Self
	s.registry.PutEntity(parent, cluster)
	parent.ChildEntity = append(parent.ChildEntity, cluster.Self)
	return cluster
}

func (s *Server) fleetHost(cluster *mo.ClusterComputeResource, want scenario.FleetHost) *mo.HostSystem {
	host := &mo.HostSystem{}
	s.registry.NewEntity(host)
	host.Name = want.Name
	release, err := vnuma.ParseRelease(want.Version)
	if err != nil {
		panic(err) // the scenario was checked
	}
	host.Hardware = hardware(want.Host, release, s.hosts[0].Hardware)
	product := s.hosts[0].Config.Product
	product.Version, product.Build = want.Version, want.Build
	product.FullName = fmt.Sprintf("VMware ESXi %s build-%s", product.Version, product.Build)
	options := numaOptions(want.Host, true)
	host.Config = &types.HostConfigInfo{
		Product: product, Option: options, HyperThread: hyperThreading(want.Host),
		PowerSystemInfo: &types.PowerSystemInfo{CurrentPolicy: types.HostPowerPolicy{ShortName: want.PowerPolicy}},
	}
	manager := simulator.NewOptionManager(nil, options, nil)
	managerRef := s.registry.Put(manager.(mo.Reference)).Reference()
	host.ConfigManager.AdvancedOption = &managerRef
	host.Summary = s.hosts[0].Summary
	host.Summary.Config.Name, host.Summary.Config.Product = want.Name, &product
	summary := *s.hosts[0].Summary.Hardware
	summary.CpuModel = want.CPUModel
	host.Summary.Hardware = &summary
	host.Runtime = s.hosts[0].Runtime
	if want.Disconnected {
		host.Runtime.ConnectionState = types.HostSystemConnectionStateDisconnected
	}
	s.registry.PutEntity(cluster, host)
	cluster.Host = append(cluster.Host, host.Self)
	return host
}

func (s *Server) fleetVM(parent *mo.Folder, want scenario.FleetVM) *mo.VirtualMachine {
	vm := &simulator.VirtualMachine{}
	s.registry.NewEntity(vm)
	vm.Name = want.Name
	identity := uuid.NewSHA1(uuid.NameSpaceOID, []byte(want.Name)).String()
	vm.Config = &types.VirtualMachineConfigInfo{
		Name:               want.Name,
		InstanceUuid:       identity,
		Uuid:               identity,
		Version:            hardwareName(want.Hardware),
		GuestId:            string(s.hosts[0].guestOS().id),
		Files:              types.VirtualMachineFileInfo{LogDirectory: "[" + datastore + "] " + want.Name},
		Modified:           time.Unix(0, 0).UTC(),
		LatencySensitivity: &types.LatencySensitivity{Level: types.LatencySensitivitySensitivityLevelNormal},
	}
	vm.Config.Hardware.NumCPU, vm.Config.Hardware.MemoryMB = int32(want.VCPUs), int32(want.MemoryMB())
	vm.Guest = &types.GuestInfo{}
	m := &machine{VirtualMachine: vm, lab: s, scenario: want.VM}
	m.at.Store(s.hosts[0])
	m.furnish()
	vm.Config.ExtraConfig = append(vm.Config.ExtraConfig, &types.OptionValue{Key: "guestInfo.detailed.data", Value: want.Windows.Detail()})
	vm.Runtime.PowerState, vm.Runtime.ConnectionState = types.VirtualMachinePowerStatePoweredOff, types.VirtualMachineConnectionStateConnected
	if want.Power == scenario.On {
		vm.Runtime.PowerState = types.VirtualMachinePowerStatePoweredOn
		vm.Guest.ToolsRunningStatus = string(types.VirtualMachineToolsRunningStatusGuestToolsRunning)
		vm.Guest.GuestFullName = s.hosts[0].guestOS().name
		if apiVersionOf(s.hosts[0].want) >= "8.0.2" {
			vm.Guest.GuestDetailedData = want.Windows.Detail()
		}
	}
	switch {
	case want.Host < 0:
		vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateOrphaned
	case want.Inaccessible:
		vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateInaccessible
		vm.Config = nil
	}
	vm.Summary.Runtime = vm.Runtime
	made := &vm.VirtualMachine
	s.registry.PutEntity(parent, made)
	parent.ChildEntity = append(parent.ChildEntity, made.Self)
	return made
}
