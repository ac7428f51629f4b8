package vcenter

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

const (
	datastore = "LocalDS_0" // as the simulator names its first one

	// apiVersion permits what vSphere 8 added, such as virtualNuma.
	apiVersion     = "8.0.3.0"
	vcenterVersion = "8.0.3"
	vcenterBuild   = "24022515"
)

// newModel is one datacenter; hosts and VMs are created from the scenario.
func newModel(identity string, played *scenario.Scenario) *simulator.Model {
	if played.Standalone {
		return newHostModel(played)
	}
	model := simulator.VPX()
	model.Datacenter = 1
	model.Host, model.Datastore = 0, 0
	model.Cluster, model.ClusterHost, model.Pool, model.Portgroup, model.Machine = 0, 0, 0, 0, 0
	about := &model.ServiceContent.About
	about.Version, about.Build, about.ApiVersion = vcenterVersion, vcenterBuild, apiVersion
	about.FullName = fmt.Sprintf("VMware vCenter Server %s build-%s (simulated by vnuma-lab, scenario %s)",
		vcenterVersion, vcenterBuild, played.Name)
	about.LicenseProductVersion = "8.0"
	about.InstanceUuid = identity
	return model
}

// newHostModel is the API of one ESXi host in its own release: it has no instance UUID (its hardware's
// identifies it), no custom attributes and no clusters.
func newHostModel(played *scenario.Scenario) *simulator.Model {
	model := simulator.ESX()
	model.Datastore, model.Machine = 0, 0
	release := played.Hosts[0].ESXi
	about := &model.ServiceContent.About
	about.Version, about.Build, about.ApiVersion = fullVersion(release.Version), release.Build, apiVersionOf(played.Hosts[0])
	about.FullName = fmt.Sprintf("VMware ESXi %s build-%s (simulated by vnuma-lab, scenario %s)",
		about.Version, about.Build, played.Name)
	about.LicenseProductVersion = played.Hosts[0].Release().String()
	return model
}

// apiVersionOf is the API version of a host's release: two numbers up to 6.7, four from 7.0 on.
func apiVersionOf(host scenario.Host) string {
	if release := host.Release(); !release.AtLeast(7, 0) {
		return release.String()
	}
	return fullVersion(host.ESXi.Version) + ".0"
}

// furnish creates the scenario's clusters, hosts and VMs. Without vCenter, the one host gets the
// lab's identity.
func (s *Server) furnish(identity string) error {
	ctx := context.Background()
	client, err := vim25.NewClient(ctx, s.model.Service)
	if err != nil {
		return err
	}
	datacenter := object.NewDatacenter(client, s.registry.Any("Datacenter").Reference())
	folders, err := datacenter.Folders(ctx)
	if err != nil {
		return err
	}
	if s.storage, err = os.MkdirTemp("", "vnuma-lab-datastore-"); err != nil {
		return err
	}
	if s.config.Scenario.Standalone {
		err = s.furnishHost(ctx, client, identity)
	} else {
		err = s.createHosts(ctx, client, folders.HostFolder)
	}
	if err != nil {
		return err
	}
	s.license()
	known := map[string]*object.Folder{"": folders.VmFolder}
	for _, vm := range s.config.Scenario.VMs {
		folder, err := nested(ctx, known, vm.Folder)
		if err != nil {
			return fmt.Errorf("folder %s: %w", vm.Folder, err)
		}
		if err := s.createVM(ctx, client, folder, vm); err != nil {
			return fmt.Errorf("VM %s: %w", vm.Path(), err)
		}
	}
	if err := s.override(ctx, client); err != nil {
		return err
	}
	for _, h := range s.hosts {
		if h.want.HalfRead {
			h.Hardware = nil
		}
	}
	return s.addFleet(ctx, folders)
}

