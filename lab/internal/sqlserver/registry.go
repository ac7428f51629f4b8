package sqlserver

import (
	"strconv"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

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
	port := strconv.FormatInt(i.port(), 10)
	out := map[string]string{tcpPort: port, dynamicPort: "", listenAll: "1"}
	if i.config.DynamicPort {
		out[tcpPort], out[dynamicPort] = "", port
	}
	if i.config.SingleAddresses {
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

func serverRegistry(v *viewContext) []viewRow {
	i := v.inst()
	if i.config.Linux {
		return nil
	}
	root := `HKLM\Software\Microsoft\Microsoft SQL Server\MSSQL` + strconv.Itoa(i.version.major) + `.MSSQLSERVER\`
	var out []viewRow
	for _, known := range registryNames {
		out = append(out, viewRow{"registry_key": root + known.path, "value_name": known.name, "value_data": i.registry[known.key]})
	}
	return out
}

// writeRegistry is xp_instance_regwrite root, key, name, type, value: read at the next start.
func writeRegistry(b *batch, args []argument) error {
	key, err := registryKey(args)
	if err != nil {
		return err
	}
	if err := b.s.requireRegistry(); err != nil {
		return err
	}
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	if _, known := i.registry[key]; !known {
		return tsql.Unmodelled(0, "this registry key")
	}
	if i.config.RegistryReadOnly {
		return &tsql.Error{Number: 22001, Class: 16, State: 1, Text: "RegCreateKeyEx() returned error 5, 'Access is denied.'"}
	}
	text, err := toText(args[4].value)
	if err != nil {
		return err
	}
	i.registry[key] = text
	return nil
}

func registryKey(args []argument) (string, error) {
	if len(args) < 5 {
		return "", tsql.Errorf(201, 0, "Procedure or function 'xp_instance_regwrite' expects 5 parameters.")
	}
	var parts [3]string
	for n := range parts {
		text, ok := args[n].value.(string)
		if !ok {
			return "", tsql.Errorf(214, 0, "Procedure expects parameter %d of type 'nvarchar'.", n+1)
		}
		parts[n] = strings.ToLower(text)
	}
	if parts[0] != "hkey_local_machine" {
		return "", tsql.Unmodelled(0, "this registry root")
	}
	return strings.TrimSuffix(parts[1], `\`) + `\` + parts[2], nil
}
