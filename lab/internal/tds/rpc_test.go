package tds

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// The parameters that two real drivers send for the same values: sp_prepexec of msodbcsql 18.6 and FreeTDS 1.3.
const (
	msodbcsqlPrepExec = "16000000120000000200010000000000000001000000ffff0d00000000012604000000e7ffff0904d00034feffffffffffffff260100004000500031002000" +
		"69006e0074002c0040005000320020006200690074002c00400050003300200066006c006f00610074002c0040005000340020006e0075006d00650072006900630028003100" +
		"31002c00360029002c0040005000350020006e00760061007200630068006100720028003100340029002c004000500036002000760061007200620069006e00610072007900" +
		"2800320029002c0040005000370020006400610074006500740069006d00650032002c00400050003800200064006100740065002c004000500039002000740069006d006500" +
		"2c004000500031003000200075006e0069007100750065006900640065006e007400690066006900650072002c00400050003100310020007600610072006300680061007200" +
		"280031002900000000000000e7ffff0904d00034feffffffffffffff72000000730065006c0065006300740020006500630068006f0020004000500031002c00400050003200" +
		"2c004000500033002c004000500034002c004000500035002c004000500036002c004000500037002c004000500038002c004000500039002c0040005000310030002c004000" +
		"50003100310000000000000026040401000000" + "00006801010100006d0808000000000000f83f00006c110b061100351cdcdf0200000000000000000000000000e71c000904d0" +
		"00340e007c01f3004201770020003dd800de0000a502000200000100002a070880ed97f46e80460b0000280391400b0000290003252b00000024101000000000000000000000" +
		"0000000000050000a701000904d00034ffff"
	freetdsPrepExec = "16000000120000000200010000000000000001000000ffff0d0000000001260400000063260100000904d0003426010000400050003100200049004e0054002c0040" +
		"005000320020004200490054002c00400050003300200046004c004f00410054002c0040005000340020004e0055004d0045005200490043002800310031002c003600290" +
		"02c0040005000350020004e00560041005200430048004100520028003100340029002c004000500036002000560041005200420049004e00410052005900280032002900" +
		"2c0040005000370020004400410054004500540049004d00450032002c00400050003800200044004100540045002c004000500039002000540049004d0045002c0040005" +
		"00031003000200055004e0049005100550045004900440045004e005400490046004900450052002c00400050003100310020005600410052004300480041005200280031" +
		"002900000063720000000904d0003472000000730065006c0065006300740020006500630068006f0020004000500031002c004000500032002c004000500033002c00400" +
		"0500034002c004000500035002c004000500036002c004000500037002c004000500038002c004000500039002c0040005000310030002c00400050003100310000002604" +
		"040100000000006801010100006d0808000000000000f83f00006c060b060600351cdcdf020000e71c000904d000340e007c01f3004201770020003dd800de0000a502000" +
		"200000100002a070880ed97f46e80460b0000280391400b0000290705804055b7190000241010000000000000000000000000000000050000a701000904d00034ffff"
)

// Both drivers' parameters are read with the values that the application gave.
func TestParametersOfRealDrivers(t *testing.T) {
	want := []any{int64(1), true, 1.5, NewDecimal(-12345678901, 6), "żółw 😀", []byte{0, 1},
		time.Date(2024, 2, 29, 13, 14, 15, 0, time.UTC), time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC),
		time.Date(1, 1, 1, 3, 4, 5, 0, time.UTC), [16]byte{15: 5}, nil}
	for name, request := range map[string]string{"msodbcsql": msodbcsqlPrepExec, "FreeTDS": freetdsPrepExec} {
		t.Run(name, func(t *testing.T) {
			var text string
			var got []Param
			s := &script{batch: func(_ context.Context, q string, p []Param, _ *Writer) { text, got = q, p }}
			server, _ := start(t, s, Options{})
			c := login(t, server)
			c.send(packetRPC, unhex(t, request))
			c.receive()
			if text != "select echo @P1,@P2,@P3,@P4,@P5,@P6,@P7,@P8,@P9,@P10,@P11" || len(got) != len(want) {
				t.Fatalf("%q with %d parameters", text, len(got))
			}
			for i, p := range got {
				if p.Name != fmt.Sprintf("@P%d", i+1) || !sameValue(p.Value, want[i]) {
					t.Errorf("parameter %d is %s = %v, want %v", i+1, p.Name, p.Value, want[i])
				}
			}
		})
	}
}

// Names are found in a declaration list whatever the types hold.
func TestDeclaredNames(t *testing.T) {
	for list, want := range map[string][]string{
		"": nil, "@a int": {"@a"}, " @a decimal(10,2) OUTPUT,\n@b varchar(max) = 'x' ": {"@a", "@b"}, "@x as int, @y xml": {"@x", "@y"},
	} {
		if got := declaredNames(list); !slices.Equal(got, want) {
			t.Errorf("%q: %q", list, got)
		}
	}
}

