// Command vnuma-lab simulates vSphere hosts with SQL Server VMs: the vSphere API and, for every VM that
// is on, a TDS endpoint; and Linux machines with SSH. Everything listens on 127.0.0.1. Events are JSON lines on
// standard output; docs/lab.md describes scenarios and limits.
package main

import (
	"crypto/rand"
	"crypto/tls"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/linux"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/sqlserver"
	"vnuma.dev/lab/internal/vcenter"
)

const exitUsage = 2

// The lab shares its machine with its clients. With many VMs it collects garbage early rather than grow; with a
// few there is little, and collecting it often would take a fifth of the processor time of short calls.
const (
	garbagePercent = 40  // of the live memory, before a collection
	garbageOfFew   = 200 // the same with few VMs and no fleet
	fewVMs         = 4
)

type options struct {
	scenario, stateDir, passwordFile, listen, keytab string
	timeScale                                        float64
	seed                                             int64
	untilStdinCloses                                 bool
}

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	opts, err := parseFlags(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		os.Exit(exitUsage)
	}
	if err := run(opts); err != nil {
		fmt.Fprintln(os.Stderr, "vnuma-lab:", err)
		os.Exit(1)
	}
}

func parseFlags(arguments []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("vnuma-lab", flag.ContinueOnError)
	flags.StringVar(&o.scenario, "scenario", "paper", fmt.Sprintf("built-in scenario %v or a YAML file", scenario.Names()))
	flags.StringVar(&o.stateDir, "state-dir", "", "folder for certificates, password and ready.json (default: a temporary one)")
	flags.StringVar(&o.passwordFile, "password-file", "", "file with the password of every account; made when missing (default: STATE-DIR/password)")
	flags.StringVar(&o.listen, "listen", "127.0.0.1:0", "address of the vSphere API; port 0 = a free one")
	flags.StringVar(&o.keytab, "keytab", "", "keytab with the SQL Servers' SPNs: with it Kerberos tickets log in (default: they do not)")
	flags.Float64Var(&o.timeScale, "time-scale", -1, "how much of a statement's time really passes, 0 to 1 (default: the scenario's)")
	flags.Int64Var(&o.seed, "seed", 0, "seed of the noise (default: the scenario's)")
	flags.BoolVar(&o.untilStdinCloses, "until-stdin-closes", false, "stop when standard input ends, as it does when the starter dies")
	if err := flags.Parse(arguments); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		err := fmt.Errorf("unexpected argument %q", flags.Arg(0))
		fmt.Fprintln(os.Stderr, "vnuma-lab:", err)
		return o, err
	}
	return o, nil
}

func run(o options) error {
	played, err := scenario.Load(o.scenario)
	if err != nil {
		return err
	}
	if o.timeScale >= 0 {
		played.TimeScale = o.timeScale
	}
	if o.seed != 0 {
		played.Seed = o.seed
	}
	debug.SetGCPercent(garbageFor(len(played.VMs), played.Fleet.VMs))
	dir, err := stateDir(o.stateDir)
	if err != nil {
		return err
	}
	if o.stateDir == "" {
		defer os.RemoveAll(dir)
	}
	if o.passwordFile == "" {
		o.passwordFile = filepath.Join(dir, "password")
	}
	password, err := readPassword(o.passwordFile)
	if err != nil {
		return err
	}
	if err := keepTemporaryFilesIn(dir); err != nil {
		return err
	}
	stop := stopRequests(o.untilStdinCloses)

	out := &teller{encoder: json.NewEncoder(os.Stdout)}
	model, err := modelOf(played)
	if err != nil {
		return err
	}
	addresses := guestAddresses(len(played.VMs))
	certificates, err := vcenter.MakeCertificates(dir, time.Now(), played.CertificateDays, addresses...)
	if err != nil {
		return fmt.Errorf("certificates in %s: %w", dir, err)
	}
	services, err := newServices(played, model, password, addresses, &certificates.SQL, o.keytab)
	if err != nil {
		return err
	}
	machines, err := startMachines(played, model, dir, services, addresses)
	if err != nil {
		return err
	}
	defer machines.close()
	server, err := vcenter.Start(vcenter.Config{
		Scenario: played, StateDir: dir, Listen: o.listen, Password: password,
		Certificates: certificates, Services: services.guests, Tell: out.tell,
	})
	if err != nil {
		return err
	}
	ready := readyEvent(played, server, services, machines)
	if err := writeReady(filepath.Join(dir, "ready.json"), ready); err != nil {
		server.Close()
		return err
	}
	out.tell(ready)
	reason := <-stop
	server.Close()
	os.Remove(filepath.Join(dir, "ready.json"))
	out.tell(vcenter.Event{"event": "stopped", "reason": reason})
	return nil
}

