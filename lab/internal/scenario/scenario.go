// Package scenario reads what a lab simulates: host, VMs, timing of a boot, accounts and faults.
package scenario

import (
	"errors"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"vnuma.dev/lab/internal/vnuma"
)

// Scenario is one lab. Fields that a file leaves out default to the paper's laboratory.
type Scenario struct {
	Name    string `yaml:"name"`
	Seed    int64  `yaml:"seed"`
	ESXi    ESXi   `yaml:"esxi"`
	Reading string `yaml:"reading"` // up to 6.0, for a VM that fits one host node: follow its sockets, or fits: one node

	// Standalone leaves vCenter out: the API is that of the one host.
	Standalone bool `yaml:"standalone"`

	// CustomAttributes is whether the API has a custom fields manager, as vCenter does.
	CustomAttributes bool `yaml:"custom_attributes"`

	// HostCertificate is what hosts show to clients with a service ticket; empty: vCenter's own. See HostCertificates.
	HostCertificate string `yaml:"host_certificate"`

	// CertificateDays is for how many days the server's certificate is still valid; below 0 it has expired.
	CertificateDays int `yaml:"certificate_days"`

	Host      Host      `yaml:"host"`
	Clusters  []Cluster `yaml:"clusters"`
	VMs       []VM      `yaml:"vms"`
	Machines  []Machine `yaml:"machines"`
	Fleet     Fleet     `yaml:"fleet"`
	Boot      Boot      `yaml:"boot"`
	TimeScale float64   `yaml:"time_scale"`
	Cost      yaml.Node `yaml:"cost"`
	Accounts  []Account `yaml:"accounts"`
	Tags      []Tag     `yaml:"tags"`
	Licence   string    `yaml:"licence"` // empty: an evaluation; LicenceFree
	Faults    []Fault   `yaml:"faults"`

	// WithoutColumns are the columns that system views lack, by view without its schema.
	WithoutColumns map[string][]string `yaml:"without_columns"`

	// HostNodes are the entries of `hosts`, each with what differs from `host`; Parse makes Hosts of them.
	HostNodes []yaml.Node `yaml:"hosts"`
	Hosts     []Host      `yaml:"-"`
}

// ESXi is a host's release; vCenter itself always serves the 8.0.3.0 API.
type ESXi struct {
	Version string `yaml:"version"`
	Build   string `yaml:"build"`
}

// Host is one physical machine: standalone, or one of a cluster.
type Host struct {
	Name                 string `yaml:"name"`
	Cluster              string `yaml:"cluster"`
	ESXi                 ESXi   `yaml:"esxi"` // empty: the scenario's
	Packages             int    `yaml:"packages"`
	CoresPerPackage      int    `yaml:"cores_per_package"`
	ThreadsPerCore       int    `yaml:"threads_per_core"`
	NumaNodes            int    `yaml:"numa_nodes"`
	MemoryGB             int    `yaml:"memory_gb"`
	CPUModel             string `yaml:"cpu_model"`
	MHz                  int    `yaml:"mhz"`
	FollowCoresPerSocket bool   `yaml:"follow_cores_per_socket"`
	OneThreadPerCore     bool   `yaml:"one_thread_per_core"` // SCAv1: hyper-threading is on, but not used by the scheduler

	ClockMinutes float64 `yaml:"clock_minutes"` // how far its clock is ahead of vCenter's; below 0: behind

	Nested   bool `yaml:"nested"`    // it is a VM of VMware itself, as its vendor and model say
	HalfRead bool `yaml:"half_read"` // vCenter has none of its hardware, as of a host that it could not ask
}

// Cluster is a group of hosts with DRS.
type Cluster struct {
	Name string `yaml:"name"`
	DRS  string `yaml:"drs"` // fullyAutomated, partiallyAutomated, manual, off
	HA   bool   `yaml:"ha"`
	EVC  string `yaml:"evc"` // the mode's key: intel-broadwell; empty: none

	AdmissionControl bool `yaml:"admission_control"` // of HA

	VMMonitoring string `yaml:"vm_monitoring"` // HA's VM monitoring, as the API names it: vmMonitoringOnly; empty: disabled
}

// The possible certificates of a host, and the thumbprint in a service ticket.
const (
	SelfSigned    = "self_signed"     // self-signed, with the right thumbprint in the ticket
	AnotherIsSaid = "another_is_said" // self-signed, with another certificate's thumbprint in the ticket
)

// HostCertificates are the allowed values of host_certificate.
var HostCertificates = []string{SelfSigned, AnotherIsSaid}

// LicenceFree is the licence of the free hypervisor.
const LicenceFree = "free"

