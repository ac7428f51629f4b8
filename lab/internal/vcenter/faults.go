package vcenter

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
)

// injector has the faults, the scenario's and those added later, each with its number of occurrences.
type injector struct {
	mu    sync.Mutex
	count atomic.Int64 // of rules: most labs have none, and every request asks
	last  int
	rules []*rule
}

type rule struct {
	scenario.Fault
	id, used int
}

// FaultState is a fault of a running lab, its number there, and how often it has occurred.
type FaultState struct {
	ID   int `json:"id"`
	Used int `json:"used"`
	scenario.Fault
}

func newInjector(faults []scenario.Fault) *injector {
	in := &injector{}
	for _, fault := range faults {
		in.add(fault)
	}
	return in
}

func (in *injector) add(fault scenario.Fault) FaultState {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.last++
	in.rules = append(in.rules, &rule{Fault: fault, id: in.last})
	in.count.Store(int64(len(in.rules)))
	return FaultState{ID: in.last, Fault: fault}
}

// clear removes all faults, and returns how many there were.
func (in *injector) clear() int {
	in.mu.Lock()
	defer in.mu.Unlock()
	before := len(in.rules)
	in.rules = nil
	in.count.Store(0)
	return before
}

func (in *injector) list() []FaultState {
	in.mu.Lock()
	defer in.mu.Unlock()
	states := []FaultState{}
	for _, r := range in.rules {
		states = append(states, FaultState{r.id, r.used, r.Fault})
	}
	return states
}

// has reports whether a fault of one of these kinds may still occur.
func (in *injector) has(kinds ...string) bool {
	if in.count.Load() == 0 {
		return false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.ContainsFunc(in.rules, func(r *rule) bool { return slices.Contains(kinds, r.Kind) && r.left() })
}

// naming returns an injector of only those faults that name this boot; what it uses counts
// in both, since the rules are shared.
func (in *injector) naming(boot int) *injector {
	narrowed := &injector{}
	defer func() { narrowed.count.Store(int64(len(narrowed.rules))) }()
	for _, rule := range in.rules {
		if rule.Boot == boot {
			narrowed.rules = append(narrowed.rules, rule)
		}
	}
	return narrowed
}

// take returns the fault of this kind that hits this VM in this boot, counting it as used, or nil.
func (in *injector) take(kind string, vm scenario.VM, boot int) *scenario.Fault {
	return in.first(func(r *rule) bool { return r.strikes(kind, vm, boot) })
}

// call reports whether a fault hits this call of a VM's method: the method that the fault names, else
// any that writes. A change and a power-on belong to the boot that follows.
func (in *injector) call(kind string, m *machine, method string) bool {
	return in.first(func(r *rule) bool {
		meant := r.Method == method || r.Method == "" && slices.Contains(writes, method)
		return meant && r.strikes(kind, m.scenario, m.bootOf(method))
	}) != nil
}

// named reports whether a fault that names its method hits a call of another object.
func (in *injector) named(kind string, m *machine, method string) bool {
	return in.first(func(r *rule) bool {
		return r.Method == method && r.strikes(kind, m.scenario, int(m.boots.Load()))
	}) != nil
}

func (m *machine) bootOf(method string) int {
	boot := int(m.boots.Load())
	if method == "ReconfigVM_Task" || method == "PowerOnVM_Task" {
		boot++
	}
	return boot
}

// first counts the first matching rule as used, and returns its fault.
func (in *injector) first(holds func(*rule) bool) *scenario.Fault {
	if in.count.Load() == 0 {
		return nil
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, rule := range in.rules {
		if holds(rule) {
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
	return r.left()
}

func (r *rule) left() bool { return r.Limit() == 0 || r.used < r.Limit() }

// loginFailed is the number of SQL Server's message for a wrong password.
const loginFailed = 18456

// sqlFaults collects the SQL Server faults of this boot.
func (in *injector) sqlFaults(vm scenario.VM, boot int) guest.Faults {
	var faults guest.Faults
	faults.NeverListens = in.take(scenario.SQLNever, vm, boot) != nil
	if fault := in.take(scenario.LoginRefused, vm, boot); fault != nil {
		faults.RefuseLogins = cmp.Or(fault.Number, loginFailed)
	}
	if fault := in.take(scenario.DatabaseRecovering, vm, boot); fault != nil {
		faults.DatabaseRecovering, faults.RecoversAfter = true, seconds(fault.Seconds)
	}
	if fault := in.take(scenario.DropMidResult, vm, boot); fault != nil {
		faults.DropAfterRows = fault.Rows
	}
	if fault := in.take(scenario.Slow, vm, boot); fault != nil {
		faults.SlowFactor = fault.Factor
	}
	if fault := in.take(scenario.ForeignPages, vm, boot); fault != nil {
		faults.ForeignPages = fault.Factor
	}
	if fault := in.take(scenario.ForeignLookups, vm, boot); fault != nil {
		faults.ForeignLookups = fault.Factor
	}
	faults.PortsElsewhere = in.take(scenario.PortsElsewhere, vm, boot) != nil
	return faults
}
