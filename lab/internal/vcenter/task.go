package vcenter

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

type taskCounter struct{ atomic.Int64 }

// newTask is a running task of an object, not yet known to any client.
func (s *Server) newTask(of types.ManagedObjectReference, name string) *simulator.Task {
	task := simulator.CreateTask(of, name, nil)
	task.Self = s.tasks.reference()
	task.Info.Key, task.Info.Task, task.Info.State = task.Self.Value, task.Self, types.TaskInfoStateRunning
	return task
}

func (c *taskCounter) reference() types.ManagedObjectReference {
	return types.ManagedObjectReference{Type: "Task", Value: fmt.Sprintf("task-lab-%d", c.Add(1))}
}

// startTask registers a task on the machine and runs work after the scenario's task time, holding
// the machine's lock. The client finds the outcome in the task, as with a real vCenter.
// name is the method in the API without "_Task"; operation as in its description.
func (m *machine) startTask(ctx *simulator.Context, name, operation string, work func(*simulator.Context)) types.ManagedObjectReference {
	task := m.lab.newTask(m.Self, name+"Task")
	task.Info.DescriptionId, task.Info.EntityName = "VirtualMachine."+operation, m.Name
	started := time.Now()
	task.Info.StartTime = &started
	if ctx.Session != nil {
		task.Info.Reason = &types.TaskReasonUser{UserName: ctx.Session.UserName}
	}
	m.lab.registry.Put(task)
	time.AfterFunc(seconds(m.lab.config.Scenario.Boot.TaskSeconds), func() {
		var refused *refusal
		m.locked(func(ctx *simulator.Context) {
			if refused = m.barred(method(name)); refused == nil {
				refused = surviving(func() { work(ctx) })
			}
			if refused == unanswered {
				m.pending.task = task
			}
		})
		if refused != unanswered {
			m.lab.finish(task, refused)
		}
	})
	return task.Self
}

// barred is why no task of this kind may run now, or nil.
func (m *machine) barred(method string) *refusal {
	if m.pending != nil {
		return m.pending.blocks()
	}
	return cmp.Or(m.lab.restricted(), m.methodDisabled(method),
		m.failing(scenario.HostCommunication, method, &types.HostCommunication{}, "Unable to communicate with the remote host, since it is disconnected."),
		m.failing(scenario.InvalidState, method, &types.InvalidState{}, "The operation is not allowed in the current state."))
}

// method is the API's name of a task's method: PowerOnVM_Task of powerOnVM.
func method(name string) string { return strings.ToUpper(name[:1]) + name[1:] + "_Task" }

func (s *Server) finish(task *simulator.Task, refused *refusal) {
	changes := []types.PropertyChange{{Name: "info.completeTime", Val: time.Now()}}
	if refused == nil {
		changes = append(changes, types.PropertyChange{Name: "info.state", Val: types.TaskInfoStateSuccess})
	} else {
		changes = append(changes,
			types.PropertyChange{Name: "info.error", Val: types.LocalizedMethodFault{
				Fault: refused.fault, LocalizedMessage: refused.message,
			}},
			types.PropertyChange{Name: "info.state", Val: types.TaskInfoStateError})
	}
	ctx := s.context()
	s.registry.AtomicUpdate(ctx, task, changes)
}

func seconds(number float64) time.Duration { return time.Duration(number * float64(time.Second)) }

// refusal is why an operation is not carried out: the API's fault, and its message.
type refusal struct {
	fault   types.BaseMethodFault
	message string
}

func (r *refusal) soap() *soap.Fault { return simulator.Fault(r.message, r.fault) }

func invalidArgument(property, format string, values ...any) *refusal {
	return &refusal{
		fault:   &types.InvalidArgument{InvalidProperty: property},
		message: "A specified parameter was not correct: " + property + ": " + fmt.Sprintf(format, values...),
	}
}

func invalidPower(requested, existing types.VirtualMachinePowerState) *refusal {
	fault := &types.InvalidPowerState{RequestedState: requested, ExistingState: existing}
	return &refusal{fault: fault, message: fmt.Sprintf("The attempted operation cannot be performed in the current state (%s).", existing)}
}

