package vmlog

import (
	"strings"
	"testing"
	"time"

	"vnuma.dev/lab/internal/vnuma"
)

func powerOn(release vnuma.Release, sizes ...int) PowerOn {
	return PowerOn{
		At: time.Date(2024, 3, 1, 10, 0, 0, 0, time.UTC), Release: release, Version: release.String() + ".0", Build: "1", Name: "sql16",
		VCPUs: 16, Sockets: 2, CoresPerSocket: 8, MemoryMB: 65536, Sizes: sizes, Clients: []int{8, 8},
	}
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !strings.Contains(text, line+"\n") {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
}

// Each release has its own form of the lines on vNUMA.
func TestTheFormFollowsTheRelease(t *testing.T) {
	wantLines(t, Text(powerOn(vnuma.Release{Major: 6, Minor: 0}, 8, 8)),
		"2024-03-01T10:00:00.000Z| vmx| I125: numa: VCPU 9: VPD 1 (PPD 1)",
		"numa: Setting.vcpu.maxPerVirtualNode=8 to match cpuid.coresPerSocket",
		"numaHost: 2 virtual nodes, 2 virtual sockets, 2 physical domains")
	wantLines(t, Text(powerOn(vnuma.Release{Major: 6, Minor: 5}, 8, 8)),
		"| vmx| I125: numaHost: NUMA config: consolidation= 1 preferHT= 0",
		"numaHost: 16 VCPUs 2 VPDs 2 PPDs", "numaHost: VCPU 9 VPD 1 PPD 1")
	wantLines(t, Text(powerOn(vnuma.Release{Major: 8, Minor: 0}, 8, 8)),
		" In(05) vmx - numaHost: NUMA config: consolidation= 1 preferHT= 0 partitionByMemory = 0",
		"numaHost: VCPU 9 VPD 1 PPD 1 NodeMask ffffffffffffffff")
}

// A vNUMA node can span two nodes of the host.
func TestAWideNodeIsSplit(t *testing.T) {
	wantLines(t, Text(powerOn(vnuma.Release{Major: 6, Minor: 5}, 16)),
		"numaHost: 16 VCPUs 1 VPDs 2 PPDs", "numaHost: VCPU 7 VPD 0 PPD 0", "numaHost: VCPU 8 VPD 0 PPD 1")
}

// The configuration shows what the previous power-on stored; what this one stores comes later.
func TestStoredKeysAreThoseOfThePowerOnBefore(t *testing.T) {
	p := powerOn(vnuma.Release{Major: 7, Minor: 0}, 8, 8)
	p.ExtraConfig = map[string]string{"numa.autosize.cookie": "100052"}
	p.Stored = map[string]string{"numa.autosize.cookie": "160082"}
	wantLines(t, Text(p),
		`I005: DICT     numa.autosize.cookie = "100052"`, `I005: ConfigDB: Setting numa.autosize.cookie = "160082"`)
}
