package tds

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

// Procedures that have a number instead of a name.
const (
	procCursorLast  = 9 // 1..9: sp_cursor, sp_cursoropen, ... sp_cursorclose
	procExecuteSQL  = 10
	procPrepare     = 11
	procExecute     = 12
	procPrepExec    = 13
	procPrepExecRPC = 14
	procUnprepare   = 15
)

// Separators between the calls of one request.
const (
	rpcBatch  = 0xFF
	rpcNoExec = 0xFE
)

const paramOutput = 0x01

var procNumbers = map[string]uint16{
	"sp_executesql": procExecuteSQL, "sp_prepare": procPrepare, "sp_execute": procExecute,
	"sp_prepexec": procPrepExec, "sp_prepexecrpc": procPrepExecRPC, "sp_unprepare": procUnprepare,
}

// notSupported is the error for what this server does not implement.
func notSupported(what string) Message {
	return Message{Number: 50000, State: 1, Class: 16, Line: 1, Text: "This server does not support " + what + "."}
}

// numberedName is the name of a procedure with a number.
func numberedName(number uint16) string {
	for name, n := range procNumbers {
		if n == number {
			return name
		}
	}
	return "sp_cursor"
}

// call is one procedure of an RPC request.
type call struct {
	number uint16 // 0 = by name
	name   string
	params []Param
	noExec bool // described only
}

// parseRPC reads an RPC request.
func parseRPC(data []byte) []call {
	in := &input{b: data}
	in.allHeaders()
	calls := []call{readCall(in)}
	for in.more() {
		calls = append(calls, readCall(in))
	}
	return calls
}

func readCall(in *input) call {
	var c call
	if n := in.u16(); n == plpLength {
		c.number = in.u16()
	} else {
		c.name = in.text(int(n))
		c.number = procNumbers[bareProcedure(c.name)]
	}
	in.u16() // options: recompile, no metadata, reuse metadata
	for in.more() {
		if in.b[0] == rpcBatch || in.b[0] == rpcNoExec {
			c.noExec = in.u8() == rpcNoExec
			break
		}
		c.params = append(c.params, readParam(in))
	}
	return c
}

func readParam(in *input) Param {
	p := Param{Name: in.text(int(in.u8()))}
	p.Output = in.u8()&paramOutput != 0
	t := readType(in)
	p.Type, p.Value = t.Type, readValue(in, t)
	return p
}

// bareProcedure is the last part of a name, without brackets, in lower case.
func bareProcedure(name string) string {
	name = strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])
	return strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
}

// declaredNames are the parameter names of a declaration list: "@P1 int,@P2 decimal(10,2) OUTPUT".
func declaredNames(list string) []string {
	var names []string
	depth, start := 0, 0
	add := func(part string) {
		if words := strings.Fields(part); len(words) > 0 {
			names = append(names, words[0])
		}
	}
	for i, r := range list {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth <= 0 {
				add(list[start:i])
				start = i + 1
			}
		}
	}
	add(list[start:])
	return names
}

// statement is a text with the names of its parameters, as declared; or a procedure to call.
type statement struct {
	text      string
	names     []string
	procedure string // instead of text
}

// prepared holds the prepared statements of a connection by handle.
type prepared struct {
	byHandle map[int32]statement
	last     int32
}

func (p *prepared) add(s statement) int32 {
	if p.byHandle == nil {
		p.byHandle = map[int32]statement{}
	}
	p.last++
	p.byHandle[p.last] = s
	return p.last
}

// invoke runs one call of an RPC request.
func (c *connection) invoke(ctx context.Context, k call, w *Writer) {
	if w.Procedure = k.name; k.number > 0 {
		w.Procedure = numberedName(k.number)
	}
	switch {
	case k.noExec:
		w.Error(notSupported("calls that are described and not executed"))
	case k.number == procExecuteSQL:
		if s, ok := textOf(k.params, 0, 1, w); ok {
			c.run(ctx, s, after(k.params, 2), w)
		}
	case k.number == procPrepare:
		if s, ok := textOf(k.params, 2, 1, w); ok {
			w.Output(handleParam(k.params[0].Name, c.prepared.add(s)))
		}
	case k.number == procPrepExec:
		if s, ok := textOf(k.params, 2, 1, w); ok {
			c.forget(k.params[0])
			w.Output(handleParam(k.params[0].Name, c.prepared.add(s)))
			c.run(ctx, s, after(k.params, 3), w)
		}
	case k.number == procPrepExecRPC:
		if s, ok := calledBy(k.params, w); ok {
			c.forget(k.params[0])
			w.Output(handleParam(k.params[0].Name, c.prepared.add(s)))
			c.run(ctx, s, after(k.params, 2), w)
		}
	case k.number == procExecute:
		if s, _, ok := c.find(k.params, w); ok {
			c.run(ctx, s, after(k.params, 1), w)
		}
	case k.number == procUnprepare:
		if _, handle, ok := c.find(k.params, w); ok {
			delete(c.prepared.byHandle, handle)
		}
	case k.number > 0 && k.number <= procCursorLast:
		w.Error(notSupported("server cursors (sp_cursor procedures): use a forward-only, read-only cursor"))
	case k.number > 0:
		w.Error(notSupported(fmt.Sprintf("the procedure number %d", k.number)))
	default:
		c.session.Call(ctx, k.name, k.params, w)
	}
}

