package vcenter

import (
	"testing"

	"github.com/vmware/govmomi/vim25/types"
)

// A method that a backup product has disabled is refused by that product's name.
func TestDisabledMethodsAreRefused(t *testing.T) {
	l := startLab(t, "vms: [{name: sql16, around: {disabled_methods: [ReconfigVM_Task]}}]")
	err := l.reconfigure(types.VirtualMachineConfigSpec{Annotation: "x"})
	if got := wantFault[types.MethodDisabled](t, err).Source; got == "" {
		t.Error("nobody is named")
	}
}

// The free hypervisor's API reads, and refuses to change anything.
func TestTheFreeLicenceOnlyReads(t *testing.T) {
	l := startLab(t, "licence: free")
	wantFault[types.RestrictedVersion](t, l.reconfigure(types.VirtualMachineConfigSpec{Annotation: "x"}))
}
