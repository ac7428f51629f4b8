package linux

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"syscall"
)

const (
	kernelRelease = "6.1.0-vnuma-lab"
	diskKB        = 40 << 20
	sharedKB      = 16 << 20
)

// files is the file tree of a machine that has just started.
func (m *Machine) files() *entry {
	shared := folder("shm")
	shared.inMemory = true
	return folder("/",
		folder("bin"), folder("root"), folder("tmp"), folder("var", folder("tmp")),
		folder("dev", shared, device("null", 'n'), device("zero", 'z'), device("urandom", 'r')),
		folder("etc", text("machine-id", m.machineID()+"\n"), text("hostname", m.config.Name+"\n")),
		m.procFiles(), m.sysFiles(),
	)
}

// machineID is the same each time a lab starts this machine of this scenario.
func (m *Machine) machineID() string {
	sum := sha256.Sum256([]byte("vnuma-lab\x00" + m.config.Scenario + "\x00" + m.config.Name))
	return fmt.Sprintf("%x", sum[:16])
}

func (m *Machine) procFiles() *entry {
	var cpus strings.Builder
	for cpu := range m.cpus() {
		fmt.Fprintf(&cpus, "processor\t: %d\nvendor_id\t: GenuineIntel\nmodel name\t: %s\n\n", cpu, m.config.CPUModel)
	}
	drop := &entry{name: "drop_caches", mode: 0o200, write: m.dropCaches, read: func(*process) string { return "" }}
	return folder("proc",
		text("cpuinfo", cpus.String()),
		says("stat", func(p *process) string { return m.stat(p.now) }),
		says("uptime", func(p *process) string { return m.uptime(p.now) }),
		folder("self",
			text("cgroup", "0::/\n"),
			text("status", fmt.Sprintf("Cpus_allowed_list:\t%s\nMems_allowed_list:\t%s\n", span(0, m.cpus()-1), m.nodeList())),
		),
		folder("sys",
			folder("kernel", text("hostname", m.config.Name+"\n"), folder("random", text("boot_id", m.boot+"\n")), setting("numa_balancing", "1", oneOf("0", "1"))),
			folder("vm", drop),
		),
	)
}

func (m *Machine) cpus() int {
	all := 0
	for _, node := range m.config.Nodes {
		all += node.CPUs
	}
	return all
}

func (m *Machine) sysFiles() *entry {
	nodes := folder("node", text("online", m.nodeList()+"\n"))
	for number := range m.config.Nodes {
		name := fmt.Sprintf("node%d", number)
		nodes.children[name] = folder(name,
			text("cpulist", m.cpuList(number)+"\n"),
			text("distance", m.distances(number)+"\n"),
			says("meminfo", func(*process) string { return m.meminfo(number) }),
		)
	}
	id := folder("id",
		text("sys_vendor", fmt.Sprintf("simulated by vnuma-lab, scenario %s\n", m.config.Scenario)),
		text("product_name", "simulated machine\n"),
	)
	if m.config.UUID != "" {
		id.children["product_uuid"] = text("product_uuid", firmwareUUID(m.config.UUID)+"\n")
	}
	huge := setting("enabled", "always [madvise] never", chosenOf("always", "madvise", "never"))
	return folder("sys",
		folder("class", folder("dmi", id)),
		folder("devices", folder("system", nodes)),
		folder("fs", folder("cgroup", text("memory.max", "max\n"))),
		folder("kernel", folder("mm", folder("transparent_hugepage", huge))),
	)
}

// meminfo has the lines on files in /sys/devices/system/node/node*/meminfo.
func (m *Machine) meminfo(node int) string {
	files, shared := m.memory.filePagesKB(node)
	free := m.memory.freeKB(node)
	var said strings.Builder
	for _, line := range []struct {
		name string
		kb   int64
	}{
		{"MemTotal", m.memory.totalKB[node]}, {"MemFree", free}, {"MemUsed", m.memory.totalKB[node] - free},
		{"FilePages", files}, {"Shmem", shared},
	} {
		fmt.Fprintf(&said, "Node %d %-15s %8d kB\n", node, line.name+":", line.kb)
	}
	return said.String()
}

func oneOf(values ...string) func(string) (string, error) {
	return func(written string) (string, error) {
		if !slices.Contains(values, written) {
			return "", syscall.EINVAL
		}
		return written, nil
	}
}

// chosenOf is a setting that lists its values, with the current one in brackets.
func chosenOf(values ...string) func(string) (string, error) {
	return func(written string) (string, error) {
		if !slices.Contains(values, written) {
			return "", syscall.EINVAL
		}
		shown := slices.Clone(values)
		shown[slices.Index(values, written)] = "[" + written + "]"
		return strings.Join(shown, " "), nil
	}
}

// commandLine is /proc/PID/cmdline, which exists while the program runs.
func (m *Machine) commandLine(pid int) *entry {
	running := m.running[pid]
	if running == nil {
		return nil
	}
	return text("cmdline", strings.Join(running.args, "\x00")+"\x00")
}
