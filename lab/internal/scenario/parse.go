package scenario

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"vnuma.dev/lab/internal/vnuma"
)

//go:embed builtin/*.yml
var builtin embed.FS

// Names lists the built-in scenarios.
func Names() []string {
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		panic(err) // embedded at build time
	}
	var names []string
	for _, entry := range entries {
		names = append(names, strings.TrimSuffix(entry.Name(), ".yml"))
	}
	return names
}

// Load reads a built-in scenario by name, or a file.
func Load(nameOrFile string) (*Scenario, error) {
	if slices.Contains(Names(), nameOrFile) {
		data, err := builtin.ReadFile(path.Join("builtin", nameOrFile+".yml"))
		if err != nil {
			return nil, err
		}
		return Parse(data)
	}
	data, err := os.ReadFile(nameOrFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("scenario %q is neither a file nor built in (%s)", nameOrFile, strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	parsed, err := Parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", nameOrFile, err)
	}
	var given struct{ Name string }
	if err := yaml.Unmarshal(data, &given); err == nil && given.Name == "" {
		base := filepath.Base(nameOrFile)
		parsed.Name = strings.TrimSuffix(base, filepath.Ext(base)) // the scenario is not the paper's laboratory
	}
	return parsed, nil
}

// Parse reads a scenario, fills in the paper's values and returns an error for what cannot be simulated.
func Parse(data []byte) (*Scenario, error) {
	s := paper()
	if err := decode(data, s); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if err := s.readHosts(); err != nil {
		return nil, err
	}
	if s.VMs == nil {
		s.VMs = []VM{defaultVM()}
	}
	for _, host := range append(s.Hosts, s.Host, Host{ESXi: s.ESXi}) {
		if err := host.ESXi.check(); err != nil {
			return nil, err
		}
	}
	s.fill()
	s.Fleet.fill()
	if err := s.check(); err != nil {
		return nil, err
	}
	return s, nil
}

// strictly decodes a node and refuses unknown fields, which yaml.Node.Decode accepts.
func strictly(node *yaml.Node, target any) error {
	data, err := yaml.Marshal(node)
	if err != nil {
		return err
	}
	return decode(data, target)
}

var unknownField = regexp.MustCompile(`field (\S+) not found in type [^\s;]+`)

const mostFaults = 3 // that one message names

// decode reads YAML or JSON and refuses unknown fields, each with its line; io.EOF when there is nothing.
func decode(data []byte, target any) error {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	err := decoder.Decode(target)
	var faults *yaml.TypeError
	if !errors.As(err, &faults) {
		return err
	}
	told := faults.Errors
	if more := len(told) - mostFaults; more > 0 {
		told = append(told[:mostFaults:mostFaults], fmt.Sprintf("and %d more", more))
	}
	return errors.New(unknownField.ReplaceAllString(strings.Join(told, "; "), "unknown field $1"))
}

// readHosts makes the hosts: each entry of `hosts` over `host`, or `host` alone.
func (s *Scenario) readHosts() error {
	for i := range s.HostNodes {
		host := s.Host
		host.Name = ""
		if err := strictly(&s.HostNodes[i], &host); err != nil {
			return fmt.Errorf("host %d: %w", i+1, err)
		}
		s.Hosts = append(s.Hosts, host)
	}
	if s.Hosts == nil {
		s.Hosts = []Host{s.Host}
	}
	return nil
}

func (e ESXi) check() error {
	if e.Version == "" {
		return nil
	}
	release, err := vnuma.ParseRelease(e.Version)
	if err == nil && (!release.AtLeast(6, 0) || release.AtLeast(9, 1)) {
		err = fmt.Errorf("esxi.version %s: releases before 6.0 and after 9.0 are not modelled", e.Version)
	}
	return err
}

func (s *Scenario) check() error {
	if s.Reading != string(vnuma.ReadingFollow) && s.Reading != string(vnuma.ReadingFits) {
		return fmt.Errorf("reading %q: want follow or fits", s.Reading)
	}
	if err := s.checkHosts(); err != nil {
		return err
	}
	if err := s.Fleet.check(); err != nil {
		return fmt.Errorf("fleet: %w", err)
	}
	if err := s.checkStandalone(); err != nil {
		return fmt.Errorf("standalone: %w", err)
	}
	paths := map[string]bool{}
	for _, vm := range s.VMs {
		if host := s.HostOf(vm); vm.Host != "" && vm.Host != host.Name {
			return fmt.Errorf("vm %q: no host %s in this scenario", vm.Name, vm.Host)
		} else if err := vm.check(host); err != nil {
			return fmt.Errorf("vm %q: %w", vm.Name, err)
		}
		if paths[vm.Path()] {
			return fmt.Errorf("vm %q: there are two at %s", vm.Name, vm.Path())
		}
		paths[vm.Path()] = true
	}
	if err := s.checkMachines(); err != nil {
		return err
	}
	for i, fault := range s.Faults {
		if err := s.CheckFault(fault); err != nil {
			return fmt.Errorf("fault %d: %w", i+1, err)
		}
	}
	if s.Licence != "" && s.Licence != LicenceFree {
		return fmt.Errorf("licence %q: want %s, or nothing", s.Licence, LicenceFree)
	}
	if s.HostCertificate != "" && !slices.Contains(HostCertificates, s.HostCertificate) {
		return fmt.Errorf("host_certificate %q: want one of %s, or nothing", s.HostCertificate, strings.Join(HostCertificates, ", "))
	}
	for _, account := range s.Accounts {
		if account.User == "" {
			return errors.New("an account needs a user")
		}
	}
	for _, tag := range s.Tags {
		if tag.Category == "" || tag.Name == "" {
			return errors.New("a tag needs a category and a name")
		}
	}
	return s.Boot.check()
}

// checkStandalone returns an error for what only a vCenter has.
func (s *Scenario) checkStandalone() error {
	switch {
	case !s.Standalone:
		return nil
	case len(s.Hosts) != 1 || len(s.Clusters) > 0 || s.Fleet.Hosts > 0:
		return errors.New("one host, and neither clusters nor a fleet: they belong to a vCenter")
	case slices.ContainsFunc(s.VMs, func(vm VM) bool { return vm.Folder+vm.Around.VApp != "" }):
		return errors.New("an ESXi host by itself has no folders of VMs and no vApps")
	case len(s.Tags) > 0:
		return errors.New("tags belong to a vCenter")
	}
	return nil
}

func (b Boot) check() error {
	for _, seconds := range []float64{b.ToolsSeconds, b.SQLSeconds, b.ShutdownSeconds, b.TaskSeconds} {
		if seconds < 0 {
			return errors.New("boot: seconds cannot be negative")
		}
	}
	return nil
}

// drsLevels are the settings of DRS, as the API spells them, and `off` or `disabled`.
var drsLevels = []string{"fullyAutomated", "partiallyAutomated", "manual"}

func (s *Scenario) checkHosts() error {
	clusters := map[string]bool{}
	for i, cluster := range s.Clusters {
		if cluster.Name == "" || clusters[cluster.Name] {
			return fmt.Errorf("cluster %d: needs a name of its own", i+1)
		}
		if !slices.Contains(append(drsLevels, "", "off"), cluster.DRS) {
			return fmt.Errorf("cluster %s: drs %q: want one of %s, off", cluster.Name, cluster.DRS, strings.Join(drsLevels, ", "))
		}
		clusters[cluster.Name] = true
	}
	names := map[string]bool{}
	for _, host := range s.Hosts {
		switch {
		case host.Name == "" || names[host.Name]:
			return errors.New("host: each needs a name of its own")
		case host.Cluster != "" && !clusters[host.Cluster]:
			return fmt.Errorf("host %s: no cluster %s in this scenario", host.Name, host.Cluster)
		}
		if err := host.check(); err != nil {
			return fmt.Errorf("host: %w", err)
		}
		names[host.Name] = true
	}
	return nil
}

func (h Host) check() error {
	switch {
	case h.Packages < 1 || h.CoresPerPackage < 1 || h.NumaNodes < 1 || h.MemoryGB < 8:
		return errors.New("needs packages, cores_per_package, numa_nodes (1 or more each) and memory_gb (8 or more)")
	case h.ThreadsPerCore != 1 && h.ThreadsPerCore != 2:
		return errors.New("threads_per_core: want 1 or 2")
	case h.Cores()%h.NumaNodes != 0:
		return fmt.Errorf("%d cores do not spread evenly over %d NUMA nodes", h.Cores(), h.NumaNodes)
	}
	return nil
}

func (v VM) check(host Host) error {
	switch {
	case v.Name == "" || strings.Contains(v.Name+v.Around.VApp, "/"):
		return errors.New("needs a name; it and the vApp's hold no slash")
	case v.Folder != "" && slices.Contains(strings.Split(v.Folder, "/"), ""):
		return fmt.Errorf("folder %q: want names parted by slashes, such as Test/SQL", v.Folder)
	case v.VCPUs < 1 || v.VCPUs > host.Threads():
		return fmt.Errorf("vcpus %d: want 1 to the host's %d logical CPUs", v.VCPUs, host.Threads())
	case v.CoresPerSocket == 0 && v.Hardware < 20:
		return errors.New("cores_per_socket 0 (automatic) needs hardware 20")
	case v.CoresPerSocket < 0 || v.CoresPerSocket > 0 && v.VCPUs%v.CoresPerSocket != 0:
		return fmt.Errorf("cores_per_socket %d does not divide %d vCPUs", v.CoresPerSocket, v.VCPUs)
	case v.MemoryGB < 1 || v.ReservationLocked && v.MemoryMB() > host.MemoryMB():
		return errors.New("memory_gb: want 1 or more, and no more than the host has when reserved")
	case v.CoresPerNumaNode != 0 && v.Hardware < 20:
		return errors.New("cores_per_numa_node needs hardware 20")
	case v.DRS != "" && host.Cluster == "":
		return errors.New("drs is a VM's setting in a cluster, and its host is in none")
	case !slices.Contains(append(drsLevels, "", "disabled"), v.DRS):
		return fmt.Errorf("drs %q: want one of %s, disabled", v.DRS, strings.Join(drsLevels, ", "))
	}
	if !slices.Contains([]string{"windows", "linux"}, v.SQL.Platform) {
		return fmt.Errorf("sql.platform %q: want windows or linux", v.SQL.Platform)
	}
	if !slices.Contains([]string{"", "node0", "spread"}, v.SQL.LogWriters) {
		return fmt.Errorf("sql.log_writers %q: want node0 or spread", v.SQL.LogWriters)
	}
	for _, field := range v.Absent {
		if !slices.Contains(AbsentFields, field) {
			return fmt.Errorf("absent: %q: want one of %s", field, strings.Join(AbsentFields, ", "))
		}
	}
	return v.Around.check()
}