// garbageFor is the percentage of garbage with this many VMs, and this many in a fleet.
func garbageFor(vms, fleet int) int {
	if vms <= fewVMs && fleet == 0 {
		return garbageOfFew
	}
	return garbagePercent
}

// stopRequests yields the reason to stop: a signal, or the end of standard input if requested.
func stopRequests(untilStdinCloses bool) <-chan string {
	stop := make(chan string, 2)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() { stop <- (<-signals).String() }()
	if untilStdinCloses {
		go func() {
			io.Copy(io.Discard, os.Stdin) // only its end matters, not its error
			stop <- "standard input closed"
		}()
	}
	return stop
}

func readyEvent(played *scenario.Scenario, server *vcenter.Server, services *services, machines machines) vcenter.Event {
	vms := []vcenter.Event{}
	for _, vm := range played.VMs {
		told := vcenter.Event{"name": vm.Name, "path": vm.Path(), "host": played.HostOf(vm).Name}
		if ports := services.ports[vm.Path()]; ports != nil {
			told["sql"] = at(netip.MustParseAddrPort(services.guests[vm.Path()].Addr()), vcenter.Event{"user": sqlUser, "node_ports": ports})
		}
		vms = append(vms, told)
	}
	return vcenter.Event{
		"event":   "ready",
		"vcenter": at(server.Addr().AddrPort(), vcenter.Event{"ca_file": server.CAFile(), "user": played.Administrator()}),
		"control": vcenter.Event{"host": server.Addr().IP.String(), "port": server.ControlPort()},
		"vms":     vms, "machines": machines.events(), "scenario": played.Name, "esxi": played.Release().String(), "pid": os.Getpid(), "simulated": true,
	}
}

// at adds an address to the description of what answers there.
func at(address netip.AddrPort, told vcenter.Event) vcenter.Event {
	told["host"], told["port"] = address.Addr().String(), address.Port()
	return told
}

func writeReady(file string, ready vcenter.Event) error {
	data, err := json.Marshal(ready)
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(data, '\n'), 0o644)
}

// teller writes events as JSON lines, each with its time. `ready` is always the first.
type teller struct {
	mu      sync.Mutex
	encoder *json.Encoder
	isReady bool
	early   []vcenter.Event
}

func (t *teller) tell(event vcenter.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	event["time"] = time.Now().UTC().Format(time.RFC3339Nano)
	if event["event"] == "ready" {
		t.isReady = true
		t.early = append([]vcenter.Event{event}, t.early...)
	} else {
		t.early = append(t.early, event)
	}
	for t.isReady && len(t.early) > 0 {
		if err := t.encoder.Encode(t.early[0]); err != nil {
			log.Printf("standard output: %v", err)
		}
		t.early = t.early[1:]
	}
}

const (
	sqlUser   = "sa"
	nodePorts = 2 // further ports of each SQL Server, for mapping to NUMA nodes
)

// services are what runs inside the scenario's VMs: SQL Servers, and Linux guests.
type services struct {
	guests map[string]guest.Service // by inventory path
	ports  map[string][]int         // each one's further ports
}

// modelOf is a scenario's cost model.
func modelOf(played *scenario.Scenario) (cost.Model, error) {
	text, err := played.CostYAML()
	if err != nil {
		return cost.Model{}, err
	}
	return cost.FromYAML(text)
}

func newServices(
	played *scenario.Scenario, model cost.Model, password string, addresses []string, certificate *tls.Certificate,
	keytab string,
) (*services, error) {
	made := &services{guests: map[string]guest.Service{}, ports: map[string][]int{}}
	diagnosis := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for i, vm := range played.VMs {
		if slices.ContainsFunc(played.Machines, func(one scenario.Machine) bool { return one.VM == vm.Name }) {
			continue
		}
		instance, err := sqlserver.New(sqlserver.Config{
			SQL: vm.SQL, Address: net.JoinHostPort(addresses[i], "0"), User: sqlUser, Password: password, Scenario: played.Name,
			Cost: model, TimeScale: played.TimeScale, Seed: played.Seed + int64(i), WithoutColumns: played.WithoutColumns,
			NodePorts: nodePorts, ClockAhead: time.Duration(vm.Around.ClockMinutes * float64(time.Minute)),
			Certificate: certificate, Keytab: keytab, Log: diagnosis.With("vm", vm.Path()),
		})
		if err != nil {
			return nil, fmt.Errorf("SQL Server in %s: %w", vm.Path(), err)
		}
		made.guests[vm.Path()] = instance
		made.ports[vm.Path()] = instance.NodePorts()
	}
	return made, nil
}

