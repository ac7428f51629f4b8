package sqlserver

import (
	"strings"
	"testing"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/tds"
)

// tenThousand makes rows 0 to 9999, and generated a table of n rows whose columns are remainders of their number.
const tenThousand = `WITH digit (d) AS (SELECT v.d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (d))
	SELECT a.d + 10 * b.d + 100 * c.d + 1000 * e.d AS n INTO dbo.numbers
	FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e`

func generated(rows, blocks string) string {
	return `SELECT 'X' + CAST(v.i % 4 AS varchar(5)) AS kind, v.i % 6 AS six, DATEADD(second, v.i % 3, CAST('2012-01-30' AS datetime)) AS at,
		CAST('f' AS char(100)) AS filler INTO dbo.big FROM (SELECT a.n * 10000 + b.n AS i FROM (SELECT n FROM dbo.numbers WHERE n < ` + blocks +
		`) AS a CROSS JOIN dbo.numbers AS b WHERE a.n * 10000 + b.n < ` + rows + `) AS v`
}

// shop is an instance with two memory nodes, a user database and the table of recurring rows in it.
func shop(t *testing.T, change func(*Config)) *Session {
	t.Helper()
	i := newInstance(t, func(c *Config) {
		c.NodePorts = 2
		if change != nil {
			change(c)
		}
	})
	if err := i.Start(boot(1, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	s := login(t, i, "master")
	must(t, s, "CREATE DATABASE shop")
	must(t, s, "USE shop")
	must(t, s, tenThousand)
	must(t, s, generated("25000", "3"))
	return s
}

// Recurring rows are stored once with their number, and every statement sees all of them.
func TestRecurringRowsAreAllThere(t *testing.T) {
	s := shop(t, nil)
	big := s.inst.lookup("shop").find("dbo", "big")
	if big.repeated == nil || big.repeated.rows.rows != 12 {
		t.Fatal("the table is not kept as its twelve different rows")
	}
	for text, want := range map[string]string{
		"SELECT COUNT(*), SUM(six), MIN(kind), MAX(six) FROM dbo.big":                           "25000,62496,X0,5",
		"SELECT six, COUNT(*) FROM dbo.big GROUP BY six ORDER BY six":                           "0,4167|1,4167|2,4167|3,4167|4,4166|5,4166",
		"SELECT COUNT(*) FROM dbo.big WHERE six = 5 AND kind = 'X1'":                            "2083",
		"SELECT COUNT(*) FROM (SELECT TOP (30) kind FROM dbo.big) AS v":                         "30",
		"SELECT SUM(p.rows) FROM sys.partitions AS p WHERE p.object_id = OBJECT_ID(N'dbo.big')": "25000",
	} {
		gives(t, s, text, want)
	}
	for _, text := range []string{"DELETE FROM dbo.big WHERE six = 5", "CREATE UNIQUE INDEX u ON dbo.big (six)",
		"INSERT INTO dbo.big SELECT TOP (1) * FROM dbo.big"} {
		fails(t, s, text, "50000")
	}
}

// An inner join by hash gives the same as nested loops, also for recurring rows.
func TestJoinByHash(t *testing.T) {
	s := shop(t, nil)
	must(t, s, "SELECT DISTINCT kind, six, CAST(six AS bigint) AS wide INTO dbo.dims FROM dbo.big WHERE six <> 4")
	for text, want := range map[string]string{
		"SELECT COUNT(*) FROM dbo.big AS b JOIN dbo.dims AS d ON b.kind = d.kind AND d.six = b.six":      "20834",
		"SELECT COUNT(*) FROM dbo.big AS b JOIN dbo.dims AS d ON b.kind = d.kind AND b.six = d.wide":     "20834",
		"SELECT COUNT(*) FROM dbo.big AS b JOIN dbo.dims AS d ON b.kind = d.kind AND d.six >= b.six":     "37502",
		"SELECT COUNT(*) FROM dbo.big AS b LEFT JOIN dbo.dims AS d ON b.kind = d.kind AND d.six = b.six": "25000",
	} {
		gives(t, s, text, want)
	}
}

// mappedTo opens a session through one of the instance's further ports.
func mappedTo(t *testing.T, i *Instance, port int) *Session {
	t.Helper()
	opened, refusal := i.Open(tds.Login{User: "sa", Password: i.config.Password, Database: "shop", LocalPort: port, SPID: uint16(60 + len(i.sessions))})
	if refusal != nil {
		t.Fatal(refusal.Text)
	}
	return opened.(*Session)
}

// cycle maps the further ports to the two nodes and boots again.
func cycle(t *testing.T, s *Session) (*Instance, []int) {
	t.Helper()
	i := s.inst
	extra := i.NodePorts()
	must(t, s, "EXEC master.sys.xp_instance_regwrite N'HKEY_LOCAL_MACHINE', "+
		`N'Software\Microsoft\MSSQLServer\MSSQLServer\SuperSocketNetLib\Tcp\IPAll', N'TcpPort', N'REG_SZ', N'`+mapping(i)+"'")
	i.Stop()
	if err := i.Start(boot(2, 2, 8, 2)); err != nil {
		t.Fatal(err)
	}
	return i, extra
}

func mapping(i *Instance) string {
	port := func(n int) string { return strings.TrimSpace(itoa(n)) }
	return port(i.port()) + "," + port(i.extra[0]) + "[0x1]," + port(i.extra[1]) + "[0x2]"
}

func itoa(n int) string {
	return toText(int64(n))
}

// A mapped port leads to its node; a scan through it loads the pages there, and from the other node all lookups
// are remote. The next boot starts without pages.
func TestPagesLieWhereTheyWereRead(t *testing.T) {
	s := shop(t, nil)
	i, ports := cycle(t, s)
	near, far := mappedTo(t, i, ports[0]), mappedTo(t, i, ports[1])
	where := "SELECT node_affinity, local_tcp_port FROM sys.dm_exec_connections WHERE session_id = @@SPID"
	for node, session := range []*Session{near, far} {
		if got, want := must(t, session, where).text(), itoa(node)+","+itoa(ports[node]); got != want {
			t.Errorf("the connection shows %s, want %s", got, want)
		}
	}
	pages := `SELECT b.numa_node, COUNT_BIG(*) FROM sys.dm_os_buffer_descriptors AS b JOIN sys.allocation_units AS u
		ON u.allocation_unit_id = b.allocation_unit_id JOIN sys.partitions AS p ON p.hobt_id = u.container_id
		WHERE b.database_id = DB_ID() AND p.object_id = OBJECT_ID(N'dbo.big') GROUP BY b.numa_node`
	gives(t, near, pages, "")
	must(t, near, "SELECT COUNT_BIG(*) FROM dbo.big")
	want := itoa(int(i.lookup("shop").find("dbo", "big").pages()))
	gives(t, near, pages, "0,"+want)
	counters := `SELECT SUM(cntr_value) FROM sys.dm_os_performance_counters WHERE object_name LIKE N'%Buffer Node%'
		AND counter_name LIKE N'Remote%lookups%'`
	gives(t, near, counters, "0")
	must(t, far, "SELECT COUNT_BIG(*) FROM dbo.big")
	gives(t, near, counters, want)
	must(t, near, "DBCC DROPCLEANBUFFERS")
	gives(t, near, pages, "")
}

// A port in use keeps SQL Server from starting, as on a real server.
func TestTakenPort(t *testing.T) {
	s := shop(t, nil)
	other := newInstance(t, nil)
	if err := other.Start(boot(1, 1, 4, 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(other.Stop)
	s.inst.Stop()
	s.inst.registry[tcpPort] = itoa(s.inst.port()) + "," + itoa(other.port()) + "[1]"
	if err := s.inst.Start(boot(2, 2, 8, 2)); err == nil {
		t.Error("it started with a port that another server has")
	}
}

func TestTcpPortSetting(t *testing.T) {
	for text, want := range map[string][]listenPort{
		"1433":                      {{1433, 0}},
		"1433, 50001[0x1],50002[2]": {{1433, 0}, {50001, 1}, {50002, 2}},
	} {
		got, err := parsePorts(text)
		if err != nil || len(got) != len(want) || got[len(got)-1] != want[len(want)-1] {
			t.Errorf("%s is read as %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1433,", "70000", "1433[", "1433[x]", "1433[0x1"} {
		if got, err := parsePorts(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

// Remote pages cost 5% at 32 streams, less at fewer and more, and nothing without any effect.
func TestRemotePagesCostMostAtSaturation(t *testing.T) {
	model := cost.Default()
	model.BootSD, model.IterationSD = 0, 0
	ratio := func(m cost.Model, streams int) float64 {
		r := cost.PageRun{Local: 1000000, Streams: streams, CPUs: 6}
		local := m.Pages(r)
		r.Local, r.Remote = 0, 1000000
		return float64(m.Pages(r).ElapsedMicros) / float64(local.ElapsedMicros)
	}
	if got := ratio(model, 32); got < 1.0499 || got > 1.0501 {
		t.Errorf("at 32 streams remote pages cost %g", got)
	}
	if one, many := ratio(model, 1), ratio(model, 64); one > 1.01 || many > 1.04 || one < 1 {
		t.Errorf("at 1 and 64 streams remote pages cost %g and %g", one, many)
	}
	model.Effect = cost.None
	if got := ratio(model, 32); got != 1 {
		t.Errorf("without an effect remote pages cost %g", got)
	}
}

// Rows of numbers in mixed radix equal what each expression gives by itself, in every row.
func TestRowsOfDigits(t *testing.T) {
	s := shop(t, nil)
	must(t, s, `SELECT v.i % 3 + 1 AS low, 'T' + CAST(v.i / 3 % 7 AS varchar(5)) AS high, v.i / 21 AS rest
		INTO dbo.digits FROM (SELECT a.n * 100 + b.n AS i FROM dbo.numbers AS a CROSS JOIN dbo.numbers AS b WHERE a.n < 3 AND b.n < 100) AS v`)
	for text, want := range map[string]string{
		"SELECT COUNT(*), SUM(low) FROM dbo.digits":                                 "300,600",
		"SELECT low, high FROM dbo.digits WHERE rest = 2 AND low = 2 ORDER BY high": "2,T0|2,T1|2,T2|2,T3|2,T4|2,T5|2,T6",
		"SELECT SUM(CAST(low AS bigint)), MAX(low), MIN(low) FROM dbo.digits":       "600,3,1",
	} {
		gives(t, s, text, want)
	}
}

// A hash finds equal values: text regardless of case and trailing blanks, and no NULL.
func TestJoinByHashOfText(t *testing.T) {
	s := shop(t, nil)
	must(t, s, `SELECT v.name, v.n INTO dbo.l FROM (VALUES ('ab', 1), ('AB ', 2), ('c', 3), (NULL, 4)) AS v (name, n)`)
	must(t, s, `SELECT v.name, v.n INTO dbo.r FROM (VALUES ('Ab', 10), ('c ', 30), ('d', 40), (NULL, 50)) AS v (name, n)`)
	if got, want := must(t, s, "SELECT l.n, r.n FROM dbo.l AS l JOIN dbo.r AS r ON l.name = r.name ORDER BY l.n").text(), "1,10|2,10|3,30"; got != want {
		t.Errorf("the join gives %s, want %s", got, want)
	}
}