// A statement is prepared, executed by its handle and forgotten; afterwards the handle is unknown.
func TestPreparedStatements(t *testing.T) {
	var seen []string
	s := &script{batch: func(_ context.Context, q string, p []Param, _ *Writer) {
		seen = append(seen, fmt.Sprintf("%s %s=%v", q, p[0].Name, p[0].Value))
	}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	handle := Param{Type: Type{Kind: KindInt32}, Output: true}
	c.send(packetRPC, param(param(param(rpc(procPrepare), handle), text("@a int")), text("select @a")))
	if b := c.receive(); !bytes.Contains(b, unhex(t, "2604"+"0401000000")) {
		t.Fatalf("no handle in %x", b)
	}
	c.send(packetRPC, param(param(rpc(procExecute), number(int64(1))), number(int64(7))))
	c.receive()
	named := number(int64(8))
	named.Name = "@a"
	c.send(packetRPC, param(param(rpc(procExecute), number(int64(1))), named))
	c.receive()
	if want := []string{"select @a @a=7", "select @a @a=8"}; !slices.Equal(seen, want) {
		t.Errorf("ran %q", seen)
	}
	c.send(packetRPC, param(rpc(procUnprepare), number(int64(1))))
	c.receive()
	c.send(packetRPC, param(rpc(procExecute), number(int64(1))))
	if b := c.receive(); !bytes.Contains(b, AppendUTF16(nil, "Could not find prepared statement with handle 1.")) {
		t.Errorf("answer %x", b)
	}
}

// Requests that cannot run are answered by SQL Server's error, and the connection continues.
func TestRefusedCalls(t *testing.T) {
	s := &script{batch: func(context.Context, string, []Param, *Writer) {}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	for want, request := range map[string][]byte{
		"sp_cursor": rpc(2), "number 99": rpc(99), "expects parameter '@statement'": rpc(procExecuteSQL),
		"too many arguments":          param(param(param(rpc(procExecuteSQL), text("select 1")), text("")), number(nil)),
		"expects the parameter '@b'":  param(param(rpc(procExecuteSQL), text("select @b")), text("@b int")),
		"parameters of the type 0xf3": append(rpc(procExecuteSQL), 0, 0, 0xF3, 0),
		"without the name":            param(param(rpc(procPrepExecRPC), number(nil)), text("")),
		"described and not executed":  append(rpc(procExecuteSQL), rpcNoExec),
	} {
		c.send(packetRPC, request)
		if b := c.receive(); !bytes.Contains(b, AppendUTF16(nil, want)) {
			t.Errorf("%s: answer %x", want, b)
		}
	}
	c.send(packetBulk, []byte{1, 2, 3})
	if b := c.receive(); !bytes.Contains(b, AppendUTF16(nil, "bulk loads")) {
		t.Errorf("bulk load answered by %x", b)
	}
	c.ask("still here")
}

// Calls by name, and those that msodbcsql prepares, reach the engine with the name as written.
func TestCallsByName(t *testing.T) {
	var seen []string
	s := &script{call: func(_ context.Context, p string, params []Param, _ *Writer) {
		seen = append(seen, fmt.Sprintf("%s/%d", p, len(params)))
	}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	byName := append(appendText(bytes.Clone(headers), "[sys].sp_datatype_info_100"), 0, 0)
	c.send(packetRPC, param(byName, number(int64(93))))
	c.receive()
	for _, called := range []string{"dbo.noop", "{call dbo.noop (?)}", "{ ? = CALL dbo.noop}"} {
		c.send(packetRPC, param(param(param(rpc(procPrepExecRPC), number(nil)), text(called)), number(int64(1))))
		c.receive()
	}
	c.send(packetRPC, param(rpc(procExecute), number(int64(3))))
	c.receive()
	want := []string{"[sys].sp_datatype_info_100/1", "dbo.noop/1", "dbo.noop/1", "dbo.noop/1", "dbo.noop/0"}
	if !slices.Equal(seen, want) {
		t.Errorf("called %q", seen)
	}
}

// Several calls in one request end with one DONEPROC each, the last without more to follow.
func TestSeveralCallsInOneRequest(t *testing.T) {
	s := &script{call: func(context.Context, string, []Param, *Writer) {}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	request := append(appendText(bytes.Clone(headers), "a"), 0, 0, rpcBatch)
	request = append(appendText(request, "b"), 0, 0)
	c.send(packetRPC, request)
	status := []byte{tokenReturnStatus, 0, 0, 0, 0}
	want := slices.Concat(status, appendDone(nil, tokenDoneProc, doneMore, 0, 0), status, appendDone(nil, tokenDoneProc, 0, 0, 0))
	if got := c.receive(); !bytes.Equal(got, want) {
		t.Errorf("\n got %x\nwant %x", got, want)
	}
}

// A request cut anywhere is malformed or shorter, never a panic.
func TestCutCalls(t *testing.T) {
	whole := unhex(t, msodbcsqlPrepExec)
	for n := range whole {
		calls, err := tried(func() []call { return parseRPC(whole[:n]) })
		if err == nil && len(calls[0].params) >= 14 || err != nil && !errors.Is(err, errMalformed) {
			t.Fatalf("%d bytes: %d calls, %v", n, len(calls), err)
		}
	}
}

// A driver's request for a transaction is refused with an error, and the connection continues.
func TestTransactionRequestsAreRefused(t *testing.T) {
	server, _ := start(t, &script{}, Options{})
	c := login(t, server)
	for range 2 {
		c.send(packetTransaction, unhex(t, "1600000012000000020000000000000000000100000005000000"))
		if b := c.receive(); !bytes.Contains(b, AppendUTF16(nil, "connect with autocommit")) {
			t.Errorf("answer %x", b)
		}
	}
}
