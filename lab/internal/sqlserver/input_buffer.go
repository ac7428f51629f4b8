package sqlserver

import (
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

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
func (b *batch) inputBuffer(st *tsql.InputBuffer) error {
	v, err := b.value(st.Session)
	if err != nil {
		return err
	}
	id, err := wholeNumber(v, typeInt)
	if err != nil {
		return err
	}
	b.s.inst.mu.Lock()
	other := b.s.inst.sessions[int(id)]
	var event inputEvent
	if other != nil {
		event = other.input
	}
	b.s.inst.mu.Unlock()
	if other == nil {
		return tsql.Errorf(7955, st.Line(), "Invalid SPID %d specified.", id)
	}
	b.table([]column{{name: "EventType", typ: textType(30), nullable: true}, {name: "Parameters", typ: tds.Type{Kind: tds.KindInt16}, nullable: true},
		{name: "EventInfo", typ: textType(4000), nullable: true}}, [][]any{{event.kind, int64(0), event.info}})
	return nil
}
