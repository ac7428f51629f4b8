package linux

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"vnuma.dev/lab/internal/cost"
)

// numactl binds what it starts to CPUs and memory (numactl(8)).
func numactl(p *process, arguments []string) int {
	for i, word := range arguments {
		option, value, _ := strings.Cut(word, "=")
		switch {
		case option == "--localalloc":
			p.memory = policy{kind: local}
		case option == "--cpunodebind" || option == "--membind" || option == "--interleave":
			nodes, ok := p.nodes(value)
			if !ok {
				fmt.Fprintf(p.stream(2), "<%s> is invalid\n", value)
				return 1
			}
			p.bind(option, nodes)
		case strings.HasPrefix(word, "-"):
			return p.unknown("numactl", arguments)
		default:
			if p.memory.kind == local {
				p.memory.nodes = []int{p.cpuNode}
			}
			return p.run(arguments[i:])
		}
	}
	return p.unknown("numactl", arguments)
}

func (p *process) bind(option string, nodes []int) {
	switch option {
	case "--cpunodebind":
		p.cpuNode = nodes[0]
	case "--membind":
		p.memory = policy{kind: bind, nodes: nodes}
	case "--interleave":
		p.memory = policy{kind: interleave, nodes: nodes}
	}
}

// nodes reads a list of nodes, `0,1` or `0-1`; not ok if there is no such node.
func (p *process) nodes(list string) ([]int, bool) {
	var nodes []int
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if err == nil && isRange {
			last, err = strconv.Atoi(to)
		}
		if err != nil || first < 0 || last < first || last >= len(p.machine.config.Nodes) {
			return nil, false
		}
		for node := first; node <= last; node++ {
			nodes = append(nodes, node)
		}
	}
	return nodes, true
}

// copying is the options of a dd.
type copying struct {
	from, to    string
	block       int64
	count, skip int64 // in blocks; count below 0: all
}

var factors = map[byte]int64{'K': 1 << 10, 'k': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}

func (p *process) copying(arguments []string) copying {
	asked := copying{block: 512, count: -1}
	for _, word := range arguments {
		name, value, _ := strings.Cut(word, "=")
		file, factor := value, int64(1)
		if value != "" && factors[value[len(value)-1]] != 0 {
			factor, value = factors[value[len(value)-1]], value[:len(value)-1]
		}
		number, err := strconv.ParseInt(value, 10, 32)
		switch name {
		case "if":
			asked.from, number, err = file, 0, nil
		case "of":
			asked.to, number, err = file, 0, nil
		case "bs":
			asked.block = number * factor
		case "count":
			asked.count = number * factor
		case "skip":
			asked.skip = number * factor
		default:
			p.refuse(true, "dd", arguments)
		}
		p.refuse(err != nil || number < 0, "dd", arguments)
	}
	fits := asked.block > 0 && asked.block <= longestBlock && max(asked.count, asked.skip) <= longestCopy/asked.block
	p.refuse(!fits || asked.from == "" || asked.to == "", "dd", arguments)
	return asked
}

// The largest size that dd accepts, in bytes: more than any machine here has.
const (
	longestBlock = 1 << 40
	longestCopy  = 1 << 50
)

// dd copies from a file or a device to a file or a device, and prints how long the machine took for it.
func dd(p *process, arguments []string) int {
	asked := p.copying(arguments)
	from, err := p.open(asked.from)
	p.check(err, "dd", "failed to open '"+asked.from+"'")
	to, err := p.create(asked.to, false)
	p.check(err, "dd", "failed to open '"+asked.to+"'")
	bytes := asked.bytesOf(from.entry)
	p.refuse(bytes < 0 || from.entry.isPipe(), "dd", arguments)
	seconds, err := p.copyBytes(from, to, bytes)
	p.check(err, "dd", "error")
	p.now += time.Duration(seconds * float64(time.Second))
	blocks, rest := bytes/asked.block, 0
	if bytes%asked.block != 0 {
		rest = 1
	}
	fmt.Fprintf(p.stream(2), "%[1]d+%[2]d records in\n%[1]d+%[2]d records out\n%[3]d bytes (%.1[4]f GB, %.1[5]f GiB) copied, %.6[6]g s, %.1[7]f GB/s\n",
		blocks, rest, bytes, float64(bytes)/1e9, float64(bytes)/(1<<30), seconds, float64(bytes)/1e9/seconds)
	return 0
}

// bytesOf is how many bytes of a file are to be copied; below 0: without end.
func (c copying) bytesOf(from *entry) int64 {
	switch {
	case from.device == 'n':
		return 0
	case from.device != 0 && c.count < 0:
		return -1
	case from.device != 0:
		return c.count * c.block
	}
	left := max(0, from.size-c.skip*c.block)
	if c.count >= 0 {
		left = min(left, c.count*c.block)
	}
	return left
}

// started is the time to copy nothing.
const started = 20e-6 // seconds

func (p *process) copyBytes(from, to *opened, bytes int64) (float64, error) {
	if from.entry.device != 0 {
		if err := to.grow(bytes, p.memory); err != nil {
			return 0, err
		}
		return started + float64(bytes)/(p.machine.config.Cost.FileCache.WriteGBs*1e9), nil
	}
	if to.entry.device == 0 {
		return 0, syscall.EOPNOTSUPP
	}
	return p.readFile(from.entry, bytes)
}

// readFile reads this many bytes of a file; what is not in the page cache is added, placed by the process's policy.
func (p *process) readFile(file *entry, bytes int64) (float64, error) {
	m := p.machine
	m.mu.Lock()
	defer m.mu.Unlock()
	if p.session.read == 0 {
		m.reads++
		p.session.read = m.reads
	}
	p.parts++
	came, err := m.memory.hold(file, bytes, p.memory)
	if err != nil {
		return 0, err
	}
	fromDisk := min(bytes, came*1024)
	return started + m.config.Cost.ReadFile(cost.FileRead{
		Cached: bytes - fromDisk, FromDisk: fromDisk, Far: m.memory.far(file, p.cpuNode),
		Readers: max(1, int(p.session.jobs.Load())), Seed: m.config.Seed, Machine: m.config.Name,
		Pass: m.passes, Read: p.session.read, Part: p.parts,
	}), nil
}
