package vcenter

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/vmware/govmomi/simulator"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
)

const largestFault = 64 << 10 // bytes of a request

// control is an endpoint for faults of a running lab, which also answers while vCenter is away.
// It requires the administrator's account.
//
//	GET    /faults        every fault with its number and how often it has struck
//	POST   /faults        adds a fault, as in a scenario
//	DELETE /faults?id=N   removes that fault; without id every one
//	GET    /audit         what each VM's SQL Server was asked, by inventory path
//	GET    /logins        how many logins succeeded and failed, by account
type control struct {
	lab      *Server
	listener net.Listener
	http     *http.Server
}

func (s *Server) startControl() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c := &control{lab: s, listener: listener}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /faults", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.faults.list()) })
	mux.HandleFunc("POST /faults", c.add)
	mux.HandleFunc("GET /logins", s.countedLogins)
	mux.HandleFunc("DELETE /faults", c.clear)
	mux.HandleFunc("GET /audit", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, s.audit()) })
	s.control = c
	c.http = serveTLS(listener, c.authorized(mux), s.pair, "the lab's control")
	return nil
}

// serveTLS answers the requests of a listener until the server that it gives is closed.
func serveTLS(listener net.Listener, handler http.Handler, certificate tls.Certificate, who string) *http.Server {
	server := &http.Server{
		Handler:           handler,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:          log.Default(),
	}
	go func() {
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			log.Printf("%s stopped serving: %v", who, err)
		}
	}()
	return server
}

// ControlPort is the port of the control endpoint on 127.0.0.1.
func (s *Server) ControlPort() int { return s.control.listener.Addr().(*net.TCPAddr).Port }

// audit is what each VM's service was asked for by clients.
func (s *Server) audit() map[string]guest.Audit {
	told := map[string]guest.Audit{}
	for path, service := range s.config.Services {
		told[path] = service.Audit()
	}
	return told
}

func (c *control) authorized(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		right := subtle.ConstantTimeCompare([]byte(password), []byte(c.lab.config.Password)) == 1
		if user != c.lab.administrator() || !right {
			answer(w, http.StatusUnauthorized, map[string]string{"error": "wrong user or password"})
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (c *control) add(w http.ResponseWriter, r *http.Request) {
	data, err := io.ReadAll(io.LimitReader(r.Body, largestFault))
	var fault scenario.Fault
	if err == nil {
		fault, err = c.lab.config.Scenario.ParseFault(data)
	}
	if err != nil {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
		return
	}
	answer(w, http.StatusCreated, c.lab.inject(fault))
}

func (c *control) clear(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]int{"removed": c.lab.faults.clear()})
}

// inject adds a fault. A change from outside that names no boot happens at once.
func (s *Server) inject(fault scenario.Fault) FaultState {
	state := s.faults.add(fault)
	atOnce := []string{scenario.VMMoved, scenario.VMChanged, scenario.HostMaintenance, scenario.HostDisconnected, scenario.QuestionRunning}
	if fault.Boot == 0 && slices.Contains(atOnce, fault.Kind) {
		for _, m := range s.order {
			m.locked(func(*simulator.Context) { m.meddle(s.faults, int(m.boots.Load())) })
		}
	}
	s.tell(Event{"event": "fault_added", "id": state.ID, "kind": fault.Kind})
	return state
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(value); err != nil {
		log.Printf("the lab's control: %v", err)
	}
}
