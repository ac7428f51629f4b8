package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryBuiltInScenarioLoads(t *testing.T) {
	names := Names()
	if len(names) < 3 {
		t.Fatalf("built in: %v", names)
	}
	for _, name := range names {
		s, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if s.Name != name {
			t.Errorf("%s calls itself %s", name, s.Name)
		}
	}
}

func TestAnEmptyFileIsThePapersLaboratory(t *testing.T) {
	s, err := Parse(nil)
	if err != nil {
		t.Fatal(err)
	}
	vm := s.VMs[0]
	if s.Host.Cores() != 32 || s.Host.Threads() != 64 || len(s.Host.NodeCPUs()) != 2 || s.Host.MemoryMB() != 192*1024 {
		t.Errorf("host %+v", s.Host)
	}
	if s.Release().String() != "6.0" || vm.Name != "sql16" || vm.VCPUs != 16 || vm.CoresPerSocket != 4 || vm.Hardware != 11 || vm.Power != On {
		t.Errorf("%s, %+v", s.Release(), vm)
	}
}

func TestAFileStatesOnlyWhatDiffers(t *testing.T) {
	s, err := Parse([]byte(`
esxi: {version: 7.0}
host: {memory_gb: 384}
boot: {tools_seconds: 2}
vms:
  - {name: a, cores_per_socket: 16, extra_config: {numa.vcpu.min: 8}}
  - {name: a, folder: Old, hardware: 4, vcpus: 4, cores_per_socket: 1, power: off}
`))
	if err != nil {
		t.Fatal(err)
	}
	a, old := s.VMs[0], s.VMs[1]
	if s.Host.MemoryGB != 384 || s.Host.Packages != 2 || s.Boot.ToolsSeconds != 2 || s.Boot.SQLSeconds != 0.1 {
		t.Errorf("host %+v, boot %+v", s.Host, s.Boot)
	}
	if a.VCPUs != 16 || a.Hardware != 17 || a.ExtraConfig["numa.vcpu.min"] != "8" || a.Power != On || !a.SQL.SoftNUMA {
		t.Errorf("%+v", a)
	}
	if old.Path() != "/DC0/vm/Old/a" || old.Hardware != 4 || old.Power != Off {
		t.Errorf("%+v", old)
	}
}

func TestWhatCannotBePlayedIsRefusedByName(t *testing.T) {
	for text, want := range map[string]string{
		"colour: red":                                            "colour",
		"vms: [{name: a, colour: red}]":                          "colour",
		"esxi: {version: five}":                                  "five",
		`esxi: {version: "5.5"}`:                                 "before 6.0",
		`esxi: {version: "9.1.0"}`:                               "after 9.0",
		"reading: both":                                          "reading",
		"host: {numa_nodes: 3}":                                  "NUMA nodes",
		"host: {threads_per_core: 4}":                            "threads_per_core",
		"vms: [{name: a, vcpus: 65}]":                            "vcpus 65",
		"vms: [{name: a, cores_per_socket: 3}]":                  "does not divide",
		"vms: [{name: a, cores_per_socket: 0}]":                  "hardware 20",
		"vms: [{name: a/b}]":                                     "slash",
		"vms: [{name: a, folder: /b}]":                           "parted by slashes",
		"vms: [{name: a}, {name: a}]":                            "two at /DC0/vm/a",
		"vms: [{name: a, power: maybe}]":                         "on, off or suspended",
		"faults: [{kind: gremlins}]":                             "gremlins",
		"faults: [{kind: slow}]":                                 "factor",
		"faults: [{kind: drop_mid_result}]":                      "rows",
		"faults: [{kind: tools_never, vm: other}]":               "no such VM",
		"host_certificate: none":                                 "host_certificate",
		"boot: {sql_seconds: -1}":                                "negative",
		"accounts: [{privileges: [System.View]}]":                "needs a user",
		"{standalone: true, hosts: [{name: a}, {name: b}]}":      "one host",
		"{standalone: true, clusters: [{name: c}]}":              "neither clusters",
		"{standalone: true, fleet: {hosts: 2, vms: 2}}":          "nor a fleet",
		"{standalone: true, vms: [{name: sql16, folder: Test}]}": "no folders",
	} {
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want a word of %q", text, err, want)
		}
	}
}

func TestUnknownFieldsAreNamedWithTheirLines(t *testing.T) {
	_, err := Parse([]byte("name: x\na: 1\nb: 2\nc: 3\nd: 4\ne: 5\n"))
	want := "line 2: unknown field a; line 3: unknown field b; line 4: unknown field c; and 2 more"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAnUnknownNameTellsTheBuiltInOnes(t *testing.T) {
	if _, err := Load("papre"); err == nil || !strings.Contains(err.Error(), "paper") {
		t.Errorf("got %v", err)
	}
}

func TestAFileWithoutANameIsCalledByItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.yml")
	for text, name := range map[string]string{"esxi: {version: 7.0.3}\n": "mine", "name: other\n": "other"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := Load(file)
		if err != nil || s.Name != name {
			t.Errorf("%q: named %v, error %v", text, s, err)
		}
	}
}

func TestAFaultStrikesOnceUnlessToldOtherwise(t *testing.T) {
	always := 0
	if got := (Fault{}).Limit(); got != 1 {
		t.Errorf("without times: %d, want 1", got)
	}
	if got := (Fault{Times: &always}).Limit(); got != 0 {
		t.Errorf("times 0: %d, want 0 for always", got)
	}
}

func TestEveryAccountMayLook(t *testing.T) {
	account := Account{User: "limited", Privileges: []string{"VirtualMachine.Config.CPUCount"}}
	if !account.Has("System.View") || !account.Has("VirtualMachine.Config.CPUCount") || account.Has("VirtualMachine.Config.Memory") {
		t.Errorf("has %v", account.All())
	}
}