// unescaped undoes vSphere's escaping of a name; the simulator repeats it.
var unescaped = strings.NewReplacer("%2f", "/", "%5c", `\`, "%25", "%")

// nested is the folder at a path below the datacenter's VM folder, created with its parents if new.
func nested(ctx context.Context, known map[string]*object.Folder, path string) (*object.Folder, error) {
	if folder := known[path]; folder != nil {
		return folder, nil
	}
	around, name := "", path
	if cut := strings.LastIndexByte(path, '/'); cut >= 0 {
		around, name = path[:cut], path[cut+1:]
	}
	parent, err := nested(ctx, known, around)
	if err != nil {
		return nil, err
	}
	known[path], err = parent.CreateFolder(ctx, unescaped.Replace(name))
	return known[path], err
}

func (s *Server) createVM(ctx context.Context, client *vim25.Client, folder *object.Folder, vm scenario.VM) error {
	where := s.hostNamed(s.config.Scenario.HostOf(vm).Name)
	pool := object.NewResourcePool(client, *s.compute(where).ResourcePool)
	spec := types.VirtualMachineConfigSpec{
		Name:       vm.Name,
		GuestId:    string(where.guestOS().id),
		Version:    hardwareName(vm.Hardware),
		NumCPUs:    int32(vm.VCPUs),
		MemoryMB:   vm.MemoryMB(),
		Annotation: vm.Annotation,
		Files:      &types.VirtualMachineFileInfo{VmPathName: "[" + datastore + "]"},
	}
	var err error
	if spec.DeviceChange, err = s.devices(); err != nil {
		return err
	}
	task, err := folder.CreateVM(ctx, spec, pool, object.NewHostSystem(client, where.Self))
	if err != nil {
		return err
	}
	info, err := task.WaitForResult(ctx)
	if err != nil {
		return err
	}
	created := s.registry.Get(info.Result.(types.ManagedObjectReference)).(*simulator.VirtualMachine)
	m := &machine{VirtualMachine: created, lab: s, scenario: vm, service: s.config.Services[vm.Path()]}
	m.at.Store(where)
	m.furnish()
	s.machines[created.Self] = m
	s.order = append(s.order, m)
	return nil
}

// devices are a disk of 40 GB and a network card, which Terraform's provider requires of a VM.
func (s *Server) devices() ([]types.BaseVirtualDeviceConfigSpec, error) {
	var devices object.VirtualDeviceList
	controller, err := devices.CreateSCSIController("pvscsi")
	if err != nil {
		return nil, err
	}
	store := s.registry.Any("Datastore").Reference()
	disk := devices.CreateDisk(controller.(types.BaseVirtualController), store, "")
	disk.CapacityInKB = 40 << 20
	disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo).Sharing = string(types.VirtualDiskSharingSharingNone)
	disk.StorageIOAllocation = &types.StorageIOAllocationInfo{
		Limit: types.NewInt64(-1), Reservation: types.NewInt32(0), Shares: &types.SharesInfo{Level: types.SharesLevelNormal},
	}
	backing := types.VirtualEthernetCardNetworkBackingInfo{}
	backing.DeviceName = "VM Network"
	card, err := object.EthernetCardTypes().CreateEthernetCard("vmxnet3", &backing)
	if err != nil {
		return nil, err
	}
	return append(devices, controller, disk, card).ConfigSpec(types.VirtualDeviceConfigSpecOperationAdd)
}

// furnish gives the VM the scenario's configuration, and a runtime that pyVmomi can read: the
// simulator leaves two enumerations empty.
func (m *machine) furnish() {
	vm := m.scenario
	m.Config.Hardware.NumCoresPerSocket = types.NewInt32(int32(vm.CoresPerSocket))
	if m.showsTopology() {
		automatic := vm.CoresPerSocket == 0
		m.Config.Hardware.AutoCoresPerSocket = &automatic
		if automatic {
			m.Config.Hardware.NumCoresPerSocket = types.NewInt32(1)
		}
		m.Config.Hardware.SimultaneousThreads = 1
		m.Config.NumaInfo = numaInfo(int32(vm.CoresPerNumaNode), false)
	}
	m.Config.GuestFullName = m.host().guestOS().name
	m.Summary.Config.GuestFullName = m.host().guestOS().name
	m.Config.Tools = &types.ToolsConfigInfo{ // the defaults of a new VM
		AfterPowerOn: types.NewBool(true), AfterResume: types.NewBool(true), BeforeGuestStandby: types.NewBool(true),
		BeforeGuestShutdown: types.NewBool(true), ToolsUpgradePolicy: "manual", SyncTimeWithHostAllowed: types.NewBool(true),
	}
	m.Config.SwapPlacement = "inherit"
	m.Config.BootOptions = &types.VirtualMachineBootOptions{BootRetryDelay: 10000}
	m.Config.CpuHotAddEnabled = types.NewBool(vm.CPUHotAdd)
	m.Config.MemoryHotAddEnabled = types.NewBool(vm.MemoryHotAdd)
	m.Config.MemoryReservationLockedToMax = types.NewBool(vm.ReservationLocked)
	m.Config.MemoryAllocation = allocation(normalMemoryShares(vm.MemoryMB()))
	m.Config.CpuAllocation = allocation(normalCPUShares(int32(vm.VCPUs)))
	if vm.ReservationLocked {
		m.Config.MemoryAllocation.Reservation = types.NewInt64(vm.MemoryMB())
	}
	if len(vm.CPUAffinity) > 0 {
		m.Config.CpuAffinity = &types.VirtualMachineAffinityInfo{AffinitySet: vm.CPUAffinity}
	}
	if !m.host().release.AtLeast(7, 0) { // recorded of 6.7: absent until it is first written
		m.Config.LatencySensitivity = nil
	}
	m.Config.ExtraConfig = nil
	for key, value := range vm.ExtraConfig {
		m.Config.ExtraConfig = append(m.Config.ExtraConfig, &types.OptionValue{Key: key, Value: value})
	}
	m.leaveOut(vm.Absent)
	m.Config.ChangeVersion = m.nextChangeVersion()
	for _, runtime := range []*types.VirtualMachineRuntimeInfo{&m.Runtime, &m.Summary.Runtime} {
		runtime.FaultToleranceState = types.VirtualMachineFaultToleranceStateNotConfigured
		runtime.RecordReplayState = types.VirtualMachineRecordReplayStateInactive
	}
	mo.ApplyPropertyChange(&m.VirtualMachine.VirtualMachine, guestOff())
	m.surround()
}

// leaveOut removes properties below config and keeps their values: a server may leave out a field at its default.
func (m *machine) leaveOut(paths []string) {
	for _, path := range paths {
		value := reflect.ValueOf(m.Config)
		for _, name := range strings.Split(path, ".") {
			value = reflect.Indirect(value).FieldByName(strings.ToUpper(name[:1]) + name[1:])
		}
		if kept := reflect.Indirect(value); kept.IsValid() {
			m.absent = append(m.absent, types.PropertyChange{Name: "config." + path, Val: kept.Interface()})
			value.SetZero()
		}
	}
}

// complete gives the VM the properties that were left out, as a reconfigure does.
func (m *machine) complete(ctx *simulator.Context) {
	m.publish(ctx, m.absent)
	m.absent = nil
}

// showsTopology reports whether autoCoresPerSocket and numaInfo can be read: on ESXi 8 of every virtual hardware
// (recorded of 10 and 11).
func (m *machine) showsTopology() bool { return m.host().release.AtLeast(8, 0) }

// setsTopology reports whether they can be set, which virtual hardware 20 brought.
func (m *machine) setsTopology() bool { return m.hardware() >= 20 && m.showsTopology() }

func hardwareName(version int) string {
	if version < 10 {
		return "vmx-0" + strconv.Itoa(version)
	}
	return "vmx-" + strconv.Itoa(version)
}

type guestOS struct {
	id   types.VirtualMachineGuestOsIdentifier
	name string
}

// guestOS is a Windows release that the host's release supports.
func (h *host) guestOS() guestOS {
	switch {
	case h.release.AtLeast(8, 0):
		return guestOS{types.VirtualMachineGuestOsIdentifierWindows2019srvNext_64Guest, "Microsoft Windows Server 2022 (64-bit)"}
	case h.release.AtLeast(6, 7):
		return guestOS{types.VirtualMachineGuestOsIdentifierWindows2019srv_64Guest, "Microsoft Windows Server 2019 (64-bit)"}
	}
	return guestOS{types.VirtualMachineGuestOsIdentifierWindows9Server64Guest, "Microsoft Windows Server 2016 (64-bit)"}
}

// withoutCustomAttributes hides the custom fields manager from clients. The simulator
// needs it while the inventory is created.
func (s *Server) withoutCustomAttributes() {
	instance := s.registry.Get(vim25.ServiceInstance).(*simulator.ServiceInstance)
	instance.Content.CustomFieldsManager = nil
}
