package vcenter

import (
	"bytes"
	"cmp"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

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
	factors := map[string]*float64{
		scenario.Slow: &faults.SlowFactor, scenario.ForeignPages: &faults.ForeignPages, scenario.ForeignLookups: &faults.ForeignLookups,
	}
	for kind, factor := range factors {
		if fault := in.take(kind, vm, boot); fault != nil {
			*factor = fault.Factor
		}
	}
	faults.PortsElsewhere = in.take(scenario.PortsElsewhere, vm, boot) != nil
	return faults
}

// writes are the methods that transient faults hit unless they name another.
var writes = []string{"ReconfigVM_Task", "PowerOnVM_Task", "PowerOffVM_Task"}

// refused reports the fault that a call returns instead of being carried out.
func (s *Server) refused(method *simulator.Method) types.BaseMethodFault {
	m := s.machines[method.This]
	if m != nil && s.faults.call(scenario.TaskInProgress, m, method.Name) {
		return &types.TaskInProgress{Task: s.tasks.reference()}
	}
	return nil
}

// failing is the refusal of a task that a fault of this kind hits.
func (m *machine) failing(kind, method string, fault types.BaseMethodFault, message string) *refusal {
	if m.lab.faults.call(kind, m, method) {
		return &refusal{fault: fault, message: message}
	}
	return nil
}

// fault is the one of this kind that hits the VM now, counted as used, or nil.
func (m *machine) fault(kind string) *scenario.Fault {
	return m.lab.faults.take(kind, m.scenario, int(m.boots.Load()))
}

// nextFault is the one that hits it before its next boot.
func (m *machine) nextFault(kind string) *scenario.Fault {
	return m.lab.faults.take(kind, m.scenario, int(m.boots.Load())+1)
}

// fault is the one of this kind that hits any VM now.
func (s *Server) fault(kind string) *scenario.Fault {
	for _, m := range s.order {
		if fault := m.fault(kind); fault != nil {
			return fault
		}
	}
	return nil
}

