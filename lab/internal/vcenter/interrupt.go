package vcenter

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

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

// hostLost is the fault of a task whose host did not respond.
func (m *machine) hostLost(method string) *refusal {
	if m.lab.faults.call(scenario.HostCommunication, m, method) {
		return &refusal{fault: &types.HostCommunication{}, message: "Unable to communicate with the remote host, since it is disconnected."}
	}
	return nil
}

// settling is the fault of a task while ESXi still cleans up after the VM's shutdown.
func (m *machine) settling(method string) *refusal {
	if m.lab.faults.call(scenario.InvalidState, m, method) {
		return &refusal{fault: &types.InvalidState{}, message: "The operation is not allowed in the current state."}
	}
	return nil
}

// datastoreFull reports whether the VM's files can grow no further.
func (m *machine) datastoreFull() bool {
	return m.lab.faults.take(scenario.DatastoreFull, m.scenario, int(m.boots.Load())+1) != nil
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
