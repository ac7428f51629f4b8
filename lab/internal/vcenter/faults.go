package vcenter

import (
	"sync"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
)

// injector deals out the scenario's faults, each as often as it says.
type injector struct {
	mu    sync.Mutex
	rules []*rule
}

type rule struct {
	scenario.Fault
	used int
}

func newInjector(faults []scenario.Fault) *injector {
	in := &injector{}
	for _, fault := range faults {
		in.rules = append(in.rules, &rule{Fault: fault})
	}
	return in
}

// naming returns an injector of only those faults that name this boot; what it deals out counts
// there as well as here, since the rules are the same.
func (in *injector) naming(boot int) *injector {
	narrowed := &injector{}
	for _, rule := range in.rules {
		if rule.Boot == boot {
			narrowed.rules = append(narrowed.rules, rule)
		}
	}
	return narrowed
}

// take returns the fault of this kind that strikes this VM in this boot, counting it as used, or nil.
func (in *injector) take(kind string, vm scenario.VM, boot int) *scenario.Fault {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, rule := range in.rules {
		if rule.strikes(kind, vm, boot) {
			rule.used++
			return &rule.Fault
		}
	}
	return nil
}

func (r *rule) strikes(kind string, vm scenario.VM, boot int) bool {
	switch {
	case r.Kind != kind:
		return false
	case r.VM != "" && r.VM != vm.Name && r.VM != vm.Path():
		return false
	case r.Boot != 0 && r.Boot != boot:
		return false
	}
	return r.Limit() == 0 || r.used < r.Limit()
}

// sqlFaults collects what strikes SQL Server in this boot.
func (in *injector) sqlFaults(vm scenario.VM, boot int) guest.Faults {
	var faults guest.Faults
	faults.NeverListens = in.take(scenario.SQLNever, vm, boot) != nil
	faults.RefuseLogins = in.take(scenario.LoginRefused, vm, boot) != nil
	faults.DatabaseRecovering = in.take(scenario.DatabaseRecovering, vm, boot) != nil
	if fault := in.take(scenario.DropMidResult, vm, boot); fault != nil {
		faults.DropAfterRows = fault.Rows
	}
	if fault := in.take(scenario.Slow, vm, boot); fault != nil {
		faults.SlowFactor = fault.Factor
	}
	return faults
}
