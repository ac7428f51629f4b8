package sqlserver

import (
	"testing"

	"vnuma.dev/lab/internal/tds"
)

// as opens a session of another login.
func as(t *testing.T, i *Instance, user string) *Session {
	t.Helper()
	s, refused := i.Open(tds.Login{User: user, Password: "right", SPID: uint16(90 + len(i.sessions))})
	if refused != nil {
		t.Fatalf("login refused: %+v", refused)
	}
	return s.(*Session)
}

// limited is a running instance with a login without permissions, one that may read, and one that administers.
func limited(t *testing.T) *Instance {
	t.Helper()
	i := newInstance(t, func(c *Config) {
		c.Logins = map[string][]string{"nobody": nil, "reader": {viewState}, "operator": {controlServer}}
	})
	if err := i.Start(boot(1, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	return i
}

// The refusal to a login without a permission, by message number; 0 means that it is permitted.
func TestLoginsAreHeldToTheirPermissions(t *testing.T) {
	i := limited(t)
	for text, want := range map[string][3]int32{ // nobody, reader, operator
		"SELECT cpu_count FROM sys.dm_os_sys_info":                                                   {300, 0, 0},
		"SELECT COUNT(*) FROM sys.dm_server_registry":                                                {300, 0, 0},
		"SELECT COUNT(*) FROM sys.dm_exec_connections":                                               {300, 0, 0},
		"SELECT host_platform FROM sys.dm_os_host_info":                                              {0, 0, 0},
		"SELECT COUNT(*) FROM sys.databases":                                                         {0, 0, 0},
		"ALTER SERVER CONFIGURATION SET PROCESS AFFINITY CPU = 0":                                    {15247, 15247, 0},
		"CREATE DATABASE shop":                                                                       {262, 262, 0},
		"DBCC DROPCLEANBUFFERS":                                                                      {2571, 2571, 0},
		"EXEC master.sys.xp_instance_regwrite N'HKEY_LOCAL_MACHINE', N'a', N'b', N'REG_SZ', N'1433'": {229, 229, 229},
		"ALTER RESOURCE GOVERNOR RECONFIGURE":                                                        {15247, 15247, 0},
	} {
		for n, user := range []string{"nobody", "reader", "operator"} {
			got := int32(0)
			if r := as(t, i, user).ask(text); len(r.errors) > 0 {
				got = r.errors[0].Number
			}
			if got != want[n] {
				t.Errorf("%s: %s is told %d, want %d", user, text, got, want[n])
			}
		}
	}
}

// A login can query its permissions, and the answers agree with the refusals.
func TestLoginsCanAskForTheirPermissions(t *testing.T) {
	i := limited(t)
	ask := `SELECT HAS_PERMS_BY_NAME(NULL, NULL, 'VIEW SERVER STATE'), HAS_PERMS_BY_NAME(NULL, NULL, 'ALTER SETTINGS'),
		HAS_PERMS_BY_NAME(NULL, NULL, 'NO SUCH THING'), IS_SRVROLEMEMBER('sysadmin'), IS_SRVROLEMEMBER('public')`
	for user, want := range map[string]string{"nobody": "0,0,NULL,0,1", "reader": "1,0,NULL,0,1", "operator": "1,1,NULL,0,1", "sa": "1,1,NULL,1,1"} {
		gives(t, as(t, i, user), ask, want)
	}
}

// Another login needs its own password, and an unknown one is refused.
func TestUnknownLogins(t *testing.T) {
	i := limited(t)
	for _, l := range []tds.Login{{User: "reader", Password: "wrong"}, {User: "somebody", Password: "right"}} {
		if _, refused := i.Open(l); refused == nil || refused.Number != 18456 {
			t.Errorf("%s with %s is not refused", l.User, l.Password)
		}
	}
}

// Tickets log in all accounts, or those of the domain that have a login; a password logs in none of them.
func TestLoginsOfTheDomain(t *testing.T) {
	for _, c := range []struct {
		logins  map[string][]string
		login   tds.Login
		refused bool
	}{
		{map[string][]string{"reader": nil}, tds.Login{User: `LAB\eve`, Kerberos: true}, false},
		{map[string][]string{`LAB\svc`: nil}, tds.Login{User: `LAB\eve`, Kerberos: true}, true},
		{map[string][]string{`LAB\svc`: nil}, tds.Login{User: `lab\SVC`, Kerberos: true}, false},
		{map[string][]string{`LAB\svc`: nil}, tds.Login{User: `LAB\svc`, Password: "right"}, true},
	} {
		i := newInstance(t, func(made *Config) { made.Logins = c.logins })
		if err := i.Start(boot(1, 1, 4, 1)); err != nil {
			t.Fatal(err)
		}
		if _, refused := i.Open(c.login); (refused != nil) != c.refused {
			t.Errorf("%v with logins %v: %+v, want refused %v", c.login, c.logins, refused, c.refused)
		}
	}
}

// An instance without a fixed port listens on its dynamic one, one on Linux has no registry.
func TestOtherWaysToListen(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.DynamicPort = true }, "1|TcpDynamicPorts"},
		{func(c *Config) { c.ListenAll = false }, "0|TcpPort"},
		{func(c *Config) { c.Platform = "linux" }, ""},
	} {
		i := newInstance(t, c.change)
		if err := i.Start(boot(1, 1, 4, 1)); err != nil {
			t.Fatal(err)
		}
		s := login(t, i, "master")
		got := must(t, s, "SELECT value_data FROM sys.dm_server_registry WHERE value_name = 'ListenOnAllIPs'").text()
		for _, row := range must(t, s, "SELECT value_name, value_data FROM sys.dm_server_registry WHERE value_name <> 'ListenOnAllIPs' ORDER BY value_name").rows {
			if row[1] != "" {
				got += "|" + row[0].(string)
			}
		}
		if got != c.want {
			t.Errorf("the registry says %q, want %q", got, c.want)
		}
	}
}

// Counters and ports can be wrong if a fault makes them so.
func TestCountersAndPortsThatLie(t *testing.T) {
	s := shop(t, nil)
	i, ports := cycle(t, s)
	i.boot.Faults.ForeignLookups = 0.25
	near := mappedTo(t, i, ports[0])
	must(t, near, "SELECT COUNT_BIG(*) FROM dbo.big")
	counters := `SELECT SUM(cntr_value) FROM sys.dm_os_performance_counters WHERE object_name LIKE N'%Buffer Node%'
		AND counter_name LIKE N'Remote%lookups%'`
	pages := i.lookup("shop").find("dbo", "big").pages()
	if got, want := must(t, near, counters).text(), itoa(int(pages/4)); got != want {
		t.Errorf("%s lookups are remote, want %s of %d", got, want, pages)
	}
	i.boot.Faults.PortsElsewhere = true
	where := "SELECT node_affinity FROM sys.dm_exec_connections WHERE session_id = @@SPID"
	gives(t, mappedTo(t, i, ports[0]), where, "1")
}
