package vnuma

import (
	"os"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
)

// golden is shared with the tests of the product's own predictor.
const golden = "../../../tests/data/vnuma_golden.yml"

type goldenCase struct {
	ID      string `yaml:"id"`
	Why     string `yaml:"why"`
	Source  string `yaml:"source"`
	Release string `yaml:"release"`
	Reading string `yaml:"reading"`
	Host    struct {
		NumaNodes       int  `yaml:"numa_nodes"`
		CoresPerNode    int  `yaml:"cores_per_node"`
		ThreadsPerCore  int  `yaml:"threads_per_core"`
		MemoryGBPerNode int  `yaml:"memory_gb_per_node"`
		Follow          bool `yaml:"follow_cores_per_socket"`
		PreferHT        bool `yaml:"prefer_ht"`
	} `yaml:"host"`
	VM struct {
		VCPUs            int               `yaml:"vcpus"`
		CoresPerSocket   int               `yaml:"cores_per_socket"`
		Auto             bool              `yaml:"cores_per_socket_auto"`
		MemoryGB         int               `yaml:"memory_gb"`
		CPUHotAdd        bool              `yaml:"cpu_hot_add"`
		ExposeOnHotAdd   bool              `yaml:"expose_vnuma_on_hot_add"`
		CoresPerNumaNode int               `yaml:"cores_per_numa_node"`
		Hardware         int               `yaml:"hardware"`
		ExtraConfig      map[string]string `yaml:"extra_config"`
	} `yaml:"vm"`
	Expect struct {
		Nodes       int   `yaml:"vnuma_nodes"`
		Sizes       []int `yaml:"node_sizes"`
		Clients     int   `yaml:"clients"`
		ClientSizes []int `yaml:"client_sizes"`
	} `yaml:"expect"`
}

// ownHardware is the newest virtual hardware of each release.
var ownHardware = map[string]int{"6.0": 11, "6.5": 13, "6.7": 14, "7.0": 17, "8.0": 20}

func readGolden(t *testing.T) []goldenCase {
	t.Helper()
	file, err := os.Open(golden)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var all struct {
		Version int          `yaml:"version"`
		Cases   []goldenCase `yaml:"cases"`
	}
	decoder := yaml.NewDecoder(file)
	decoder.KnownFields(true)
	if err := decoder.Decode(&all); err != nil {
		t.Fatal(err)
	}
	if len(all.Cases) == 0 {
		t.Fatal("no golden cases")
	}
	return all.Cases
}

func (c goldenCase) decide(t *testing.T) Layout {
	t.Helper()
	release, err := ParseRelease(c.Release)
	if err != nil {
		t.Fatal(err)
	}
	hardware := c.VM.Hardware
	if hardware == 0 {
		hardware = ownHardware[c.Release]
	}
	host := Host{
		c.Host.NumaNodes, c.Host.CoresPerNode, c.Host.ThreadsPerCore, c.Host.Follow, c.Host.PreferHT,
	}
	vm := VM{
		VCPUs: c.VM.VCPUs, CoresPerSocket: c.VM.CoresPerSocket, AutoCoresPerSocket: c.VM.Auto,
		Hardware: hardware, CPUHotAdd: c.VM.CPUHotAdd, ExposeOnHotAdd: c.VM.ExposeOnHotAdd,
		CoresPerNumaNode: c.VM.CoresPerNumaNode, ExtraConfig: c.VM.ExtraConfig,
	}
	return Decide(release, Reading(c.Reading), host, vm)
}

func TestGoldenCases(t *testing.T) {
	for _, c := range readGolden(t) {
		t.Run(c.ID, func(t *testing.T) {
			layout := c.decide(t)
			if c.Expect.Nodes > 0 && len(layout.Sizes) != c.Expect.Nodes {
				t.Errorf("%s: %d nodes %v (%s), want %d", c.Why, len(layout.Sizes), layout.Sizes, layout.Rule, c.Expect.Nodes)
			}
			if c.Expect.Sizes != nil && !slices.Equal(layout.Sizes, c.Expect.Sizes) {
				t.Errorf("%s: sizes %v (%s), want %v", c.Why, layout.Sizes, layout.Rule, c.Expect.Sizes)
			}
			if c.Expect.Clients > 0 && len(layout.Clients) != c.Expect.Clients {
				t.Errorf("%s: clients %v, want %d", c.Why, layout.Clients, c.Expect.Clients)
			}
			if c.Expect.ClientSizes != nil && !slices.Equal(layout.Clients, c.Expect.ClientSizes) {
				t.Errorf("%s: clients %v, want %v", c.Why, layout.Clients, c.Expect.ClientSizes)
			}
		})
	}
}

func TestEveryVCPUHasANode(t *testing.T) {
	for _, c := range readGolden(t) {
		sum := 0
		for _, size := range c.decide(t).Sizes {
			sum += size
		}
		if sum != c.VM.VCPUs {
			t.Errorf("%s: %d vCPUs in nodes, want %d", c.ID, sum, c.VM.VCPUs)
		}
	}
}