func handleParam(name string, handle int32) Param {
	return Param{Name: name, Type: Type{Kind: KindInt32}, Value: int64(handle), Output: true}
}

// after is the parameters from n on.
func after(params []Param, n int) []Param { return params[min(n, len(params)):] }

// textOf gets the statement of a call: its text from one parameter, its declarations from another.
func textOf(params []Param, text, names int, w *Writer) (statement, bool) {
	var s statement
	ok := len(params) > text
	if ok {
		s.text, ok = params[text].Value.(string)
	}
	if !ok {
		w.Error(Message{Number: 214, State: 2, Class: 16, Line: 1,
			Text: "Procedure expects parameter '@statement' of type 'ntext/nchar/nvarchar'."})
		return s, false
	}
	if len(params) > names {
		list, _ := params[names].Value.(string)
		s.names = declaredNames(list)
	}
	return s, true
}

// calledName is the procedure of sp_prepexecrpc: its bare name, as msodbcsql sends it, or a call in ODBC's
// notation, as documented: {call dbo.p (?, ?)}, {? = call dbo.p}.
var calledName = regexp.MustCompile(`(?is)^\s*(?:\{\s*(?:\?\s*=\s*)?call\s+)?([^\s(){}?=;]+)`)

// calledBy gets the procedure of an sp_prepexecrpc, which msodbcsql sends for a prepared {call ...}.
func calledBy(params []Param, w *Writer) (statement, bool) {
	if len(params) > 1 {
		text, _ := params[1].Value.(string)
		if m := calledName.FindStringSubmatch(text); m != nil {
			return statement{procedure: m[1]}, true
		}
	}
	w.Error(notSupported("sp_prepexecrpc without the name of a procedure"))
	return statement{}, false
}

// find looks a prepared statement up by the handle that is a call's first parameter.
func (c *connection) find(params []Param, w *Writer) (statement, int32, bool) {
	var handle int64
	if len(params) > 0 {
		handle, _ = params[0].Value.(int64)
	}
	s, ok := c.prepared.byHandle[int32(handle)]
	if !ok {
		w.Error(Message{Number: 8179, State: 4, Class: 16, Line: 1,
			Text: fmt.Sprintf("Could not find prepared statement with handle %d.", handle)})
	}
	return s, int32(handle), ok
}

// forget drops the statement whose handle sp_prepexec replaces.
func (c *connection) forget(p Param) {
	if handle, ok := p.Value.(int64); ok {
		delete(c.prepared.byHandle, int32(handle))
	}
}

// run executes a text with its values; values without a name get the declared name at their position.
func (c *connection) run(ctx context.Context, s statement, values []Param, w *Writer) {
	if s.procedure != "" {
		c.session.Call(ctx, s.procedure, values, w)
		return
	}
	if len(values) > len(s.names) {
		w.Error(Message{Number: 8144, State: 2, Class: 16, Line: 1,
			Text: "Procedure or function has too many arguments specified."})
		return
	}
	given := map[string]bool{}
	for i := range values {
		if values[i].Name == "" {
			values[i].Name = s.names[i]
		}
		given[strings.ToLower(values[i].Name)] = true
	}
	for _, name := range s.names {
		if !given[strings.ToLower(name)] {
			w.Error(Message{Number: 8178, State: 1, Class: 16, Line: 1, Text: fmt.Sprintf(
				"The parameterized query '%s' expects the parameter '%s', which was not supplied.", clip(s.text, 100), name)})
			return
		}
	}
	c.session.Batch(ctx, s.text, values, w)
}
