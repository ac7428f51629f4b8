package vmlog

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"vnuma.dev/lab/internal/recorded"
)

var (
	onVNUMA = regexp.MustCompile(`numa(Host)?: .*`)
	placed  = regexp.MustCompile(`VCPU (\d+):? VPD (\d+) \(?PPD (\d+)`)
)

// The lab writes no line on vNUMA that the recorded host did not write for the same shape and release.
func TestNoLineIsTheLabsOwnInvention(t *testing.T) {
	for _, contact := range recorded.All(t) {
		var seen []string
		for _, line := range contact.LogLines() {
			seen = append(seen, onVNUMA.FindString(line))
		}
		nodes, clients := layout(seen)
		if len(nodes) == 0 {
			continue // no vNUMA, or no log
		}
		vcpus, perSocket := contact.Number("numCPUs"), max(contact.Number("numCoresPerSocket"), 1)
		version, build, _ := strings.Cut(contact.Versions.ESXi, " build ")
		hotAdd, _ := contact.VSphere.Settings["cpuHotAddEnabled"].(bool)
		text := Text(PowerOn{
			At: time.Unix(0, 0), Release: contact.Release(t), Version: version, Build: build, Name: "vm",
			VCPUs: vcpus, Sockets: vcpus / perSocket, CoresPerSocket: perSocket, MemoryMB: int64(contact.Number("memoryMB")),
			Sizes: nodes, Clients: clients, HotAdd: hotAdd,
		})
		written := 0
		for _, line := range strings.Split(text, "\n") {
			line = onVNUMA.FindString(line)
			if line == "" {
				continue
			}
			written++
			if !slices.Contains(seen, line) {
				t.Errorf("%s: the recording has no line %q", contact.Name, line)
			}
		}
		if written < vcpus {
			t.Errorf("%s: %d lines for %d vCPUs", contact.Name, written, vcpus)
		}
	}
}

// layout is how many vCPUs each vNUMA node and each NUMA client had.
func layout(lines []string) (nodes, clients []int) {
	for _, line := range lines {
		found := placed.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		nodes, clients = counted(nodes, found[2]), counted(clients, found[3])
	}
	return nodes, clients
}

func counted(sizes []int, number string) []int {
	index, _ := strconv.Atoi(number) // the pattern lets only digits through
	for len(sizes) <= index {
		sizes = append(sizes, 0)
	}
	sizes[index]++
	return sizes
}
