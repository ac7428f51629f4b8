// Package vcenter serves the vSphere API for simulated hosts: govmomi's simulator, made as
// strict as a real vCenter where a study of VM topologies depends on it.
package vcenter

import (
	"context"
	"crypto/tls"
	"encoding/xml"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/ports"
	"vnuma.dev/lab/internal/scenario"
)

// Event is one line of the lab's output to its starter.
type Event map[string]any

// Config is what a server needs in addition to the scenario.
type Config struct {
	Scenario *scenario.Scenario
	StateDir string // certificates and the vCenter's identity, stored for later restarts
	Listen   string // host:port; port 0 = a free one
	Password string // of every account
	// Certificates are generated if nil.
	Certificates *Certificates
	// Services run inside the VMs, by inventory path; a VM without one boots as well.
	Services map[string]guest.Service
	Tell     func(Event)
}

// Server is a running vCenter.
type Server struct {
	config   Config
	model    *simulator.Model
	registry *simulator.Registry
	storage  string // the datastore's folder
	hosts    []*host
	machines map[types.ManagedObjectReference]*machine
	order    []*machine // as in the scenario
	faults   *injector
	tasks    taskCounter
	logins   logins
	running  running

	serving sync.Mutex // guards http and closed
	closed  bool
	http    *http.Server
	address *net.TCPAddr
	pair    tls.Certificate
	caFile  string
	control *control
	// hostFiles is nil if hosts answer at vCenter's address.
	hostFiles *hostFiles
	tickets   tickets
}

// Start builds the inventory, powers on the VMs that are on in the scenario, and serves.
func Start(config Config) (*Server, error) {
	s := &Server{
		config:   config,
		machines: map[types.ManagedObjectReference]*machine{},
		faults:   newInjector(config.Scenario.Faults),
	}
	certificates := config.Certificates
	if certificates == nil {
		made, err := MakeCertificates(config.StateDir, time.Now(), config.Scenario.CertificateDays)
		if err != nil {
			return nil, fmt.Errorf("certificates in %s: %w", config.StateDir, err)
		}
		certificates = made
	}
	s.caFile, s.pair = certificates.CAFile, certificates.Server
	address, err := ports.Reserve(config.Listen) // a restarted vCenter comes back at the same address
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	s.address = listener.Addr().(*net.TCPAddr)
	if err = s.build(); err == nil {
		err = errors.Join(s.startControl(), s.startHostFiles())
	}
	if err != nil {
		listener.Close()
		s.Close()
		return nil, err
	}
	s.serve()
	s.listen(listener)
	if err := s.tagInventory(); err != nil {
		s.Close()
		return nil, fmt.Errorf("tags: %w", err)
	}
	return s, nil
}

// build creates the inventory and boots the VMs that are on from the start.
func (s *Server) build() error {
	identity, err := keptIdentity(s.config.StateDir)
	if err != nil {
		return err
	}
	s.model = newModel(identity, s.config.Scenario)
	if err := s.model.Create(); err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	s.registry = s.model.Map()
	s.listPrivileges()
	if err := s.furnish(identity); err != nil {
		return fmt.Errorf("inventory: %w", err)
	}
	if !s.config.Scenario.CustomAttributes {
		s.withoutCustomAttributes()
	}
	for _, m := range s.order {
		if err := m.powerOnAtStart(); err != nil {
			return fmt.Errorf("%s: %w", m.scenario.Path(), err)
		}
	}
	return nil
}

// serve prepares the service, whichever listener the requests come from.
func (s *Server) serve() {
	service := s.model.Service
	service.Listen = &url.URL{
		Scheme: "https", Host: s.address.String(), Path: "/sdk",
		User: url.UserPassword(s.administrator(), s.config.Password),
	}
	sessions := s.registry.SessionManager()
	sessions.ServiceHostName = s.address.String()
	sessions.ValidLogin = s.validLogin
	s.registry.Handler = s.admit

	service.ServeMux = http.NewServeMux()
	service.RegisterSDK(s.registry, "/sdk/vimService")
	service.ServeMux.HandleFunc("/sdk/vimServiceVersions.xml", s.serveVersions)
	service.ServeMux.HandleFunc(folderPath, s.serveFolder)
	s.serveTags(service)
}

// serveVersions lists the API's versions as a real server does; not all of them are numbers.
func (s *Server) serveVersions(w http.ResponseWriter, _ *http.Request) {
	var versions strings.Builder
	for _, version := range []string{"6.0", "5.5", "5.1", "5.0", "4.1", "4.0", "2.5u2server", "2.5u2", "2.5"} {
		fmt.Fprintf(&versions, "<version>%s</version>", version)
	}
	fmt.Fprintf(w, xml.Header+`<namespaces version="1.0"><namespace><name>urn:vim25</name><version>%s</version>`+
		`<priorVersions>%s</priorVersions></namespace></namespaces>`, s.model.ServiceContent.About.ApiVersion, versions.String())
}

// listen answers the requests of a listener until the server is closed or restarted.
func (s *Server) listen(listener net.Listener) {
	s.http = serveTLS(listener, s.answering(s.interrupting(s.model.Service.ServeMux)), s.pair, "vCenter")
}

// Close stops serving, stops the services inside the VMs and removes the datastore.
func (s *Server) Close() {
	s.serving.Lock()
	s.closed = true
	if s.http != nil {
		s.http.Close()
	}
	s.serving.Unlock()
	if s.control != nil {
		s.control.http.Close()
	}
	if s.hostFiles != nil {
		s.hostFiles.http.Close()
	}
	for _, m := range s.order {
		m.locked(func(*simulator.Context) { m.abandon() })
	}
	if s.model != nil && s.model.Service != nil {
		s.model.Remove()
	}
	os.RemoveAll(s.storage)
}

func (s *Server) administrator() string { return s.config.Scenario.Administrator() }

// Addr is the address on which the API is served.
func (s *Server) Addr() *net.TCPAddr { return s.address }

// CAFile is the certificate that a client must trust.
func (s *Server) CAFile() string { return s.caFile }

// context is for work outside any request, such as a boot.
func (s *Server) context() *simulator.Context {
	return &simulator.Context{Context: context.Background(), Map: s.registry}
}

// tell is about the VM.
func (m *machine) tell(kind string, event Event) {
	event["event"], event["vm"], event["path"] = kind, m.Name, m.scenario.Path()
	m.lab.tell(event)
}

func (s *Server) tell(event Event) {
	if s.config.Tell != nil {
		s.config.Tell(event)
	}
}

// keptIdentity is the vCenter's instance UUID: a different one for every lab, but the same after a restart.
func keptIdentity(dir string) (string, error) {
	file := filepath.Join(dir, "instance-uuid")
	data, err := os.ReadFile(file)
	if err == nil {
		if identity, err := uuid.ParseBytes(data); err == nil {
			return identity.String(), nil
		}
	}
	identity := uuid.NewString()
	return identity, os.WriteFile(file, []byte(identity), 0o644)
}
