package tds

import (
	"context"
	"fmt"
	"regexp"
	"strings"
)

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
