package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Fault is a failure that the lab injects.
type Fault struct {
	Kind           string  `yaml:"kind" json:"kind"`
	VM             string  `yaml:"vm" json:"vm,omitempty"`       // a VM's name or path; empty = any VM
	Boot           int     `yaml:"boot" json:"boot,omitempty"`   // number of the power-on that it hits; 0 = any
	Times          *int    `yaml:"times" json:"times,omitempty"` // how often; default 1, 0 = always
	Rows           int64   `yaml:"rows" json:"rows,omitempty"`
	Factor         float64 `yaml:"factor" json:"factor,omitempty"`
	Method         string  `yaml:"method" json:"method,omitempty"`   // the API's name, such as PowerOnVM_Task
	Seconds        float64 `yaml:"seconds" json:"seconds,omitempty"` // how long, or how long after the power-on
	To             string  `yaml:"to" json:"to,omitempty"`           // a host's name
	CPUReservation int64   `yaml:"cpu_reservation_mhz" json:"cpu_reservation_mhz,omitempty"`
	Number         int     `yaml:"number" json:"number,omitempty"` // of SQL Server's message
}

// Kinds of fault.
const (
	ReconfigureRefused = "reconfigure_refused"
	ShutdownNever      = "shutdown_never"
	ShutdownSlow       = "shutdown_slow"
	ToolsNever         = "tools_never"
	PowerOnRefused     = "power_on_refused"
	FailoverRefused    = "failover_refused"
	TopologyStuck      = "topology_stuck"
	DatastoreFull      = "datastore_full"
	SessionExpired     = "session_expired"
	AccountRefused     = "account_refused"
	VCenterRestart     = "vcenter_restart"
	TaskInProgress     = "task_in_progress"
	HostCommunication  = "host_communication"
	InvalidState       = "invalid_state"
	Unavailable        = "unavailable"
	AnswerLost         = "answer_lost"
	VMMoved            = "vm_moved"
	VMChanged          = "vm_changed"
	KeysWritten        = "keys_written"
	HostMaintenance    = "host_maintenance"
	HostDisconnected   = "host_disconnected"
	Question           = "question"
	QuestionRunning    = "question_running"
	LogMissing         = "log_missing"
	LogStale           = "log_stale"
	TicketRefused      = "ticket_refused"
	SQLNever           = "sql_never"
	LoginRefused       = "login_refused"
	DropMidResult      = "drop_mid_result"
	DatabaseRecovering = "database_recovering"
	Slow               = "slow"
	ForeignPages       = "foreign_pages"
	ForeignLookups     = "foreign_lookups"
	PortsElsewhere     = "ports_elsewhere"
)

var kinds = []string{
	ReconfigureRefused, ShutdownNever, ShutdownSlow, ToolsNever, PowerOnRefused, FailoverRefused, TopologyStuck, DatastoreFull,
	SessionExpired, AccountRefused, VCenterRestart, TaskInProgress, HostCommunication, InvalidState, Unavailable, AnswerLost,
	VMMoved, VMChanged,
	KeysWritten, HostMaintenance, HostDisconnected,
	Question, QuestionRunning, LogMissing, LogStale, TicketRefused,
	SQLNever, LoginRefused, DropMidResult, DatabaseRecovering, Slow, ForeignPages, ForeignLookups, PortsElsewhere,
}

// field is one that only some kinds have, and whether those need it.
type field struct {
	name     string
	given    func(Fault) bool
	needed   []string
	optional []string
}

var fields = []field{
	{"rows (above 0)", func(f Fault) bool { return f.Rows > 0 }, []string{DropMidResult}, nil},
	{"factor (above 0)", func(f Fault) bool { return f.Factor > 0 }, []string{Slow, ForeignPages, ForeignLookups}, nil},
	{"to (a host's name)", func(f Fault) bool { return f.To != "" }, []string{VMMoved}, nil},
	{"cpu_reservation_mhz (above 0)", func(f Fault) bool { return f.CPUReservation > 0 }, []string{VMChanged}, nil},
	{"seconds (above 0)", func(f Fault) bool { return f.Seconds > 0 }, []string{VCenterRestart, ShutdownSlow},
		[]string{VMMoved, VMChanged, HostMaintenance, HostDisconnected, QuestionRunning, DatabaseRecovering}},
	{"number (of a refused login)", func(f Fault) bool { return f.Number > 0 }, nil, []string{LoginRefused}},
	{"method", func(f Fault) bool { return f.Method != "" }, nil,
		[]string{TaskInProgress, HostCommunication, InvalidState, Unavailable, AnswerLost}},
}

// ParseFault reads one fault, in YAML or JSON, for this scenario.
func (s *Scenario) ParseFault(data []byte) (Fault, error) {
	var fault Fault
	if err := decode(data, &fault); err != nil {
		return fault, err
	}
	return fault, s.CheckFault(fault)
}

// Limit is how often the fault occurs; 0 = always.
func (f Fault) Limit() int {
	if f.Times == nil {
		return 1
	}
	return *f.Times
}

// CheckFault returns an error for a fault that this scenario cannot simulate.
func (s *Scenario) CheckFault(f Fault) error {
	if !slices.Contains(kinds, f.Kind) {
		return fmt.Errorf("kind %q: want one of %s", f.Kind, strings.Join(kinds, ", "))
	}
	if f.VM != "" && !slices.ContainsFunc(s.VMs, func(vm VM) bool { return f.VM == vm.Name || f.VM == vm.Path() }) {
		return fmt.Errorf("vm %q: no such VM in this scenario", f.VM)
	}
	if f.To != "" && !slices.ContainsFunc(s.Hosts, func(host Host) bool { return f.To == host.Name }) {
		return fmt.Errorf("to %q: no such host in this scenario", f.To)
	}
	if f.Boot < 0 || f.Limit() < 0 {
		return errors.New("boot and times cannot be negative")
	}
	for _, field := range fields {
		needed, optional := slices.Contains(field.needed, f.Kind), slices.Contains(field.optional, f.Kind)
		switch {
		case needed && !field.given(f):
			return fmt.Errorf("%s needs %s", f.Kind, field.name)
		case field.given(f) && !needed && !optional:
			return fmt.Errorf("%s does not belong to %s", field.name, f.Kind)
		}
	}
	return nil
}