// VM is one virtual machine in its state when the lab starts.
type VM struct {
	Name              string            `yaml:"name"`
	Folder            string            `yaml:"folder"`
	Host              string            `yaml:"host"` // empty: the first one
	DRS               string            `yaml:"drs"`  // its own DRS setting in the cluster; empty: none
	Hardware          int               `yaml:"hardware"`
	VCPUs             int               `yaml:"vcpus"`
	CoresPerSocket    int               `yaml:"cores_per_socket"` // 0 = automatic (hardware 20 and later)
	MemoryGB          int               `yaml:"memory_gb"`
	CPUHotAdd         bool              `yaml:"cpu_hot_add"`
	MemoryHotAdd      bool              `yaml:"memory_hot_add"`
	ReservationLocked bool              `yaml:"reservation_locked"`
	CPUAffinity       []int32           `yaml:"cpu_affinity"`
	CoresPerNumaNode  int               `yaml:"cores_per_numa_node"`
	ExtraConfig       map[string]string `yaml:"extra_config"`
	Annotation        string            `yaml:"annotation"`
	Power             Power             `yaml:"power"`
	Around            Around            `yaml:"around"`

	// Absent are optional properties below config that the server leaves out until a reconfigure: latencySensitivity
	// on ESXi 6.7, or hardware.autoCoresPerSocket. See AbsentFields.
	Absent []string `yaml:"absent"`

	SQL SQL `yaml:"sql"`

	datacenter string
}

// AbsentFields are the properties that `absent` can leave out: optional in the API, and settings of a study.
var AbsentFields = []string{
	"hardware.numCoresPerSocket", "hardware.autoCoresPerSocket",
	"numaInfo", "numaInfo.coresPerNumaNode", "numaInfo.autoCoresPerNumaNode", "numaInfo.vnumaOnCpuHotaddExposed",
	"cpuHotAddEnabled", "memoryHotAddEnabled", "memoryReservationLockedToMax", "rebootPowerOff", "latencySensitivity",
	"memoryAllocation", "memoryAllocation.reservation", "memoryAllocation.limit", "memoryAllocation.shares",
	"cpuAllocation", "cpuAllocation.reservation", "cpuAllocation.limit", "cpuAllocation.shares",
}

// Power is the state in which a VM starts.
type Power string

// The states of Power.
const (
	On        Power = "on"
	Off       Power = "off"
	Suspended Power = "suspended" // a suspended VM resumes with the topology of its power-on
)

// SQL is the SQL Server inside a VM.
type SQL struct {
	Version        string `yaml:"version"`
	Edition        string `yaml:"edition"`
	SoftNUMA       bool   `yaml:"soft_numa"`
	AdventureWorks bool   `yaml:"adventure_works"` // a source database AdventureWorks2019 exists
	LogWriters     string `yaml:"log_writers"`     // node0, or spread: one on each memory node
	Use            SQLUse `yaml:"use"`

	RegistryReadOnly bool `yaml:"registry_read_only"` // its account may not write to the registry
	ListenAll        bool `yaml:"listen_all"`         // false: it listens on individual addresses
	DynamicPort      bool `yaml:"dynamic_port"`       // instead of a fixed one

	Platform string              `yaml:"platform"` // windows, or linux
	Logins   map[string][]string `yaml:"logins"`   // logins besides sa, and their server permissions
}

// Boot is how long things take, in real seconds.
type Boot struct {
	ToolsSeconds    float64 `yaml:"tools_seconds"`
	SQLSeconds      float64 `yaml:"sql_seconds"`
	ShutdownSeconds float64 `yaml:"shutdown_seconds"`
	TaskSeconds     float64 `yaml:"task_seconds"`
}

// Account is a vCenter user in addition to the administrator, with the same password.
type Account struct {
	User       string   `yaml:"user"`
	Privileges []string `yaml:"privileges"`
	// Sees names folders, VMs, clusters and hosts that the account may see, with all below; empty: everything.
	Sees []string `yaml:"sees"`
}

// Tag is one of vSphere's tags, and the VMs that have it, by name or path; the fleet's by name.
type Tag struct {
	Category string   `yaml:"category"`
	Name     string   `yaml:"name"`
	VMs      []string `yaml:"vms"`
}

// CostYAML is the scenario's cost section, empty when there is none.
func (s *Scenario) CostYAML() ([]byte, error) {
	if s.Cost.IsZero() {
		return nil, nil
	}
	return yaml.Marshal(&s.Cost)
}

// implicit are the privileges that every account has.
var implicit = []string{"System.Anonymous", "System.View", "System.Read"}

// All lists the account's privileges.
func (a Account) All() []string { return append(slices.Clone(implicit), a.Privileges...) }

