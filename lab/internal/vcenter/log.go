package vcenter

import (
	"fmt"
	"log"
	"os"
	"path/filepath"
	"strings"

	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/vmlog"
	"vnuma.dev/lab/internal/vnuma"
)

const (
	logName  = "vmware.log"
	keptLogs = 6 // older ones, vmware-1.log the newest of them
)

// logFolder is the VM's log directory as a path on the datastore.
func (m *machine) logFolder() string {
	_, folder, _ := strings.Cut(m.Config.Files.LogDirectory, "] ")
	return folder
}

// writeLog starts the vmware.log of this power-on; the previous one becomes vmware-1.log. found is the
// extraConfig at power-on, stored what power-on added.
func (m *machine) writeLog(shape vnuma.VM, clients []int, found, stored map[string]string, faults *injector) {
	missing := faults.take(scenario.LogMissing, m.scenario, m.boot.Number) != nil
	stale := faults.take(scenario.LogStale, m.scenario, m.boot.Number) != nil
	file := filepath.Join(m.lab.storage, m.logFolder(), logName)
	if stale {
		return
	}
	rotate(file)
	if missing {
		return
	}
	product := m.host().Config.Product
	text := vmlog.Text(vmlog.PowerOn{
		At: m.boot.PoweredOnAt, Release: m.host().release, Version: product.Version, Build: product.Build, Name: m.Name,
		VCPUs: m.boot.VCPUs, Sockets: m.boot.Sockets, CoresPerSocket: m.boot.CoresPerSocket, MemoryMB: m.boot.MemoryMB,
		Sizes: sizesOf(m.boot.Nodes), Clients: clients,
		HotAdd: shape.CPUHotAdd, ExposeOnHotAdd: shape.ExposeOnHotAdd, ExtraConfig: found, Stored: stored,
	})
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		log.Printf("%s: %v", m.scenario.Path(), err)
	}
}

func sizesOf(nodes [][]int) []int {
	sizes := make([]int, len(nodes))
	for i, node := range nodes {
		sizes[i] = len(node)
	}
	return sizes
}

// rotate makes room for a new log and keeps some older ones.
func rotate(file string) {
	numbered := func(number int) string {
		return strings.TrimSuffix(file, ".log") + fmt.Sprintf("-%d.log", number)
	}
	for number := keptLogs - 1; number > 0; number-- {
		os.Rename(numbered(number), numbered(number+1)) // fails where there are fewer
	}
	os.Rename(file, numbered(1))
}
