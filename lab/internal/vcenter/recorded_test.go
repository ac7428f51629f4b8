package vcenter

import (
	"reflect"
	"testing"

	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/recorded"
)

// A request for something that does not exist is refused with the recorded fault.
func TestQuestionsAreRefusedByTheRecordedFaults(t *testing.T) {
	l := startLab(t, "")
	collector := property.DefaultCollector(l.client.Client)
	questions := map[string]func() error{
		"a VM that is not there": func() error {
			absent := types.ManagedObjectReference{Type: "VirtualMachine", Value: "vm-0"}
			return collector.RetrieveOne(l.ctx, absent, []string{"name"}, &mo.VirtualMachine{})
		},
	}
	for _, contact := range recorded.All(t) {
		for _, asked := range contact.VSphere.Faults {
			ask, known := questions[asked.Asked]
			if !known || asked.Fault == "" {
				continue
			}
			if got := faultName(ask()); got != asked.Fault {
				t.Errorf("%s: %s: %q, want %s", contact.Name, asked.Asked, got, asked.Fault)
			}
		}
	}
}

// faultName is the API's name of an error's fault.
func faultName(err error) string {
	var name string
	fault.In(err, func(found types.BaseMethodFault, _ string, _ []types.LocalizableMessage) bool {
		name = reflect.TypeOf(found).Elem().Name()
		return true
	})
	return name
}
