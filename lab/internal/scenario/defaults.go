package scenario

import "vnuma.dev/lab/internal/vnuma"

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
