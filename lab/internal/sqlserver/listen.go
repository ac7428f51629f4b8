package sqlserver

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// listenPort is one entry of the TcpPort setting: a port, and the SQLOS nodes that it is mapped to (0 = all).
// Source: https://learn.microsoft.com/sql/database-engine/configure-windows/map-tcp-ip-ports-to-numa-nodes-sql-server
type listenPort struct {
	number int
	mask   uint64
}

// parsePorts reads a TcpPort setting: `1433,50001[0x1],50002[2]`.
func parsePorts(text string) ([]listenPort, error) {
	var out []listenPort
	for _, part := range strings.Split(text, ",") {
		number, mask, mapped := strings.Cut(strings.TrimSpace(part), "[")
		port, err := strconv.ParseUint(strings.TrimSpace(number), 10, 16)
		if err != nil || port == 0 {
			return nil, fmt.Errorf("TcpPort %q: %q is no port", text, part)
		}
		p := listenPort{number: int(port)}
		if mapped {
			digits, ok := strings.CutSuffix(mask, "]")
			if p.mask, err = strconv.ParseUint(digits, 0, 64); err != nil || !ok {
				return nil, fmt.Errorf("TcpPort %q: %q is no node mask", text, part)
			}
		}
		out = append(out, p)
	}
	return out, nil
}

// listen opens every port of the registry's TcpPort. As on the real server, a port in use prevents it from
// starting. The caller holds mu.
func (i *Instance) listen() ([]net.Listener, error) {
	ports, err := parsePorts(cmp.Or(i.registry[tcpPort], i.registry[dynamicPort]))
	if err != nil {
		return nil, err
	}
	i.ports = ports
	host := i.listens().Addr().String()
	var all []net.Listener
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port.number)))
		if err != nil {
			for _, open := range all {
				open.Close()
			}
			return nil, fmt.Errorf("SQL Server cannot listen: %w", err)
		}
		all = append(all, l)
	}
	return all, nil
}

// assign gives a new session its SQLOS node: by its port's mask, in rotation if that has several nodes.
// The caller holds mu.
func (i *Instance) assign(s *Session) {
	nodes := len(i.topology.nodes)
	s.node, s.port = s.id%nodes, i.port()
	for n, port := range i.ports {
		if port.number != s.login.LocalPort {
			continue
		}
		s.port = port.number
		var mapped []int
		for node := range nodes {
			if port.mask != 0 && (port.mask&(1<<node) != 0) != i.boot.Faults.PortsElsewhere {
				mapped = append(mapped, node)
			}
		}
		if len(mapped) > 0 {
			s.node, s.mapped = mapped[i.turns[n]%len(mapped)], true
			i.turns[n]++
			s.stream = i.freeStream(port.number)
		}
	}
}

// freeStream is the lowest number that no session of a mapped port has.
func (i *Instance) freeStream(port int) int {
	taken := map[int]bool{}
	for _, other := range i.sessions {
		if other.mapped && other.port == port {
			taken[other.stream] = true
		}
	}
	for n := 0; ; n++ {
		if !taken[n] {
			return n
		}
	}
}

// memoryNode is the memory node of a session's worker: that of its port, or the only one in the affinity.
func (i *Instance) memoryNode(s *Session) int {
	if node := i.boundNode(); i.bound != nil && node >= 0 {
		return node
	}
	if s.node >= len(i.topology.nodes) {
		return 0
	}
	return i.topology.nodes[s.node].memoryNode
}

// The instance's keys below HKEY_LOCAL_MACHINE, as xp_instance_regwrite names them.
const (
	instanceKey = `software\microsoft\mssqlserver\`
	networkKey  = instanceKey + `mssqlserver\supersocketnetlib\tcp`
	tcpPort     = networkKey + `\ipall\tcpport`
	dynamicPort = networkKey + `\ipall\tcpdynamicports`
	listenAll   = networkKey + `\listenonallips`
)

func init() {
	addView("sys.dm_server_registry", "", `registry_key nvarchar(256)?, value_name nvarchar(256)?, value_data nvarchar(512)?`, serverRegistry)
}

// newRegistry is what setup writes for an instance with one fixed port.
func (i *Instance) newRegistry() map[string]string {
	port := strconv.Itoa(i.port())
	out := map[string]string{tcpPort: port, dynamicPort: "", listenAll: "1"}
	if i.config.DynamicPort {
		out[tcpPort], out[dynamicPort] = "", port
	}
	if !i.config.ListenAll {
		out[listenAll] = "0"
	}
	return out
}

// registryNames are the values in sys.dm_server_registry, as setup spells them.
var registryNames = []struct{ key, path, name string }{
	{listenAll, `MSSQLServer\SuperSocketNetLib\Tcp`, "ListenOnAllIPs"},
	{tcpPort, `MSSQLServer\SuperSocketNetLib\Tcp\IPAll`, "TcpPort"},
	{dynamicPort, `MSSQLServer\SuperSocketNetLib\Tcp\IPAll`, "TcpDynamicPorts"},
}

func serverRegistry(v *viewContext) {
	i := v.inst()
	if i.config.onLinux() {
		return
	}
	root := `HKLM\Software\Microsoft\Microsoft SQL Server\MSSQL` + strconv.Itoa(i.version.major) + `.MSSQLSERVER\`
	for _, known := range registryNames {
		v.add(viewRow{"registry_key": root + known.path, "value_name": known.name, "value_data": i.registry[known.key]})
	}
}

// writeRegistry is xp_instance_regwrite root, key, name, type, value: read at the next start.
func writeRegistry(b *batch, args []argument) {
	key := registryKey(args)
	if b.s.limited() {
		panic(refusal(229, 14, "The EXECUTE permission was denied on the object 'xp_instance_regwrite', database 'mssqlsystemresource', schema 'sys'."))
	}
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.registry[key]; !known {
		panic(tsql.Unmodelled(0, "this registry key"))
	}
	if i.config.RegistryReadOnly {
		panic(refusal(22001, 16, "RegCreateKeyEx() returned error 5, 'Access is denied.'"))
	}
	i.registry[key] = toText(args[4].value)
}

func registryKey(args []argument) string {
	if len(args) < 5 {
		panic(tsql.Errorf(201, 0, "Procedure or function 'xp_instance_regwrite' expects 5 parameters."))
	}
	var parts [3]string
	for n := range parts {
		text, ok := args[n].value.(string)
		if !ok {
			panic(tsql.Errorf(214, 0, "Procedure expects parameter %d of type 'nvarchar'.", n+1))
		}
		parts[n] = strings.ToLower(text)
	}
	if parts[0] != "hkey_local_machine" {
		panic(tsql.Unmodelled(0, "this registry root"))
	}
	return strings.TrimSuffix(parts[1], `\`) + `\` + parts[2]
}
