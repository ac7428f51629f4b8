package sqlserver

import (
	"context"
	"slices"
	"time"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// Session is one connection. Its methods are called one at a time.
type Session struct {
	inst    *Instance
	id      int
	login   tds.Login
	opened  time.Time
	db      *database
	temp    map[string]*table // temporary tables, by folded name
	options options

	lastError int32
	failed    int // statements
	rowCount  int64

	// node and the following are the location of its worker; they do not change after the login.
	node   int  // SQLOS node
	port   int  // local port
	mapped bool // the port is mapped to nodes
	stream int  // its number among the sessions of that port

	// The following fields are guarded by Instance.mu, as other sessions read them.
	networkWaits  int64
	networkWaitMS int64
	input         inputEvent
	lastRequest   time.Time
	running       bool
	waitType      string // what the running request waits for

	// company and worked are the request's virtual clock, guarded by Instance.mu while the request waits.
	company *company
	worked  time.Duration
}

// options are the SET options that affect the lab; the others are stored by name.
type options struct {
	statisticsTime bool
	statisticsXML  bool
	parseOnly      bool
	noCount        bool
	xactAbort      bool
}

func newSession(i *Instance, id int, l tds.Login, db *database) *Session {
	return &Session{inst: i, id: id, login: l, db: db, opened: time.Now().UTC(), temp: map[string]*table{}}
}

// Database is the current database.
func (s *Session) Database() string { return s.db.name }

// Close ends the session.
func (s *Session) Close() {
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	delete(s.inst.sessions, s.id)
	s.inst.load.leave(s.inst, s.id)
	s.inst.releaseLocks(s)
}

// Batch runs a language batch with its parameters.
func (s *Session) Batch(ctx context.Context, text string, params []tds.Param, w *tds.Writer) {
	s.request(ctx, w.Procedure, text, params, w)
}

// request runs a text that was sent as a batch, or in a call of the procedure `rpc`.
func (s *Session) request(ctx context.Context, rpc, text string, params []tds.Param, w response) {
	s.inst.Await()
	s.begin(rpc, text)
	defer s.end()
	b := newBatch(ctx, s, w)
	b.reporting(func() {
		statements, err := tsql.Parse(text)
		if err != nil {
			panic(err)
		}
		for _, p := range params {
			typ := plainType(p.Type)
			b.vars[fold(p.Name)] = &variable{typ: typ, value: convert(p.Value, typ)}
		}
		if s.options.parseOnly {
			statements = slices.DeleteFunc(statements, func(st tsql.Statement) bool { return !endsParseOnly(st) })
		}
		b.runAll(statements)
		b.close()
	})
}

func (s *Session) begin(rpc, text string) {
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	s.inst.audit.Requests++
	s.inst.load.requests++
	s.received(rpc, text)
	s.running, s.lastRequest = true, time.Now().UTC()
}

func (s *Session) end() {
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	s.running, s.company = false, nil
}

// plainType is the type of a variable for a parameter: an empty text has one character.
func plainType(t tds.Type) tds.Type {
	if (isText(t.Kind) || t.Kind == tds.KindVarBinary) && t.Size == 0 {
		t.Size = 1
	}
	return t
}

// setOption runs SET for a session option. Options without effect on what the lab models are accepted.
func (b *batch) setOption(st *tsql.SetOption) (out outcome) {
	o := &b.s.options
	on := st.Value == "ON"
	b.s.rowCount = 0
	switch st.Option {
	case "STATISTICS TIME":
		o.statisticsTime = on
		out.silent = true
	case "STATISTICS XML":
		o.statisticsXML = on
	case "NOCOUNT":
		o.noCount = on
	case "XACT_ABORT":
		o.xactAbort = on
	case "IMPLICIT_TRANSACTIONS":
		if on {
			panic(tsql.Unmodelled(st.Line(), "SET IMPLICIT_TRANSACTIONS ON"))
		}
	case "PARSEONLY":
		o.parseOnly = on
	case "STATISTICS IO", "STATISTICS PROFILE", "FMTONLY", "NOEXEC", "SHOWPLAN_XML":
		if on {
			panic(tsql.Unmodelled(st.Line(), "SET %s ON", st.Option))
		}
	case "ROWCOUNT":
		if st.Value != "0" {
			panic(tsql.Unmodelled(st.Line(), "SET ROWCOUNT %s", st.Value))
		}
	}
	return out
}

// endsParseOnly reports whether it is the one statement that takes effect under SET PARSEONLY ON. The server sets the
// option while parsing; the lab from the next batch on, which is how vnuma sends it.
func endsParseOnly(st tsql.Statement) bool {
	option, ok := st.(*tsql.SetOption)
	return ok && option.Option == "PARSEONLY"
}

// inputEvent is the last request that a client sent: an RPC with the procedure's name, or a batch with its text.
type inputEvent struct {
	kind string
	info string
}

// received notes a request as DBCC INPUTBUFFER shows it. The caller holds Instance.mu.
func (s *Session) received(rpc, text string) {
	if rpc != "" {
		s.input = inputEvent{"RPC Event", rpc + ";1"}
		return
	}
	s.input = inputEvent{"Language Event", text}
}

// inputBuffer is DBCC INPUTBUFFER (session): one row.
func (b *batch) inputBuffer(st *tsql.InputBuffer) {
	id := wholeNumber(b.value(st.Session), typeInt)
	b.s.inst.mu.Lock()
	other := b.s.inst.sessions[int(id)]
	var event inputEvent
	if other != nil {
		event = other.input
	}
	b.s.inst.mu.Unlock()
	if other == nil {
		panic(tsql.Errorf(7955, st.Line(), "Invalid SPID %d specified.", id))
	}
	b.table([]column{{name: "EventType", typ: textType(30), nullable: true}, {name: "Parameters", typ: tds.Type{Kind: tds.KindInt16}, nullable: true},
		{name: "EventInfo", typ: textType(4000), nullable: true}}, [][]any{{event.kind, int64(0), event.info}})
}
