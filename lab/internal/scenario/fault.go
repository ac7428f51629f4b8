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

// Kinds of fault, with what happens, and whether that was seen for real (R: recordings, published cases), is documented (D) or
// assumed (A). tools/lab_faults.py writes docs/reference/lab-faults.md from these lines.
const (
	ReconfigureRefused = "reconfigure_refused" // the reconfigure before that power-on ends in `SystemError` [A]
	ShutdownNever      = "shutdown_never"      // a guest shutdown is accepted, and nothing happens [D]
	ShutdownSlow       = "shutdown_slow"       // that guest takes `seconds` longer to shut down, as while Windows installs updates [R]
	ToolsNever         = "tools_never"         // Tools never run; SQL Server starts [R]
	PowerOnRefused     = "power_on_refused"    // that power-on ends in `GenericVmConfigFault` [D]
	FailoverRefused    = "failover_refused"    // HA's admission control refuses it (`InsufficientFailoverResourcesFault`) [D]
	TopologyStuck      = "topology_stuck"      // the guest keeps nodes and sockets of the previous boot [A]
	DatastoreFull      = "datastore_full"      // that power-on, or a reconfigure before it, ends in `NoDiskSpace` [D]
	SessionExpired     = "session_expired"     // all sessions end after that power-on has begun (`NotAuthenticated`) [D]
	AccountRefused     = "account_refused"     // a correct password is refused (`InvalidLogin`) [R]
	VCenterRestart     = "vcenter_restart"     // for `seconds` connections break, sessions are lost; tasks and VMs continue [A]
	TaskInProgress     = "task_in_progress"    // a call on the VM is answered with `TaskInProgress`, not carried out [D]
	HostCommunication  = "host_communication"  // a task ends in `HostCommunication`, with nothing changed [D]
	InvalidState       = "invalid_state"       // a task ends in `InvalidState`, as just after a shutdown, with nothing changed [D]
	Unavailable        = "unavailable"         // a call is answered with HTTP 503, not carried out [A]
	AnswerLost         = "answer_lost"         // a call is carried out, but the connection breaks before the answer [A]
	VMMoved            = "vm_moved"            // `to: HOST`: `seconds` after that power-on the VM moves, unless CPU affinity or `drs: disabled` keeps it [D]
	VMChanged          = "vm_changed"          // `cpu_reservation_mhz: N`: `seconds` after that power-on the VM's CPU reservation changes [A]
	KeysWritten        = "keys_written"        // a key is written into the powered-off VM just before a reconfigure, as by hostd or a backup [A]
	HostMaintenance    = "host_maintenance"    // `seconds` after that power-on its host enters maintenance mode, once its last VM is off; then it powers nothing on [D]
	HostDisconnected   = "host_disconnected"   // `seconds` after that power-on vCenter loses the host; VMs keep running [D]
	Question           = "question"            // that power-on waits for `AnswerVM` ("might have been moved or copied") [R]
	QuestionRunning    = "question_running"    // `seconds` after that power-on the VM stands still ("no more space for virtual disk") and refuses tasks (`QuestionPending`): 0 continues, 1 powers off [R]
	LogMissing         = "log_missing"         // that power-on writes no `vmware.log` [A]
	LogStale           = "log_stale"           // that power-on leaves the previous one's `vmware.log` [A]
	TicketRefused      = "ticket_refused"      // a service ticket for the log is refused (`NoPermission`, `Datastore.Browse`) [R]
	SQLNever           = "sql_never"           // the SQL port stays closed [A]
	LoginRefused       = "login_refused"       // every login fails with 18456, or with `number` (18401, 18470, 18486, 18487, 18488) [D]
	DropMidResult      = "drop_mid_result"     // `rows: N`: the connection is cut after N rows of a result [A]
	DatabaseRecovering = "database_recovering" // user databases come online after `seconds`; without them, never [D]
	Slow               = "slow"                // `factor: F`: every time of that boot is F times as long [A]
	ForeignPages       = "foreign_pages"       // `factor: F`: the share F of pages read is on another memory node than the reader's [A]
	ForeignLookups     = "foreign_lookups"     // `factor: F`: the share F of page lookups is counted wrongly [A]
	PortsElsewhere     = "ports_elsewhere"     // ports lead to the nodes that their masks exclude [A]
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
