package vcenter

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vnuma"
)

// hypervisorMB is what ESXi keeps for itself; reservations share the rest.
const hypervisorMB = 4096

const optionFollow = "Numa.FollowCoresPerSocket"

// shapeHost turns the simulator's template into the scenario's machine. It replaces whole values
// and changes none in place, since the template is shared between servers of one process.
func (s *Server) shapeHost() error {
	want, host := s.config.Scenario.Host, s.host
	host.Name, host.Summary.Config.Name = want.Name, want.Name
	host.Hardware = hardware(want, host.Hardware)
	summary := *host.Summary.Hardware
	summary.Vendor, summary.Model = host.Hardware.SystemInfo.Vendor, host.Hardware.SystemInfo.Model
	summary.MemorySize = host.Hardware.MemorySize
	summary.CpuModel, summary.CpuMhz = want.CPUModel, int32(want.MHz)
	summary.NumCpuPkgs, summary.NumCpuCores = int16(want.Packages), int16(want.Cores())
	summary.NumCpuThreads = int16(want.Threads())
	host.Summary.Hardware = &summary

	product := host.Config.Product
	product.Version, product.Build = fullVersion(s.config.Scenario.ESXi.Version), s.config.Scenario.ESXi.Build
	product.ApiVersion = s.release.String()
	product.FullName = fmt.Sprintf("VMware ESXi %s build-%s", product.Version, product.Build)
	host.Config.Product = product
	host.Summary.Config.Product = &product
	host.Config.HyperThread = &types.HostHyperThreadScheduleInfo{
		Available: want.ThreadsPerCore == 2, Active: want.ThreadsPerCore == 2, Config: want.ThreadsPerCore == 2,
	}
	s.setHostOptions(want)

	parent, ok := s.registry.Get(*host.Parent).(*mo.ComputeResource)
	if !ok {
		return errors.New("the host is not a standalone one")
	}
	parent.Name = want.Name
	if totals := parent.Summary.GetComputeResourceSummary(); totals != nil {
		totals.NumCpuCores, totals.NumCpuThreads = int16(want.Cores()), int16(want.Threads())
		totals.TotalCpu, totals.EffectiveCpu = int32(want.MHz*want.Cores()), int32(want.MHz*want.Cores())
		totals.TotalMemory, totals.EffectiveMemory = host.Hardware.MemorySize, want.MemoryMB()-hypervisorMB
	}
	return nil
}

func hardware(want scenario.Host, template *types.HostHardwareInfo) *types.HostHardwareInfo {
	made := *template
	hz := int64(want.MHz) * 1_000_000
	memory := want.MemoryMB() << 20
	features := template.CpuPkg[0].CpuFeature

	made.SystemInfo = types.HostSystemInfo{Vendor: "vnuma", Model: "Lab host", Uuid: template.SystemInfo.Uuid}
	released := time.Date(2016, time.March, 1, 0, 0, 0, 0, time.UTC)
	made.BiosInfo = &types.HostBIOSInfo{BiosVersion: "1.0-lab", ReleaseDate: &released, Vendor: "vnuma"}
	made.CpuInfo = types.HostCpuInfo{
		NumCpuPackages: int16(want.Packages), NumCpuCores: int16(want.Cores()),
		NumCpuThreads: int16(want.Threads()), Hz: hz,
	}
	made.MemorySize = memory
	made.CpuPkg = nil
	perPackage := want.Threads() / want.Packages
	for p := range want.Packages {
		made.CpuPkg = append(made.CpuPkg, types.HostCpuPackage{
			Index: int16(p), Vendor: "intel", Hz: hz, BusHz: 100_000_000, Description: want.CPUModel,
			ThreadId: descending(p*perPackage, (p+1)*perPackage), CpuFeature: features,
		})
	}
	made.NumaInfo = &types.HostNumaInfo{Type: "NUMA", NumNodes: int32(want.NumaNodes)}
	perNode := memory / int64(want.NumaNodes)
	for node, cpus := range want.NodeCPUs() {
		made.NumaInfo.NumaNode = append(made.NumaInfo.NumaNode, types.HostNumaNode{
			TypeId: byte(node), CpuID: descending(cpus[0], cpus[0]+len(cpus)),
			MemoryRangeBegin: int64(node) * perNode, MemoryRangeLength: perNode,
		})
	}
	return &made
}

// descending lists logical CPUs from the highest: the API promises no order, so clients must sort.
func descending(from, to int) []int16 {
	var cpus []int16
	for cpu := to - 1; cpu >= from; cpu-- {
		cpus = append(cpus, int16(cpu))
	}
	return cpus
}

// setHostOptions adds the advanced settings that matter to NUMA.
func (s *Server) setHostOptions(want scenario.Host) {
	kept := slices.DeleteFunc(slices.Clone(s.host.Config.Option), func(option types.BaseOptionValue) bool {
		return strings.HasPrefix(option.GetOptionValue().Key, "Numa.")
	})
	s.host.Config.Option = append(kept, numaOptions(want, s.release.AtLeast(6, 5))...)
}

// numaOptions are a host's advanced NUMA settings (vSphere Resource Management). From 6.5 on it can be
// told to follow the cores per socket.
func numaOptions(want scenario.Host, canFollow bool) []types.BaseOptionValue {
	follow := int64(0)
	if want.FollowCoresPerSocket {
		follow = 1
	}
	options := []types.BaseOptionValue{
		&types.OptionValue{Key: "Numa.AutoMemAffinity", Value: int64(1)},
		&types.OptionValue{Key: "Numa.PreferHT", Value: int64(0)},
		&types.OptionValue{Key: "Numa.RebalanceEnable", Value: int64(1)},
	}
	if canFollow {
		options = append(options, &types.OptionValue{Key: optionFollow, Value: follow})
	}
	return options
}

// vnumaHost is what of the host decides a VM's layout, the advanced option read as it stands now.
func (s *Server) vnumaHost() vnuma.Host {
	want := s.config.Scenario.Host
	follow := slices.ContainsFunc(s.host.Config.Option, func(option types.BaseOptionValue) bool {
		value := option.GetOptionValue()
		return value.Key == optionFollow && fmt.Sprint(value.Value) == "1"
	})
	return vnuma.Host{
		NumaNodes: want.NumaNodes, CoresPerNode: want.Cores() / want.NumaNodes,
		ThreadsPerCore: want.ThreadsPerCore, FollowCoresPerSocket: follow,
	}
}

func fullVersion(version string) string {
	if strings.Count(version, ".") == 1 {
		return version + ".0"
	}
	return version
}
