package vnuma

import (
	"slices"
	"strconv"
	"strings"
)

// Advanced settings that take part in the decision.
const (
	keyFollow         = "numa.vcpu.followcorespersocket"
	keyMinimum        = "numa.vcpu.min"
	keyMaximum        = "numa.vcpu.maxpervirtualnode"
	keyPreferHT       = "numa.vcpu.preferht"
	keyConsolidate    = "numa.consolidate"
	keyNodeAffinity   = "numa.nodeaffinity"
	keyAutosize       = "numa.autosize"
	keyAutosizeOnce   = "numa.autosize.once"
	keyAutosizeCookie = "numa.autosize.cookie"
	keyAutosizeMax    = "numa.autosize.vcpu.maxpervirtualnode"
)

// defaultMinimum is the smallest VM that gets a vNUMA topology (vSphere 6.0 Resource Management,
// "Virtual NUMA Controls").
const defaultMinimum = 9

// minimumHardware is the first virtual hardware version with vNUMA, topologyHardware the first with
// virtualNuma and automatic cores per socket.
const (
	minimumHardware  = 8
	topologyHardware = 20
)

// Host is the part of a host that decides the layout.
type Host struct {
	NumaNodes            int
	CoresPerNode         int
	ThreadsPerCore       int
	FollowCoresPerSocket bool // host option Numa.FollowCoresPerSocket
	PreferHT             bool // host option Numa.PreferHT
}

// VM is the part of a VM's configuration that decides the layout.
type VM struct {
	VCPUs              int
	CoresPerSocket     int // 0 counts as 1
	AutoCoresPerSocket bool
	Hardware           int // virtual hardware version, 20 for vmx-20
	CPUHotAdd          bool
	ExposeOnHotAdd     bool // virtualNuma.exposeVnumaOnCpuHotadd
	CoresPerNumaNode   int  // virtualNuma.coresPerNumaNode, 0 = automatic
	ExtraConfig        map[string]string
}

// Layout is the topology of one power-on.
type Layout struct {
	Sizes          []int // vCPUs of each vNUMA node
	Clients        []int // vCPUs of each NUMA client, which is placed on one physical node (PPD)
	CoresPerSocket int   // as the guest sees it
	Rule           string
	Autosized      bool // sized by ESXi itself, hence stored as numa.autosize keys from 6.5 on
}

// Decide returns the layout that a power-on gives.
func Decide(release Release, reading Reading, host Host, vm VM) Layout {
	d := decision{release, reading, host, vm, lowerKeys(vm.ExtraConfig)}
	layout := d.nodes()
	layout.Clients = d.clients(layout.Sizes)
	layout.CoresPerSocket = d.coresPerSocket(layout.Sizes)
	return layout
}

type decision struct {
	release Release
	reading Reading
	host    Host
	vm      VM
	keys    map[string]string
}

func (d decision) nodes() Layout {
	if rule := d.uniform(); rule != "" {
		return Layout{Sizes: []int{d.vm.VCPUs}, Rule: rule}
	}
	if layout, ok := d.manual(); ok {
		return layout
	}
	if d.followsSockets() {
		return d.perSocket()
	}
	if sizes := d.stored(); sizes != nil {
		return Layout{Sizes: sizes, Rule: "stored by an earlier power-on (numa.autosize)", Autosized: true}
	}
	return Layout{Sizes: d.automatic(), Rule: "sized to the host", Autosized: true}
}

// uniform is the reason why the guest sees one node whatever its shape, or empty.
func (d decision) uniform() string {
	if d.vm.Hardware < minimumHardware {
		return "virtual hardware without vNUMA"
	}
	if d.vm.CPUHotAdd && !(d.hasTopologyFields() && d.vm.ExposeOnHotAdd) {
		return "CPU hot-add hides vNUMA"
	}
	minimum := d.number(keyMinimum)
	if minimum == 0 {
		minimum = defaultMinimum
	}
	if d.vm.VCPUs < minimum && !d.hasNumaNodeSize() {
		return "fewer vCPUs than numa.vcpu.min"
	}
	return ""
}

func (d decision) hasTopologyFields() bool {
	return d.release.AtLeast(8, 0) && d.vm.Hardware >= topologyHardware
}

func (d decision) hasNumaNodeSize() bool {
	return d.hasTopologyFields() && d.vm.CoresPerNumaNode > 0
}