func notSupported(format string, values ...any) *refusal {
	return &refusal{fault: &types.NotSupported{}, message: "The operation is not supported on the object: " + fmt.Sprintf(format, values...)}
}

func cannotPowerOn(format string, values ...any) *refusal {
	reason := fmt.Sprintf(format, values...)
	return &refusal{fault: &types.GenericVmConfigFault{Reason: reason}, message: "Failed to power on the virtual machine: " + reason}
}

// noSpace is the fault of a full datastore: no swap file, no new .vmx.
func noSpace() *refusal {
	fault := &types.NoDiskSpace{FileFault: types.FileFault{File: "[" + datastore + "]"}, Datastore: datastore}
	return &refusal{fault: fault, message: "Insufficient disk space on datastore '" + datastore + "'."}
}

// refusing returns the refusal with which work panics, or nil.
func refusing(work func()) (refused *refusal) {
	defer func() {
		problem := recover()
		var ok bool
		if refused, ok = problem.(*refusal); !ok && problem != nil {
			panic(problem)
		}
	}()
	work()
	return nil
}

// surviving turns any other panic outside of requests, in a task or during a boot, into the fault of a vCenter's own
// failure.
func surviving(work func()) (refused *refusal) {
	defer func() {
		if problem := recover(); problem != nil {
			log.Printf("vnuma-lab failed: %v\n%s", problem, debug.Stack())
			reason := fmt.Sprintf("vnuma-lab failed inside this task: %v", problem)
			refused = &refusal{fault: &types.SystemError{Reason: reason}, message: "A general system error occurred: " + reason}
		}
	}()
	return refusing(work)
}

// answering turns a panic inside a request into the fault of a vCenter's own failure.
func (s *Server) answering(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			problem := recover()
			s.running.ended(problem != nil)
			switch problem {
			case nil:
			case http.ErrAbortHandler: // deliberate: the connection ends without an answer
				panic(problem)
			default:
				log.Printf("vnuma-lab failed inside a request: %v\n%s", problem, debug.Stack())
				var reason strings.Builder
				xml.EscapeText(&reason, []byte(fmt.Sprintf("vnuma-lab failed inside this request: %v", problem)))
				w.WriteHeader(http.StatusInternalServerError)
				fmt.Fprintf(w, systemError, reason.String())
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// dispatched is a request that the simulator runs: in WithLock, which keeps the object's lock if a method panics.
type dispatched struct {
	ctx    *simulator.Context
	object types.ManagedObjectReference
}

// running are the calls by their goroutine: the simulator gives a request's context to no one else.
type running struct{ calls sync.Map }

func (r *running) began(ctx *simulator.Context, object types.ManagedObjectReference) {
	r.calls.Store(goroutine(), dispatched{ctx, object})
}

// ended forgets this goroutine's call, if any, and frees its object if it failed.
func (r *running) ended(failed bool) {
	if found, ok := r.calls.LoadAndDelete(goroutine()); ok && failed {
		found.(dispatched).letGo()
	}
}

func (c dispatched) letGo() {
	if own, ok := c.ctx.Map.Get(c.object).(interface {
		sync.Locker
		TryLock() bool
	}); ok {
		own.TryLock()
		own.Unlock()
		return
	}
	defer func() { _ = recover() }() // a lock that is free refuses one more release
	for release := c.ctx.Map.AcquireLock(c.ctx, c.object); ; {
		release()
	}
}

// goroutine is the number of this goroutine, the second word of its stack trace.
func goroutine() string {
	var trace [64]byte
	return strings.Fields(string(trace[:runtime.Stack(trace[:], false)]))[1]
}

const systemError = xml.Header + `<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/"
 xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"><soapenv:Body><soapenv:Fault>
<faultcode>ServerFaultCode</faultcode><faultstring>A general system error occurred: %[1]s</faultstring>
<detail><SystemErrorFault xmlns="urn:vim25" xsi:type="SystemError"><reason>%[1]s</reason></SystemErrorFault></detail>
</soapenv:Fault></soapenv:Body></soapenv:Envelope>
`
