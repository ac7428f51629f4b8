package tds

import "strings"

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
func parseRPC(data []byte) ([]call, error) {
	in := &input{b: data}
	in.allHeaders()
	var calls []call
	for first := true; first || in.more(); first = false {
		c, err := readCall(in)
		if err != nil {
			return nil, err
		}
		calls = append(calls, c)
	}
	return calls, in.err
}

func readCall(in *input) (call, error) {
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
		p, err := readParam(in)
		if err != nil {
			return c, err
		}
		c.params = append(c.params, p)
	}
	return c, in.err
}

func readParam(in *input) (Param, error) {
	p := Param{Name: in.text(int(in.u8()))}
	p.Output = in.u8()&paramOutput != 0
	t, err := readType(in)
	if err != nil {
		return p, err
	}
	p.Type = t.Type
	p.Value, err = readValue(in, t)
	return p, err
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
