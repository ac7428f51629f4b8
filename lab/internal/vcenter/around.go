package vcenter

import (
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

// usuallyDisabled is what a healthy running VM disables on a real vCenter (recorded of 6.7 and 8.0.3, where a
// name may stand twice). Left out: AnswerVM and PowerOnVM_Task, which come and go with its state.
var usuallyDisabled = []string{
	"ApplyEvcModeVM_Task", "CreateSecondaryVM_Task", "CustomizeVM_Task", "Destroy_Task",
	"DisableSecondaryVM_Task", "EnableSecondaryVM_Task", "ExportVm", "MakePrimaryVM_Task", "MarkAsTemplate",
	"MarkAsVirtualMachine", "ResetGuestInformation", "StartRecording_Task",
	"StartReplaying_Task", "StopRecording_Task", "StopRecording_Task", "StopReplaying_Task",
	"StopReplaying_Task", "TerminateFaultTolerantVM_Task", "TurnOffFaultToleranceForVM_Task",
	"UnmountToolsInstaller", "UnregisterVM", "UpgradeTools_Task", "UpgradeVM_Task",
}

// surround sets the scenario's `around` on the VM: properties to be read, without any behaviour,
// except that disabled methods are refused.
func (m *machine) surround() {
	around := m.scenario.Around
	if around.FaultTolerance {
		m.Runtime.FaultToleranceState = types.VirtualMachineFaultToleranceStateRunning
		m.Summary.Runtime.FaultToleranceState = m.Runtime.FaultToleranceState
	}
	if around.Snapshot != "" {
		ref := types.ManagedObjectReference{Type: "VirtualMachineSnapshot", Value: "snapshot-" + m.Self.Value}
		m.Snapshot = &types.VirtualMachineSnapshotInfo{
			CurrentSnapshot: &ref,
			RootSnapshotList: []types.VirtualMachineSnapshotTree{{
				Snapshot: ref, Vm: m.Self, Name: around.Snapshot, CreateTime: time.Now(), State: m.Runtime.PowerState,
			}},
		}
	}
	m.Config.ChangeTrackingEnabled = types.NewBool(around.ChangeTracking)
	m.DisabledMethod = append(slices.Clone(usuallyDisabled), around.DisabledMethods...)
	if around.Encrypted {
		m.Config.KeyId = &types.CryptoKeyId{KeyId: "lab-key", ProviderId: &types.KeyProviderId{Id: "lab-provider"}}
	}
	if around.ManagedBy != "" {
		m.Config.ManagedBy = &types.ManagedByInfo{ExtensionKey: around.ManagedBy, Type: "placeholder"}
	}
	for i, device := range around.Devices {
		m.Config.Hardware.Device = append(m.Config.Hardware.Device, aroundDevice(device, int32(9000+i)))
	}
	if around.PoolMemoryLimitMB > 0 {
		m.intoPool(around.PoolMemoryLimitMB)
	}
	if around.VApp != "" {
		m.intoVApp(around.VApp)
	}
	if around.RunningTask != "" {
		m.addTask(around.RunningTask, types.TaskInfoStateRunning, nil)
	}
	if around.MovedMinutesAgo > 0 {
		ended := time.Now().Add(-time.Duration(around.MovedMinutesAgo) * time.Minute)
		m.addTask("VirtualMachine.migrate", types.TaskInfoStateSuccess, &ended)
	}
}

// intoPool puts the VM into its own resource pool, below its host's or cluster's, with this limit.
func (m *machine) intoPool(limitMB int64) {
	root := m.lab.registry.Get(*m.lab.compute(m.host()).ResourcePool).(*simulator.ResourcePool)
	memory, cpu := allocation(normalMemoryShares(1)), allocation(normalCPUShares(1))
	memory.Limit = types.NewInt64(limitMB)
	made := root.CreateResourcePool(m.lab.context(), &types.CreateResourcePool{
		Name: "pool of " + m.Name, Spec: types.ResourceConfigSpec{MemoryAllocation: *memory, CpuAllocation: *cpu},
	}).(*methods.CreateResourcePoolBody)
	if made.Fault_ != nil {
		panic(made.Fault_.String) // an error of the lab itself
	}
	m.ResourcePool = &made.Res.Returnval
}

// intoVApp moves the VM from its folder into a vApp there, which is also a resource pool of its host or cluster.
func (m *machine) intoVApp(name string) {
	ctx, registry := m.lab.context(), m.lab.registry
	root := registry.Get(*m.lab.compute(m.host()).ResourcePool).(*simulator.ResourcePool)
	made := root.CreateVApp(ctx, &types.CreateVApp{Name: name, VmFolder: m.Parent, ResSpec: types.ResourceConfigSpec{
		MemoryAllocation: *allocation(normalMemoryShares(1)), CpuAllocation: *allocation(normalCPUShares(1)),
	}}).(*methods.CreateVAppBody)
	if made.Fault_ != nil {
		panic(made.Fault_.String) // an error of the lab itself
	}
	app := registry.Get(made.Res.Returnval).(*simulator.VirtualApp)
	folder := registry.Get(*m.Parent).(*simulator.Folder)
	registry.RemoveReference(ctx, folder, &folder.ChildEntity, m.Self)
	registry.AppendReference(ctx, folder, &folder.ChildEntity, app.Self)
	registry.RemoveReference(ctx, root, &root.Vm, m.Self)
	registry.AppendReference(ctx, app, &app.Vm, m.Self)
	m.Parent, m.ParentVApp, m.ResourcePool = nil, &app.Self, &app.Self
}

// addTask adds a task that the lab never carries out to the VM's recent ones.
func (m *machine) addTask(description string, state types.TaskInfoState, ended *time.Time) {
	task := m.lab.newTask(m.Self, "labTask")
	task.Info.DescriptionId, task.Info.EntityName, task.Info.State = description, m.Name, state
	task.Info.CompleteTime = ended
	m.lab.registry.Put(task)
}

func aroundDevice(kind string, key int32) types.BaseVirtualDevice {
	labelled := func(label string, backing types.BaseVirtualDeviceBackingInfo) types.VirtualDevice {
		return types.VirtualDevice{Key: key, DeviceInfo: &types.Description{Label: label, Summary: label}, Backing: backing}
	}
	file := types.VirtualDeviceFileBackingInfo{FileName: "[" + datastore + "] lab/" + kind + ".vmdk"}
	switch kind {
	case "raw_disk":
		backing := &types.VirtualDiskRawDiskMappingVer1BackingInfo{
			VirtualDeviceFileBackingInfo: file, CompatibilityMode: string(types.VirtualDiskCompatibilityModePhysicalMode),
		}
		return &types.VirtualDisk{VirtualDevice: labelled("Hard disk (raw)", backing)}
	case "multi_writer_disk":
		backing := &types.VirtualDiskFlatVer2BackingInfo{
			VirtualDeviceFileBackingInfo: file, Sharing: string(types.VirtualDiskSharingSharingMultiWriter),
		}
		return &types.VirtualDisk{VirtualDevice: labelled("Hard disk (shared)", backing)}
	case "shared_bus":
		controller := types.VirtualSCSIController{
			VirtualController: types.VirtualController{VirtualDevice: labelled("SCSI controller (shared)", nil)},
			SharedBus:         types.VirtualSCSISharingPhysicalSharing,
		}
		return &types.ParaVirtualSCSIController{VirtualSCSIController: controller}
	case scenario.Passthrough:
		return &types.VirtualPCIPassthrough{VirtualDevice: labelled("PCI device 0", nil)}
	}
	return &types.VirtualTPM{VirtualDevice: labelled("Virtual TPM", nil)}
}

// methodDisabled is the refusal of a method that is disabled on this VM, as backup products do.
func (m *machine) methodDisabled(method string) *refusal {
	for _, disabled := range m.scenario.Around.DisabledMethods {
		if disabled == method {
			return &refusal{
				fault:   &types.MethodDisabled{Source: "com.example.backup"},
				message: "The method is disabled by 'com.example.backup'.",
			}
		}
	}
	return nil
}

// free is the licence of the free hypervisor, whose API is read-only.
var free = types.LicenseManagerLicenseInfo{
	LicenseKey: "00000-00000-00000-00000-00000", EditionKey: "esxBasic", Name: "VMware vSphere Hypervisor",
}

// license installs the scenario's licence, if any.
func (s *Server) license() {
	if s.config.Scenario.Licence != scenario.LicenceFree {
		return
	}
	manager := s.registry.Get(*s.model.ServiceContent.LicenseManager).(*simulator.LicenseManager)
	manager.Licenses = []types.LicenseManagerLicenseInfo{free}
}

// restricted is the free licence's refusal of anything that would change something, or nil.
func (s *Server) restricted() *refusal {
	if s.config.Scenario.Licence != scenario.LicenceFree {
		return nil
	}
	return &refusal{fault: &types.RestrictedVersion{}, message: "Current license or ESXi version prohibits execution of the requested operation."}
}