// manual applies an explicit node size. It fills node by node, where automatic sizing
// balances.
func (d decision) manual() (Layout, bool) {
	if d.hasNumaNodeSize() {
		return Layout{Sizes: filled(d.vm.VCPUs, d.vm.CoresPerNumaNode), Rule: "virtualNuma.coresPerNumaNode"}, true
	}
	if size := d.number(keyMaximum); size > 0 {
		return Layout{Sizes: filled(d.vm.VCPUs, size), Rule: "numa.vcpu.maxPerVirtualNode"}, true
	}
	return Layout{}, false
}

func (d decision) followsSockets() bool {
	if d.vm.AutoCoresPerSocket || d.vm.CoresPerSocket <= 1 {
		return false
	}
	if d.release.AtLeast(6, 5) {
		return d.host.FollowCoresPerSocket || isTrue(d.keys[keyFollow])
	}
	return true
}

// perSocket makes a node of every socket. Up to 6.0 the documentation permits a second reading for
// a VM that fits one host node.
func (d decision) perSocket() Layout {
	if !d.release.AtLeast(6, 5) && d.reading == ReadingFits && d.vm.VCPUs <= d.capacity() {
		return Layout{Sizes: []int{d.vm.VCPUs}, Rule: "the VM fits one host node (reading: fits)"}
	}
	return Layout{Sizes: filled(d.vm.VCPUs, d.vm.CoresPerSocket), Rule: "a node per socket"}
}

// stored is the topology of an earlier power-on, which 6.5 and later keep until the number of
// vCPUs changes (vSphere 6.5 Resource Management, "Using Virtual NUMA").
func (d decision) stored() []int {
	size := d.number(keyAutosizeMax)
	once, set := d.keys[keyAutosizeOnce]
	if !d.release.AtLeast(6, 5) || size == 0 || set && !isTrue(once) || isTrue(d.keys[keyAutosize]) {
		return nil
	}
	if cookie, err := strconv.Atoi(d.keys[keyAutosizeCookie]); err != nil || cookie/cookieUnit != d.vm.VCPUs {
		return nil
	}
	return even(d.vm.VCPUs, ceil(d.vm.VCPUs, size))
}

// automatic takes the fewest host nodes that fit the VM and fills them evenly; 7.0 and later keep
// sockets whole (Denneman, "vSphere 7 Cores per Socket and Virtual NUMA", 2021).
func (d decision) automatic() []int {
	nodes := max(1, ceil(d.vm.VCPUs, d.capacity()))
	perSocket := d.vm.CoresPerSocket
	if d.release.AtLeast(7, 0) && !d.vm.AutoCoresPerSocket && perSocket > 1 && d.vm.VCPUs%perSocket == 0 {
		sockets := even(d.vm.VCPUs/perSocket, nodes)
		if sockets[len(sockets)-1] > 0 && sockets[0]*perSocket <= d.capacity() {
			for i := range sockets {
				sockets[i] *= perSocket
			}
			return sockets
		}
	}
	return even(d.vm.VCPUs, nodes)
}

// clients splits the VM over physical nodes: at least one client for each vNUMA node, and as many as
// fit the VM; numa.consolidate FALSE spreads it over every node.
func (d decision) clients(sizes []int) []int {
	count := max(len(sizes), ceil(d.vm.VCPUs, d.capacity()))
	if isFalse(d.keys[keyConsolidate]) {
		count = max(count, min(d.host.NumaNodes, d.vm.VCPUs))
	}
	if count == len(sizes) && slices.Max(sizes) <= d.capacity() {
		return slices.Clone(sizes)
	}
	return even(d.vm.VCPUs, count)
}

