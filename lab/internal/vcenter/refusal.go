package vcenter

import (
	"fmt"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

// refusal is why an operation is not carried out: the fault as the API types it, and its sentence.
type refusal struct {
	fault   types.BaseMethodFault
	message string
}

func (r *refusal) soap() *soap.Fault { return simulator.Fault(r.message, r.fault) }

func invalidArgument(property, format string, values ...any) *refusal {
	return &refusal{
		&types.InvalidArgument{InvalidProperty: property},
		"A specified parameter was not correct: " + property + ": " + fmt.Sprintf(format, values...),
	}
}

func invalidPower(requested, existing types.VirtualMachinePowerState) *refusal {
	fault := &types.InvalidPowerState{RequestedState: requested, ExistingState: existing}
	return &refusal{fault, fmt.Sprintf("The attempted operation cannot be performed in the current state (%s).", existing)}
}

func notSupported(format string, values ...any) *refusal {
	return &refusal{&types.NotSupported{}, "The operation is not supported on the object: " + fmt.Sprintf(format, values...)}
}

func cannotPowerOn(format string, values ...any) *refusal {
	reason := fmt.Sprintf(format, values...)
	return &refusal{&types.GenericVmConfigFault{Reason: reason}, "Failed to power on the virtual machine: " + reason}
}

// noSpace is what a full datastore answers: no swap file, no new .vmx.
func noSpace() *refusal {
	fault := &types.NoDiskSpace{FileFault: types.FileFault{File: "[" + datastore + "]"}, Datastore: datastore}
	return &refusal{fault, "Insufficient disk space on datastore '" + datastore + "'."}
}
