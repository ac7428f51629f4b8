package scenario

import (
	"errors"
	"fmt"
	"maps"
	"strings"
)

// Fleet is an estate in addition to the scenario's own host: clusters of hosts with VMs that can be read but
// not changed. Its shapes follow from the counts alone, so that a test can check a client's result.
type Fleet struct {
	Hosts           int `yaml:"hosts"`
	VMs             int `yaml:"vms"`
	HostsPerCluster int `yaml:"hosts_per_cluster"` // default 15

	// Furnished gives each VM the extraConfig of one that has run: some fifty keys of its virtual hardware, and what
	// VMware Tools publish of its applications. Most of the time to read a VM goes to it; without it an estate starts sooner.
	Furnished bool `yaml:"furnished"`
}

// FleetHost is one host of the fleet.
type FleetHost struct {
	Host
	Version      string
	Build        string
	Hardware     int // the newest virtual hardware version that it runs
	Cluster      int
	PowerPolicy  string // by its short name: static is High performance, dynamic Balanced
	Disconnected bool
}

// FleetVM is one VM of the fleet.
type FleetVM struct {
	VM
	Windows      Windows
	Host         int // its host's number; -1 for an orphan, which has none
	Inaccessible bool
}

// Windows is what runs in a guest, as VMware Tools tell it.
type Windows struct {
	Name  string
	Build int
}

// Detail is how Tools put it into extraConfig.
func (w Windows) Detail() string {
	return fmt.Sprintf("architecture='X86' bitness='64' buildNumber='%d' distroName='Windows' distroVersion='10.0' "+
		"familyName='Windows' kernelVersion='%d.2145' prettyName='%s, 64-bit (Build %d.2145)'", w.Build, w.Build, w.Name, w.Build)
}

var fleetWindows = []Windows{
	{"Windows Server 2022 Standard", 20348}, {"Windows Server 2019 Standard", 17763},
	{"Windows Server 2016 Datacenter", 14393}, {"Windows 11 Pro", 22631},
}

type fleetModel struct {
	packages, cores, nodes, memoryGB, hardware int
	version, build                             string
}

// fleetModels are the models of a fleet's hosts, in rotation; the fourth has sub-NUMA clustering.
var fleetModels = []fleetModel{
	{2, 16, 2, 512, 20, "8.0.2", "22380479"},
	{2, 24, 2, 768, 17, "7.0.3", "18644231"},
	{2, 28, 2, 1024, 21, "8.0.3", "24022510"},
	{2, 32, 4, 1024, 20, "8.0.2", "22380479"},
	{2, 12, 2, 256, 14, "6.7.0", "8169922"},
}

var fleetVCPUs = []int{2, 4, 4, 8, 8, 12, 16, 16, 20, 24, 32, 40}

// HostAt is the fleet's host with this number. All hosts of a cluster are alike, except that every
// fourth cluster has one of another model.
func (f Fleet) HostAt(number int) FleetHost {
	cluster := number / f.HostsPerCluster
	model := cluster
	if cluster%4 == 3 && number%f.HostsPerCluster == 0 {
		model++
	}
	is := fleetModels[model%len(fleetModels)]
	made := FleetHost{
		Host: Host{
			Name: fmt.Sprintf("fleet-esx%03d", number), Packages: is.packages, CoresPerPackage: is.cores,
			ThreadsPerCore: 2, NumaNodes: is.nodes, MemoryGB: is.memoryGB,
			CPUModel: "Intel(R) Xeon(R) Gold", MHz: 2600,
		},
		Version: is.version, Build: is.build, Hardware: is.hardware, Cluster: cluster,
		PowerPolicy: "static", Disconnected: number%53 == 52,
	}
	if number%29 == 7 {
		made.NumaNodes = 1 // memory interleaved over both sockets
	}
	if number%7 == 3 {
		made.PowerPolicy = "dynamic"
	}
	return made
}

// VMAt is the fleet's VM with this number;
func (f Fleet) VMAt(number int) FleetVM {
	host := f.HostAt(number % f.Hosts)
	vm := defaultVM()
	vm.Name = fmt.Sprintf("fleet-vm%05d", number)
	vm.Folder = fmt.Sprintf("cluster%02d", host.Cluster)
	vm.Hardware = host.Hardware
	vm.VCPUs = fleetVCPUs[number%len(fleetVCPUs)]
	vm.CoresPerSocket = []int{1, 1, 2, vm.VCPUs / 2}[number/7%4]
	vm.MemoryGB = []int{2, 4, 8, 16}[number/11%4]
	if number%41 == 0 {
		vm.MemoryGB = 192
	}
	vm.CPUHotAdd = number%9 == 4
	vm.ReservationLocked = number%3 == 0
	if number%10 == 7 {
		vm.Power = Off
	}
	if number%50 == 21 {
		for cpu := range vm.VCPUs {
			vm.CPUAffinity = append(vm.CPUAffinity, int32(cpu))
		}
	}
	if number%5 == 0 {
		vm.ExtraConfig = map[string]string{
			"numa.autosize.cookie":                 fmt.Sprintf("%d%04d", vm.VCPUs, vm.CoresPerSocket),
			"numa.autosize.vcpu.maxPerVirtualNode": fmt.Sprint(vm.VCPUs),
			"cpuid.coresPerSocket":                 fmt.Sprint(vm.CoresPerSocket),
			"nvram":                                vm.Name + ".nvram",
			"svga.present":                         "TRUE",
			"viv.moid":                             vm.Name,
			"vmware.tools.internalversion":         "12357",
		}
	}
	if f.Furnished {
		vm.ExtraConfig = furnish(vm.ExtraConfig)
	}
	made := FleetVM{
		VM: vm, Windows: fleetWindows[number/3%len(fleetWindows)], Host: number % f.Hosts, Inaccessible: number%997 == 996,
	}
	if number%499 == 498 {
		made.Host = -1
	}
	return made
}

// furnish adds keys as ESXi writes them for a VM's PCI bridges, and as Tools 11 and later do for its applications.
func furnish(keys map[string]string) map[string]string {
	furnished := maps.Clone(keys)
	if furnished == nil {
		furnished = map[string]string{}
	}
	for bridge := range 11 {
		name := fmt.Sprintf("pciBridge%d.", bridge)
		furnished[name+"present"], furnished[name+"functions"] = "TRUE", "8"
		furnished[name+"virtualDev"], furnished[name+"pciSlotNumber"] = "pcieRootPort", fmt.Sprint(21+bridge)
	}
	furnished["guestinfo.appInfo"] = applications
	return furnished
}

// applications is what Tools publish of a Windows guest with some 120 running programs.
var applications = `{"version":"1","updateCounter":"42","applications":[` + strings.TrimSuffix(strings.Repeat(
	`{"a":"C:\\Windows\\System32\\svchost.exe","v":"10.0.17763.1"},`, 120), ",") + "]}"

// Clusters is the fleet's number of clusters.
func (f Fleet) Clusters() int {
	return (f.Hosts + f.HostsPerCluster - 1) / f.HostsPerCluster
}

func (f *Fleet) fill() {
	if f.HostsPerCluster == 0 {
		f.HostsPerCluster = 15
	}
}

func (f Fleet) check() error {
	switch {
	case f.Hosts < 0 || f.VMs < 0 || f.HostsPerCluster < 1:
		return errors.New("hosts, vms and hosts_per_cluster cannot be negative")
	case f.Hosts == 0 && f.VMs > 0:
		return errors.New("vms need hosts")
	}
	return nil
}
