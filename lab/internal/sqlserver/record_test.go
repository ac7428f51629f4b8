package sqlserver

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"vnuma.dev/lab/internal/cost"
	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
	"vnuma.dev/lab/internal/tds"
)

// record is a response that keeps everything sent, one line per token.
type record struct {
	lines   []string
	columns []tds.Column
	rows    [][]any
	errors  []tds.Message
	failure error
}

func (r *record) add(format string, args ...any) {
	r.lines = append(r.lines, fmt.Sprintf(format, args...))
}

func (r *record) Columns(c []tds.Column) { r.columns, r.rows = c, nil }

func (r *record) Row(values []any) {
	r.rows = append(r.rows, append([]any(nil), values...))
	r.add("row")
}

func (r *record) CrossRows(outer, inner [][]any) (int64, error) {
	r.add("cross %d x %d", len(outer), len(inner))
	return int64(len(outer)) * int64(len(inner)), nil
}

func (r *record) Info(m tds.Message) { r.add("info %d", m.Number) }

func (r *record) Error(m tds.Message) {
	r.errors = append(r.errors, m)
	r.add("error %d", m.Number)
}

func (r *record) Done(d tds.Done) {
	switch {
	case d.Error:
		r.add("done error")
	case d.HasCount:
		r.add("done %d", d.Count)
	default:
		r.add("done")
	}
}

func (r *record) Database(now, _ string) { r.add("database %s", now) }
func (r *record) Err() error             { return r.failure }

// text shows the rows of the last result, cells by commas and rows by bars.
func (r *record) text() string {
	var rows []string
	for _, row := range r.rows {
		var cells []string
		for _, v := range row {
			text := "NULL"
			if v != nil {
				text = toText(v)
			}
			cells = append(cells, text)
		}
		rows = append(rows, strings.Join(cells, ","))
	}
	return strings.Join(rows, "|")
}

// newInstance is an instance that never waits.
func newInstance(t testing.TB, change func(*Config)) *Instance {
	t.Helper()
	cfg := Config{Address: "127.0.0.1:0", User: "sa", Password: "right", Cost: cost.Default(), Seed: 7,
		SQL: scenario.SQL{Version: "15.0.4430.1", Edition: "Developer Edition (64-bit)", SoftNUMA: true, ListenAll: true}}
	if change != nil {
		change(&cfg)
	}
	i, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(i.Stop)
	return i
}

// boot is a power-on with the vCPUs spread evenly over the nodes.
func boot(number, sockets, coresPerSocket, nodes int) guest.Boot {
	b := guest.Boot{VM: "sql16", Number: number, VCPUs: sockets * coresPerSocket, Sockets: sockets, CoresPerSocket: coresPerSocket, MemoryMB: 65536}
	each := b.VCPUs / nodes
	for n := range nodes {
		var cpus []int
		for c := range each {
			cpus = append(cpus, n*each+c)
		}
		b.Nodes = append(b.Nodes, cpus)
	}
	return b
}

// open starts an instance as 4x4 on four nodes and logs in.
func open(t testing.TB, change func(*Config)) *Session {
	t.Helper()
	i := newInstance(t, change)
	if err := i.Start(boot(1, 4, 4, 4)); err != nil {
		t.Fatal(err)
	}
	return login(t, i, "")
}

func login(t testing.TB, i *Instance, database string) *Session {
	t.Helper()
	s, refused := i.Open(tds.Login{User: "sa", Password: "right", Database: database, App: "test", Host: "here",
		SPID: uint16(51 + len(i.sessions))})
	if refused != nil {
		t.Fatalf("login refused: %+v", refused)
	}
	return s.(*Session)
}

// run runs a text as a client's batch.
func (s *Session) run(ctx context.Context, text string, params []tds.Param, w response) {
	s.request(ctx, "", text, params, w)
}

// batches splits a script at its GO lines.
func batches(script string) []string { return strings.Split(script, "\nGO\n") }

// ask runs one batch.
func (s *Session) ask(text string, params ...tds.Param) *record {
	r := &record{}
	s.run(context.Background(), text, params, r)
	return r
}

// must runs batches that succeed.
func must(t testing.TB, s *Session, script string) *record {
	t.Helper()
	var r *record
	for _, text := range batches(script) {
		if r = s.ask(text); len(r.errors) > 0 {
			t.Fatalf("%s\n%+v", text, r.errors)
		}
	}
	return r
}

// gives checks the rows of a script's last batch, as text.
func gives(t testing.TB, s *Session, script, want string) {
	t.Helper()
	if got := must(t, s, script).text(); got != want {
		t.Errorf("%s\ngives %s\nwant  %s", script, got, want)
	}
}

// fails checks the number of the error that ends a batch.
func fails(t testing.TB, s *Session, text, want string) {
	t.Helper()
	if got := s.ask(text).number(); got != want {
		t.Errorf("%s\nfails with %q, want %s", text, got, want)
	}
}

const dataset = `CREATE DATABASE study
GO
ALTER DATABASE study ADD FILEGROUP xtp CONTAINS MEMORY_OPTIMIZED_DATA
GO
ALTER DATABASE study ADD FILE (NAME = N'xtp', FILENAME = N'C:\xtp') TO FILEGROUP xtp
GO
USE study
GO
CREATE TABLE dbo.a (id int NOT NULL PRIMARY KEY NONCLUSTERED, v int NOT NULL, t nvarchar(10) NULL) WITH (MEMORY_OPTIMIZED = ON)
GO
CREATE TABLE dbo.b (id int NOT NULL PRIMARY KEY NONCLUSTERED HASH WITH (BUCKET_COUNT = 1000), w bigint NOT NULL)
	WITH (MEMORY_OPTIMIZED = ON, DURABILITY = SCHEMA_ONLY)
GO
WITH digit (d) AS (SELECT v.d FROM (VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)) AS v (d)),
	number (n) AS (SELECT 1 + a.d + 10 * b.d + 100 * c.d + 1000 * e.d FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e)
INSERT INTO dbo.a SELECT n, n % 7, CASE WHEN n % 2 = 0 THEN N'even' END FROM number WHERE n <= 3000
GO
INSERT INTO dbo.b SELECT id, id * CAST(3 AS bigint) FROM dbo.a`

type bootFaults = guest.Faults

// restart is a power-cycle with the given faults.
func restart(t testing.TB, i *Instance, change func(*bootFaults)) {
	t.Helper()
	i.Stop()
	b := boot(2, 1, 16, 1)
	change(&b.Faults)
	if err := i.Start(b); err != nil {
		t.Fatal(err)
	}
}