// Has reports whether the account holds a privilege.
func (a Account) Has(privilege string) bool { return slices.Contains(a.All(), privilege) }

// Release is the ESXi release line of hosts that state none of their own.
func (s *Scenario) Release() vnuma.Release { return s.ESXi.release() }

// Release is the ESXi release line that decides vNUMA on this host.
func (h Host) Release() vnuma.Release { return h.ESXi.release() }

func (e ESXi) release() vnuma.Release {
	release, err := vnuma.ParseRelease(e.Version)
	if err != nil {
		panic(err) // Parse has already refused it
	}
	return release
}

// HostOf is the host on which a VM starts.
func (s *Scenario) HostOf(vm VM) Host {
	for _, host := range s.Hosts {
		if host.Name == vm.Host {
			return host
		}
	}
	return s.Hosts[0]
}

// Cores is the number of physical cores.
func (h Host) Cores() int { return h.Packages * h.CoresPerPackage }

// Threads is the number of logical CPUs.
func (h Host) Threads() int { return h.Cores() * h.ThreadsPerCore }

// NodeCPUs lists the logical CPUs of each NUMA node.
func (h Host) NodeCPUs() [][]int {
	nodes := make([][]int, h.NumaNodes)
	perNode := h.Threads() / h.NumaNodes
	for cpu := range h.Threads() {
		nodes[cpu/perNode] = append(nodes[cpu/perNode], cpu)
	}
	return nodes
}

// MemoryMB is the host's memory.
func (h Host) MemoryMB() int64 { return int64(h.MemoryGB) * 1024 }

// MemoryMB is the VM's memory.
func (v VM) MemoryMB() int64 { return int64(v.MemoryGB) * 1024 }

// Path is the VM's inventory path.
func (v VM) Path() string {
	return path.Join("/", v.datacenter, "vm", v.Folder, v.Around.VApp, v.Name)
}

// Datacenter is the name of the one datacenter.
func (s *Scenario) Datacenter() string {
	if s.Standalone {
		return HostsDatacenter
	}
	return "DC0"
}

// HostsDatacenter is the name of an ESXi host's own datacenter.
const HostsDatacenter = "ha-datacenter"

// Administrator is the account that may do everything.
func (s *Scenario) Administrator() string {
	if s.Standalone {
		return "root"
	}
	return "administrator@vsphere.local"
}

// UnmarshalYAML decodes over the paper's VM, so that a file states only what differs.
func (v *VM) UnmarshalYAML(node *yaml.Node) error {
	type plain VM // a type without this method
	*v = defaultVM()
	return strictly(node, (*plain)(v))
}

// UnmarshalYAML reads `on` and `off`, which mean different things in YAML 1.1 and 1.2.
func (p *Power) UnmarshalYAML(node *yaml.Node) error {
	switch node.Value {
	case "on", "true", "yes":
		*p = On
	case "off", "false", "no":
		*p = Off
	case string(Suspended):
		*p = Suspended
	default:
		return fmt.Errorf("line %d: power %q: want on, off or suspended", node.Line, node.Value)
	}
	return nil
}

// Around is what a VM has apart from its shape that would spoil or break a study.
type Around struct {
	FaultTolerance  bool     `yaml:"fault_tolerance"`
	Snapshot        string   `yaml:"snapshot"` // the name of its one snapshot
	ChangeTracking  bool     `yaml:"change_tracking"`
	DisabledMethods []string `yaml:"disabled_methods"` // as the API names them: ReconfigVM_Task
	Devices         []string `yaml:"devices"`          // see AroundDevices
	Encrypted       bool     `yaml:"encrypted"`
	ManagedBy       string   `yaml:"managed_by"`   // the extension's key
	RunningTask     string   `yaml:"running_task"` // its description: VirtualMachine.migrate
	MovedMinutesAgo int      `yaml:"moved_minutes_ago"`
	GuestName       string   `yaml:"guest_name"` // the name from Tools; empty: the VM's name

	// PoolMemoryLimitMB puts the VM into its own resource pool with this limit; 0: no such pool.
	PoolMemoryLimitMB int64 `yaml:"pool_memory_limit_mb"`

	VApp string `yaml:"vapp"` // its own vApp in its folder; empty: none

	// GuestAddresses are what Tools report: nil, where SQL Server listens; others as with a proxy or a container.
	GuestAddresses []string `yaml:"guest_addresses"`
	UpMinutes      float64  `yaml:"up_minutes"`    // how long the VM, and SQL Server in it, have been up when the lab starts
	ClockMinutes   float64  `yaml:"clock_minutes"` // how far the guest's clock is ahead; below 0: behind

	VMMonitoring string `yaml:"vm_monitoring"` // its own HA setting; empty: its cluster's

	// What its counters report of every vCPU's time, in percent; 0: as on a quiet host.
	CPUReadyPercent float64 `yaml:"cpu_ready_percent"`
	CoStopPercent   float64 `yaml:"co_stop_percent"`
}

