package vcenter

import (
	"encoding/xml"
	"fmt"
	"log"
	"net/http"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

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

// surviving turns a panic outside of requests, in a task or during a boot, into the fault of a vCenter's own failure.
func surviving(work func() *refusal) (refused *refusal) {
	defer func() {
		if problem := recover(); problem != nil {
			log.Printf("vnuma-lab failed: %v\n%s", problem, debug.Stack())
			reason := fmt.Sprintf("vnuma-lab failed inside this task: %v", problem)
			refused = &refusal{fault: &types.SystemError{Reason: reason}, message: "A general system error occurred: " + reason}
		}
	}()
	return work()
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