// interrupting answers HTTP requests, or fails as networks and proxies do if a fault demands it.
func (s *Server) interrupting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || !s.faults.has(scenario.Unavailable, scenario.AnswerLost) {
			next.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		method, m := s.called(body)
		switch {
		case s.struck(scenario.Unavailable, method, m):
			http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
		case s.struck(scenario.AnswerLost, method, m):
			next.ServeHTTP(&discarded{header: http.Header{}}, r)
			panic(http.ErrAbortHandler) // closes the connection without an answer
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// struck looks for a fault that hits this call: of the VM that is called, or of any VM for calls of
// other objects where the fault names their method.
func (s *Server) struck(kind, method string, m *machine) bool {
	if m != nil {
		return s.faults.call(kind, m, method)
	}
	for _, any := range s.order {
		if s.faults.named(kind, any, method) {
			return true
		}
	}
	return false
}

var call = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)[^>]*>\s*<(?:\w+:)?_this[^>]*>([^<]+)<`)

// called is a SOAP request's method, and the VM that it is called on if it is one.
func (s *Server) called(body []byte) (string, *machine) {
	found := call.FindSubmatch(body)
	if found == nil {
		return "", nil
	}
	vm := types.ManagedObjectReference{Type: "VirtualMachine", Value: strings.TrimSpace(string(found[2]))}
	return string(found[1]), s.machines[vm]
}

// discarded is an answer that is never sent.
type discarded struct{ header http.Header }

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(p []byte) (int, error) { return len(p), nil }
func (d *discarded) WriteHeader(int)             {}

// restart makes vCenter unavailable for a while: connections are refused, sessions lost. Operations that
// have started on the hosts continue.
func (s *Server) restart(away time.Duration) {
	s.tell(Event{"event": "vcenter_down", "seconds": away.Seconds()})
	s.endSessions()
	s.serving.Lock()
	s.http.Close()
	s.serving.Unlock()
	time.AfterFunc(away, func() {
		s.serving.Lock()
		defer s.serving.Unlock()
		if s.closed {
			return
		}
		listener, err := net.Listen("tcp", s.address.String())
		if err != nil {
			s.tell(Event{"event": "vcenter_lost", "reason": err.Error()})
			return
		}
		s.listen(listener)
		s.tell(Event{"event": "vcenter_up"})
	})
}

// meddle does, some time after a power-on, what others do to a VM under study: DRS migrates it,
// or a colleague changes it.
func (m *machine) meddle(faults *injector, boot int) {
	struck := func(kind string, work func(*simulator.Context, *scenario.Fault)) {
		if fault := faults.take(kind, m.scenario, boot); fault != nil {
			m.after(seconds(fault.Seconds), func(ctx *simulator.Context) { work(ctx, fault) })
		}
	}
	struck(scenario.VMMoved, func(ctx *simulator.Context, fault *scenario.Fault) { m.migrate(ctx, fault.To) })
	struck(scenario.VMChanged, func(ctx *simulator.Context, fault *scenario.Fault) { m.changeByHand(ctx, fault.CPUReservation) })
	if m.isOn() {
		struck(scenario.QuestionRunning, func(ctx *simulator.Context, _ *scenario.Fault) { m.stop(ctx) })
	}
	struck(scenario.HostMaintenance, func(*simulator.Context, *scenario.Fault) { m.lab.enterMaintenance(m.host()) })
	struck(scenario.HostDisconnected, func(*simulator.Context, *scenario.Fault) { m.lab.disconnect(m.host()) })
}

// enterMaintenance starts maintenance mode: the host is in it once no VM of the host is on, and the task runs
// until then.
func (s *Server) enterMaintenance(h *host) {
	task := s.newTask(h.Self, "enterMaintenanceModeTask")
	s.registry.Put(task)
	h.entering.Store(task)
	s.setHost(h, "recentTask", append(slices.Clone(h.RecentTask), task.Self))
	s.tell(Event{"event": "host_entering_maintenance", "host": h.want.Name})
	s.emptied(h)
}

// emptied completes maintenance mode when the host's last VM is off.
func (s *Server) emptied(h *host) {
	task := h.entering.Load()
	if task == nil || slices.ContainsFunc(s.order, func(m *machine) bool { return m.host() == h && m.isOn() }) {
		return
	}
	h.entering.Store(nil)
	s.setHost(h, "runtime.inMaintenanceMode", true)
	s.finish(task, nil)
	s.tell(Event{"event": "host_maintenance", "host": h.want.Name})
}

func (s *Server) disconnect(h *host) {
	s.setHost(h, "runtime.connectionState", types.HostSystemConnectionStateDisconnected)
	s.tell(Event{"event": "host_disconnected", "host": h.want.Name})
}

func (s *Server) setHost(h *host, property string, value any) {
	s.registry.AtomicUpdate(s.context(), h.HostSystem, []types.PropertyChange{{Name: property, Val: value}})
}

// writtenByOthers is what hostd, a backup or Tools write to a VM just after its shutdown: a key
// that no study sets, and a new changeVersion.
func (m *machine) writtenByOthers(ctx *simulator.Context) {
	if m.isOn() || m.nextFault(scenario.KeysWritten) == nil {
		return
	}
	m.storeKeys(ctx, map[string]string{"guestinfo.written": m.nextChangeVersion()})
	m.tell("keys_written", Event{})
}

// migrate moves the VM as DRS or a vMotion would. A running VM with CPU affinity stays
// (AffinityConfigured), and so does one whose DRS override says so.
func (m *machine) migrate(ctx *simulator.Context, to string) {
	target := m.lab.hostNamed(to)
	stays := ""
	switch {
	case target == m.host():
		stays = "it is there already"
	case m.isOn() && len(m.affinity()) > 0:
		stays = "it has CPU affinity"
	case m.drsDisabled():
		stays = "its DRS override is disabled"
	}
	if stays != "" {
		m.tell("not_moved", Event{"to": to, "reason": stays})
		return
	}
	from := m.host().want.Name
	m.moveTo(ctx, target)
	m.tell("moved", Event{"from": from, "to": to})
}

// moveTo registers the VM at another host, and in its resource pool.
func (m *machine) moveTo(ctx *simulator.Context, target *host) {
	registry, from := m.lab.registry, m.host()
	registry.RemoveReference(ctx, from.HostSystem, &from.Vm, m.Self)
	registry.AppendReference(ctx, target.HostSystem, &target.Vm, m.Self)
	m.at.Store(target)
	pool := *m.lab.compute(target).ResourcePool
	m.publish(ctx, []types.PropertyChange{
		{Name: "runtime.host", Val: target.Self},
		{Name: "summary.runtime.host", Val: target.Self},
		{Name: "resourcePool", Val: pool},
	})
}

// drsDisabled reports whether the VM's own setting prevents DRS from moving it.
func (m *machine) drsDisabled() bool {
	cluster, ok := m.lab.registry.Get(*m.host().Parent).(*simulator.ClusterComputeResource)
	if !ok {
		return false
	}
	config, ok := cluster.ConfigurationEx.(*types.ClusterConfigInfoEx)
	return ok && slices.ContainsFunc(config.DrsVmConfig, func(own types.ClusterDrsVmConfigInfo) bool {
		return own.Key == m.Self && own.Enabled != nil && !*own.Enabled
	})
}

// colleague is the user of changes from outside.
const colleague = `VSPHERE.LOCAL\colleague`

// changeByHand sets a CPU reservation, as a user of the vSphere Client would.
func (m *machine) changeByHand(ctx *simulator.Context, mhz int64) {
	spec := &types.VirtualMachineConfigSpec{CpuAllocation: &types.ResourceAllocationInfo{Reservation: &mhz}}
	kind, event := "changed", Event{"cpu_reservation_mhz": mhz}
	if refused := refusing(func() { m.apply(ctx, colleague, spec) }); refused != nil {
		kind, event["reason"] = "not_changed", refused.message
	}
	m.tell(kind, event)
}
