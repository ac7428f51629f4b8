package vcenter

import (
	"context"
	"errors"
	"net"
	"net/url"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/vmware/govmomi"
	"github.com/vmware/govmomi/fault"
	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/ports"
	"vnuma.dev/lab/internal/scenario"
)

const (
	administrator = "administrator@vsphere.local"
	testPassword  = "correct horse"
	patience      = 10 * time.Second
)

// lab is a running server with a client logged in over TLS and its VM sql16.
type lab struct {
	t       *testing.T
	ctx     context.Context
	server  *Server
	client  *govmomi.Client
	vm      *object.VirtualMachine
	service *listener
	mu      sync.Mutex
	events  []Event
}

// startLab runs a scenario given as YAML and logs the administrator in.
func startLab(t *testing.T, text string) *lab {
	t.Helper()
	played, err := scenario.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	l := &lab{t: t, ctx: ctx, service: newListener(t)}
	l.server, err = Start(Config{
		Scenario: played, StateDir: t.TempDir(), Listen: "127.0.0.1:0", Password: testPassword,
		Services: map[string]guest.Service{"/" + played.Datacenter() + "/vm/sql16": l.service}, Tell: l.tell,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.server.Close)
	l.client = l.login(played.Administrator())
	l.vm = l.find(l.client, "/"+played.Datacenter()+"/vm/sql16")
	return l
}

func (l *lab) tell(event Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, event)
}

// told returns the events of one kind so far.
func (l *lab) told(kind string) []Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []Event
	for _, event := range l.events {
		if event["event"] == kind {
			found = append(found, event)
		}
	}
	return found
}

// connect opens a client that trusts only this lab's CA, without logging in.
func (l *lab) connect() *vim25.Client {
	l.t.Helper()
	address := &url.URL{Scheme: "https", Host: l.server.Addr().String(), Path: "/sdk"}
	soapClient := soap.NewClient(address, false)
	if err := soapClient.SetRootCAs(l.server.CAFile()); err != nil {
		l.t.Fatal(err)
	}
	client, err := vim25.NewClient(l.ctx, soapClient)
	if err != nil {
		l.t.Fatal(err)
	}
	return client
}

func (l *lab) login(user string) *govmomi.Client {
	l.t.Helper()
	client := l.connect()
	manager := session.NewManager(client)
	if err := manager.Login(l.ctx, url.UserPassword(user, testPassword)); err != nil {
		l.t.Fatal(err)
	}
	return &govmomi.Client{Client: client, SessionManager: manager}
}

func (l *lab) find(client *govmomi.Client, path string) *object.VirtualMachine {
	l.t.Helper()
	vm, err := find.NewFinder(client.Client).VirtualMachine(l.ctx, path)
	if err != nil {
		l.t.Fatal(err)
	}
	return vm
}

// read fetches the VM's current state.
func (l *lab) read() mo.VirtualMachine {
	l.t.Helper()
	var vm mo.VirtualMachine
	if err := l.vm.Properties(l.ctx, l.vm.Reference(), []string{"name", "config", "runtime", "guest", "summary", "recentTask"}, &vm); err != nil {
		l.t.Fatal(err)
	}
	return vm
}

func (l *lab) reconfigure(spec types.VirtualMachineConfigSpec) error {
	l.t.Helper()
	return l.finished(l.vm.Reconfigure(l.ctx, spec))
}

func (l *lab) powerOn() error  { l.t.Helper(); return l.finished(l.vm.PowerOn(l.ctx)) }
func (l *lab) powerOff() error { l.t.Helper(); return l.finished(l.vm.PowerOff(l.ctx)) }

func (l *lab) finished(task *object.Task, err error) error {
	if err != nil {
		return err
	}
	return task.Wait(l.ctx)
}

// must fails the test if an operation that has to work does not.
func (l *lab) must(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

// wait returns when a property has the value, as reported by WaitForUpdatesEx.
func (l *lab) wait(path string, want any) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, patience)
	defer cancel()
	err := property.Wait(ctx, property.DefaultCollector(l.client.Client), l.vm.Reference(), []string{path}, func(changes []types.PropertyChange) bool {
		return slices.ContainsFunc(changes, func(change types.PropertyChange) bool { return reflect.DeepEqual(change.Val, want) })
	})
	if err != nil {
		l.t.Fatalf("%s did not become %v: %v", path, want, err)
	}
}

func (l *lab) waitForTools() {
	l.t.Helper()
	l.wait("guest.toolsRunningStatus", string(types.VirtualMachineToolsRunningStatusGuestToolsRunning))
}

// eventually waits for something outside vSphere.
func (l *lab) eventually(what string, holds func() bool) {
	l.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-deadline:
			l.t.Fatalf("%s: not within %v", what, patience)
		case <-tick.C:
		}
	}
}

// wantFault fails the test unless err carries a fault of type F; it returns it.
func wantFault[F any](t *testing.T, err error) *F {
	t.Helper()
	var found *F
	if err == nil {
		t.Fatalf("nothing was refused, want %T", found)
	}
	fault.In(err, func(candidate types.BaseMethodFault, _ string, _ []types.LocalizableMessage) bool {
		if typed, ok := any(candidate).(*F); ok {
			found = typed
		}
		return found != nil
	})
	if found == nil {
		t.Fatalf("got %v, want %T", err, found)
	}
	return found
}

func wantArgument(t *testing.T, err error, property string) {
	t.Helper()
	if got := wantFault[types.InvalidArgument](t, err).InvalidProperty; got != property {
		t.Errorf("refused because of %s, want %s", got, property)
	}
}

// listener replaces SQL Server: a port that is open while its guest runs.
type listener struct {
	passed  time.Duration
	still   atomic.Bool
	mu      sync.Mutex
	address string
	open    net.Listener
	boots   []guest.Boot
}

func newListener(t *testing.T) *listener {
	t.Helper()
	address, err := ports.Reserve("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &listener{address: address}
}

// Passed is the guest's simulated time beyond real time.
func (s *listener) Passed() time.Duration { return s.passed }

func (s *listener) Start(boot guest.Boot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		return errors.New("started twice")
	}
	s.boots = append(s.boots, boot)
	if boot.Faults.NeverListens {
		return nil
	}
	var err error
	s.open, err = net.Listen("tcp", s.address)
	return err
}

func (s *listener) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open != nil {
		s.open.Close()
		s.open = nil
	}
}

func (s *listener) Pause()  { s.still.Store(true) }
func (s *listener) Resume() { s.still.Store(false) }

func (s *listener) Addr() string { return s.address }

func (s *listener) Audit() guest.Audit { return guest.Audit{} }

func (s *listener) answers() bool {
	connection, err := net.DialTimeout("tcp", s.address, time.Second)
	if err == nil {
		connection.Close()
	}
	return err == nil
}

func (s *listener) started() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.boots)
}

func (s *listener) lastBoot() guest.Boot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.boots[len(s.boots)-1]
}

func sizes(boot guest.Boot) []int {
	var of []int
	for _, node := range boot.Nodes {
		of = append(of, len(node))
	}
	return of
}

func number[T any](value T) *T { return &value }