// AroundDevices are the devices that `around` can add.
var AroundDevices = []string{"raw_disk", "multi_writer_disk", "shared_bus", Passthrough, "vtpm"}

// Passthrough is a device that makes a power-on need all memory reserved.
const Passthrough = "passthrough"

func (a Around) check() error {
	for _, device := range a.Devices {
		if !slices.Contains(AroundDevices, device) {
			return fmt.Errorf("around: device %q: want one of %s", device, strings.Join(AroundDevices, ", "))
		}
	}
	for _, address := range a.GuestAddresses {
		if _, err := netip.ParseAddr(address); err != nil {
			return fmt.Errorf("around: guest_addresses: %w", err)
		}
	}
	if a.UpMinutes < 0 {
		return errors.New("around: up_minutes cannot be negative")
	}
	return nil
}

// SQLUse is what else a SQL Server is used for. Missing databases that are named are created.
type SQLUse struct {
	AvailabilityGroup []string `yaml:"availability_group"` // databases in one
	Clustered         bool     `yaml:"clustered"`
	Published         []string `yaml:"published"`   // databases that replication publishes
	LogShipped        []string `yaml:"log_shipped"` // primary databases of log shipping
	Backups           []string `yaml:"backups"`     // databases being backed up
	Sessions          []string `yaml:"sessions"`    // programs of other people's sessions
}

// paper is the laboratory of the 2019 experiment: two 16-core packages with hyper-threading, one NUMA
// node each, and ESXi 6.0.
func paper() *Scenario {
	return &Scenario{
		Name:    "paper",
		Seed:    20190601,
		ESXi:    ESXi{Version: "6.0.0"},
		Reading: string(vnuma.ReadingFollow),
		Host: Host{
			Name: "esx01", Packages: 2, CoresPerPackage: 16, ThreadsPerCore: 2, NumaNodes: 2, MemoryGB: 192,
			CPUModel: "Intel(R) Xeon(R) CPU E5-2698 v3 @ 2.30GHz", MHz: 2300,
		},
		CertificateDays: 365, CustomAttributes: true,
		Boot: Boot{ToolsSeconds: 0.3, SQLSeconds: 0.1, ShutdownSeconds: 0.1},
	}
}

func defaultVM() VM {
	return VM{
		Name: "sql16", VCPUs: 16, CoresPerSocket: 4, MemoryGB: 64, Power: On,
		SQL: SQL{Version: "15.0.4430.1", Edition: "Developer", SoftNUMA: true, ListenAll: true, Platform: "windows"},
	}
}

// releaseDefault is a release's default: a real build and the newest virtual hardware
// version of its first edition.
type releaseDefault struct {
	release  vnuma.Release
	hardware int
	build    string
}

var releaseDefaults = []releaseDefault{
	{vnuma.Release{Major: 9, Minor: 0}, 22, "24755229"},
	{vnuma.Release{Major: 8, Minor: 0}, 20, "24022510"},
	{vnuma.Release{Major: 7, Minor: 0}, 17, "15843807"},
	{vnuma.Release{Major: 6, Minor: 7}, 14, "8169922"},
	{vnuma.Release{Major: 6, Minor: 5}, 13, "4564106"},
	{vnuma.Release{Major: 6, Minor: 0}, 11, "2494585"},
}

// NewestHardware is the newest virtual hardware version of a release's first edition.
func NewestHardware(release vnuma.Release) int { return defaultsOf(release).hardware }

func defaultsOf(release vnuma.Release) releaseDefault {
	for _, candidate := range releaseDefaults {
		if release.AtLeast(candidate.release.Major, candidate.release.Minor) {
			return candidate
		}
	}
	return releaseDefaults[len(releaseDefaults)-1]
}

// fill completes hosts and VMs with what follows from the release.
func (s *Scenario) fill() {
	s.ESXi.fill()
	for i := range s.Hosts {
		if s.Hosts[i].ESXi.Version == "" {
			s.Hosts[i].ESXi = s.ESXi
		}
		s.Hosts[i].ESXi.fill()
	}
	for i := range s.VMs {
		s.VMs[i].datacenter = s.Datacenter()
		if s.VMs[i].Hardware == 0 {
			s.VMs[i].Hardware = defaultsOf(s.HostOf(s.VMs[i]).Release()).hardware
		}
	}
}

func (e *ESXi) fill() {
	if e.Build == "" {
		e.Build = defaultsOf(e.release()).build
	}
}
