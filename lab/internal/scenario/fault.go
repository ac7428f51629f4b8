package scenario

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is a failure that the lab injects.
type Fault struct {
	Kind   string  `yaml:"kind"`
	VM     string  `yaml:"vm"`    // a VM's name or path; empty = any VM
	Boot   int     `yaml:"boot"`  // number of the power-on that it hits; 0 = any
	Times  *int    `yaml:"times"` // how often; 1 when left out, 0 = always
	Rows   int64   `yaml:"rows"`
	Factor float64 `yaml:"factor"`
}

// Kinds of fault.
const (
	ReconfigureRefused = "reconfigure_refused"
	ShutdownNever      = "shutdown_never"
	ToolsNever         = "tools_never"
	PowerOnRefused     = "power_on_refused"
	TopologyStuck      = "topology_stuck"
	SessionExpired     = "session_expired"
	SQLNever           = "sql_never"
	LoginRefused       = "login_refused"
	DropMidResult      = "drop_mid_result"
	DatabaseRecovering = "database_recovering"
	Slow               = "slow"
)

var kinds = []string{
	ReconfigureRefused, ShutdownNever, ToolsNever, PowerOnRefused, TopologyStuck, SessionExpired,
	SQLNever, LoginRefused, DropMidResult, DatabaseRecovering, Slow,
}

// Limit is how often the fault strikes; 0 = always.
func (f Fault) Limit() int {
	if f.Times == nil {
		return 1
	}
	return *f.Times
}

func (f Fault) check(vms []VM) error {
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("kind %q: want one of %s", f.Kind, strings.Join(kinds, ", "))
	}
	if f.VM != "" && !slices.ContainsFunc(vms, func(vm VM) bool { return f.VM == vm.Name || f.VM == vm.Path() }) {
		return fmt.Errorf("vm %q: no such VM in this scenario", f.VM)
	}
	if f.Boot < 0 || f.Limit() < 0 {
		return fmt.Errorf("boot and times cannot be negative")
	}
	if (f.Kind == DropMidResult) != (f.Rows > 0) {
		return fmt.Errorf("rows (above 0) belongs to %s, and it needs them", DropMidResult)
	}
	if (f.Kind == Slow) != (f.Factor > 0) {
		return fmt.Errorf("factor (above 0) belongs to %s, and it needs one", Slow)
	}
	return nil
}