// guestAddresses are those of the guests of this many VMs.
func guestAddresses(count int) []string {
	found := make([]string, count)
	for i := range found {
		found[i] = guestAddress(i)
	}
	return found
}

// guestAddress is the address of the i-th VM's guest, one per guest as in a real network: 127.0.0.1 of the first,
// 127.0.0.2 of the second. If the machine has no loopback address but 127.0.0.1, as macOS, all guests share that one.
func guestAddress(i int) string {
	const first, shared = 1, "127.0.0.1"
	own := net.IPv4(127, 0, byte((first+i)>>8), byte(first+i)).String()
	probe, err := net.Listen("tcp", net.JoinHostPort(own, "0"))
	if err != nil {
		return shared
	}
	probe.Close()
	return own
}

// machines are the SSH servers of the scenario's Linux machines, by name.
type machines []machine

type machine struct {
	name   string
	vm     string // the path of the VM whose guest it is; empty: none
	server *linux.Server
}

// startMachines starts those outside vCenter, and makes the guests of VMs one of the services.
func startMachines(
	played *scenario.Scenario, model cost.Model, dir string, inside *services, addresses []string,
) (machines, error) {
	var started machines
	diagnosis := slog.New(slog.NewTextHandler(os.Stderr, nil))
	for i, stated := range played.Machines {
		config := linux.Config{Machine: stated, Scenario: played.Name, Cost: model, Seed: played.Seed + int64(i)}
		log := diagnosis.With("machine", stated.Name)
		at := slices.IndexFunc(played.VMs, func(vm scenario.VM) bool { return vm.Name == stated.VM })
		if at < 0 {
			server, err := linux.Serve(linux.New(config), dir, log)
			if err != nil {
				started.close()
				return nil, err
			}
			started = append(started, machine{name: stated.Name, server: server})
			continue
		}
		guest, err := linux.NewGuest(config, net.JoinHostPort(addresses[at], "0"), dir, log)
		if err != nil {
			started.close()
			return nil, err
		}
		path := played.VMs[at].Path()
		inside.guests[path] = guest
		started = append(started, machine{name: stated.Name, vm: path, server: guest.Server()})
	}
	return started, nil
}

func (m machines) close() {
	for _, one := range m {
		one.server.Close()
	}
}

// events are their entries in the `ready` line.
func (m machines) events() []vcenter.Event {
	told := []vcenter.Event{}
	for _, one := range m {
		told = append(told, at(one.server.Addr(), vcenter.Event{
			"name": one.name, "vm": one.vm, "user": linux.User, "key_file": one.server.KeyFile(), "known_hosts": one.server.KnownHosts(),
		}))
	}
	return told
}

// stateDir creates the folder, or a temporary one if none is named, and returns its absolute path.
func stateDir(named string) (string, error) {
	if named == "" {
		return os.MkdirTemp("", "vnuma-lab-")
	}
	dir, err := filepath.Abs(named)
	if err != nil {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}

// readPassword reads the one password of all accounts, or generates a random one.
func readPassword(file string) (string, error) {
	data, err := os.ReadFile(file)
	if err == nil {
		password := strings.TrimSpace(string(data))
		if password == "" {
			return "", fmt.Errorf("%s is empty: remove it, and a password is made", file)
		}
		return password, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	password := rand.Text()
	return password, os.WriteFile(file, []byte(password+"\n"), 0o600)
}

// keepTemporaryFilesIn puts the datastore, which the simulator creates as a temporary folder, into the
// state folder, and removes what a killed lab left there.
func keepTemporaryFilesIn(dir string) error {
	temporary := filepath.Join(dir, "tmp")
	if err := os.RemoveAll(temporary); err != nil {
		return err
	}
	if err := os.MkdirAll(temporary, 0o700); err != nil {
		return err
	}
	return os.Setenv("TMPDIR", temporary)
}