// AllowedNodes are the physical nodes in numa.nodeAffinity, nil for all.
func AllowedNodes(config map[string]string) []int {
	var nodes []int
	for _, word := range strings.Split(lowerKeys(config)[keyNodeAffinity], ",") {
		if node, err := strconv.Atoi(strings.TrimSpace(word)); err == nil {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

func (d decision) capacity() int {
	own, stated := d.keys[keyPreferHT]
	if isTrue(own) || d.host.PreferHT && !stated {
		return max(1, d.host.CoresPerNode*d.host.ThreadsPerCore)
	}
	return max(1, d.host.CoresPerNode)
}

// coresPerSocket is the configured value; an automatic one becomes the size of a node, as vSphere 8
// assigns it at power-on.
func (d decision) coresPerSocket(sizes []int) int {
	if !d.vm.AutoCoresPerSocket {
		return max(1, d.vm.CoresPerSocket)
	}
	common := 0
	for _, size := range sizes {
		common = divisor(common, size)
	}
	return max(1, common)
}

func (d decision) number(key string) int {
	value, err := strconv.Atoi(strings.TrimSpace(d.keys[key]))
	if err != nil || value < 0 {
		return 0
	}
	return value
}

func lowerKeys(config map[string]string) map[string]string {
	lower := make(map[string]string, len(config))
	for key, value := range config {
		lower[strings.ToLower(key)] = value
	}
	return lower
}

func isTrue(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	return value == "true" || value == "1"
}

func isFalse(value string) bool {
	value = strings.ToLower(strings.TrimSpace(value))
	return value == "false" || value == "0"
}

func ceil(a, b int) int { return (a + b - 1) / b }

func divisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// even splits as equally as possible with whole numbers, larger parts first.
func even(total, parts int) []int {
	sizes := make([]int, parts)
	for i := range sizes {
		sizes[i] = total / parts
		if i < total%parts {
			sizes[i]++
		}
	}
	return sizes
}

// filled splits part by part up to a fixed size: 12 by 8 gives 8 and 4.
func filled(total, size int) []int {
	var sizes []int
	for ; total > 0; total -= size {
		sizes = append(sizes, min(size, total))
	}
	return sizes
}

// Names of the keys that ESXi stores at the first power-on, as they are in a VM's extraConfig.
const (
	AutosizeCookie = "numa.autosize.cookie"
	AutosizeMax    = "numa.autosize.vcpu.maxPerVirtualNode"
)

// cookieUnit separates the vCPU count in a cookie: published ones read vCPUs x 10000 + 1 in the
// older format and vCPUs x 10000 + cores per socket x 10 + 2 in the newer. An inference.
const cookieUnit = 10000

// Store returns the keys that this power-on adds to the VM's extraConfig: none before 6.5, and
// none when ESXi did not size the nodes itself.
func Store(release Release, vm VM, layout Layout) map[string]string {
	if !release.AtLeast(6, 5) || !layout.Autosized {
		return nil
	}
	cookie := vm.VCPUs*cookieUnit + 1
	if release.AtLeast(7, 0) {
		cookie = vm.VCPUs*cookieUnit + layout.CoresPerSocket*10 + 2
	}
	return map[string]string{
		AutosizeCookie: strconv.Itoa(cookie),
		AutosizeMax:    strconv.Itoa(layout.Sizes[0]),
	}
}

// VCPUs numbers the vCPUs of each node in order: sizes 2, 2 become {0 1} {2 3}.
func VCPUs(sizes []int) [][]int {
	nodes := make([][]int, len(sizes))
	next := 0
	for i, size := range sizes {
		for range size {
			nodes[i] = append(nodes[i], next)
			next++
		}
	}
	return nodes
}

// Place chooses the physical NUMA node for each vNUMA node. With CPU affinity it is the one with the
// node's share of the affinity set; without, every node goes to the least loaded one of those
// allowed (none named: all). cpus are the logical CPUs of each physical node; load the vCPUs already
// placed there.
func Place(sizes []int, affinity []int32, cpus [][]int, load, allowed []int) []int {
	if len(affinity) > 0 {
		return placeByAffinity(sizes, affinity, cpus)
	}
	placed := make([]int, len(sizes))
	load = slices.Clone(load)
	for i, size := range sizes {
		placed[i] = leastLoaded(load, allowed)
		load[placed[i]] += size
	}
	return placed
}

func leastLoaded(load, allowed []int) int {
	best := -1
	for node := range load {
		if len(allowed) > 0 && !slices.Contains(allowed, node) {
			continue
		}
		if best < 0 || load[node] < load[best] {
			best = node
		}
	}
	return max(best, 0)
}

func placeByAffinity(sizes []int, affinity []int32, cpus [][]int) []int {
	sorted := slices.Sorted(slices.Values(affinity))
	total := 0
	for _, size := range sizes {
		total += size
	}
	placed := make([]int, len(sizes))
	first := 0
	for i, size := range sizes {
		share := sorted[first*len(sorted)/total : (first+size)*len(sorted)/total]
		placed[i] = mostOf(share, cpus)
		first += size
	}
	return placed
}

func mostOf(share []int32, cpus [][]int) int {
	best, most := 0, -1
	for node, ids := range cpus {
		count := 0
		for _, cpu := range share {
			if slices.Contains(ids, int(cpu)) {
				count++
			}
		}
		if count > most {
			best, most = node, count
		}
	}
	return best
}
