package tds

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"
)

// endless sends joined rows until something stops it, and reports what it was.
func endless(ended chan<- error) *script {
	outer, inner := make([][]any, 100_000), make([][]any, 1000)
	for i := range outer {
		outer[i] = []any{int64(i)}
	}
	for i := range inner {
		inner[i] = []any{"4911-403C-98"}
	}
	return &script{batch: func(_ context.Context, text string, _ []Param, w *Writer) {
		if text != "cross" {
			return
		}
		w.Columns([]Column{oneColumn[0], {"t", Type{Kind: KindNVarChar, Size: 25}, true}})
		_, err := w.CrossRows(outer, inner)
		w.Done(Done{Command: CommandSelect})
		ended <- err
	}}
}

func wait[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(patience):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

// Attention in the middle of a result ends it between two rows; an acknowledgement follows, and the next request works.
func TestAttentionInAResult(t *testing.T) {
	ended := make(chan error, 1)
	server, _ := start(t, endless(ended), Options{})
	c := login(t, server)
	c.query("cross")
	if _, err := io.ReadFull(c, make([]byte, 100*4096)); err != nil {
		t.Fatal(err)
	}
	c.attention()
	b := c.receive() // every packet is of 4096 bytes, so that reading goes on at a packet's start
	tail := appendDone(nil, tokenDone, doneError, 0, 0)
	if !bytes.HasSuffix(b, tail) {
		t.Fatalf("the result ends with %x", b[len(b)-40:])
	}
	if rows := bytes.TrimSuffix(b, tail); !bytes.HasSuffix(rows, AppendUTF16(nil, "4911-403C-98")) {
		t.Errorf("the last row is cut: %x", rows[len(rows)-40:])
	}
	if got := c.receive(); !bytes.Equal(got, appendDone(nil, tokenDone, doneAttention, commandAttention, 0)) {
		t.Errorf("acknowledgement %x", got)
	}
	if err := wait(t, ended); !errors.Is(err, ErrAttention) {
		t.Errorf("the engine saw %v", err)
	}
	if got := c.ask("next"); !bytes.Equal(got, appendDone(nil, tokenDone, 0, 0, 0)) {
		t.Errorf("next request: %x", got)
	}
}

// Attention ends the context of a request that sends nothing.
func TestAttentionWithoutAResult(t *testing.T) {
	causes := make(chan error, 1)
	s := &script{batch: func(ctx context.Context, _ string, _ []Param, w *Writer) {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		w.Info(Message{Number: 3612})
		w.Done(Done{})
	}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	c.query("wait")
	c.attention()
	if got := c.receive(); !bytes.Equal(got, appendDone(nil, tokenDone, doneError, 0, 0)) {
		t.Errorf("answer %x", got)
	}
	if got := c.receive(); !bytes.Equal(got, appendDone(nil, tokenDone, doneAttention, commandAttention, 0)) {
		t.Errorf("acknowledgement %x", got)
	}
	if cause := wait(t, causes); !errors.Is(cause, ErrAttention) {
		t.Errorf("cause %v", cause)
	}
}

// Attention after the response gets its own acknowledgement.
func TestAttentionWhileIdle(t *testing.T) {
	server, _ := start(t, &script{}, Options{})
	c := login(t, server)
	c.attention()
	if got := c.receive(); !bytes.Equal(got, appendDone(nil, tokenDone, doneAttention, commandAttention, 0)) {
		t.Errorf("answer %x", got)
	}
}

// A message that the client abandoned half-way is not run.
func TestIgnoredMessages(t *testing.T) {
	server, _ := start(t, &script{}, Options{})
	c := login(t, server)
	m := packets(packetBatch, append(bytes.Clone(headers), 'x', 0), 500)
	m[1] |= statusIgnore
	c.raw(m)
	if got := c.receive(); !bytes.Equal(got, appendDone(nil, tokenDone, doneError, 0, 0)) {
		t.Errorf("answer %x", got)
	}
}

// After the allowed rows, which still arrive, the connection is cut in the middle of the result.
func TestDropAfterRows(t *testing.T) {
	ended := make(chan error, 1)
	server, log := start(t, endless(ended), Options{DropAfterRows: 50})
	c := login(t, server)
	c.query("cross")
	b, err := c.message()
	if err == nil {
		t.Fatalf("the result ended in order after %d bytes", len(b))
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		t.Fatal("the connection is still open")
	}
	if rows := bytes.Count(b, AppendUTF16(nil, "4911-403C-98")); rows != 50 {
		t.Errorf("%d rows arrived", rows)
	}
	if err := wait(t, ended); !errors.Is(err, ErrDropped) {
		t.Errorf("the engine saw %v", err)
	}
	server.Close()
	server.Wait()
	if !strings.Contains(log.String(), "cut on purpose") {
		t.Errorf("log: %s", log)
	}
}

// Close cuts a client in the middle of a result at once, and ends the running request.
func TestCloseInAResult(t *testing.T) {
	ended := make(chan error, 1)
	s := endless(ended)
	s.closed = make(chan struct{}, 1)
	server, _ := start(t, s, Options{})
	c := login(t, server)
	c.query("cross")
	if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	server.Close()
	c.ended()
	if err := wait(t, ended); !errors.Is(err, ErrConnectionLost) {
		t.Errorf("the engine saw %v", err)
	}
	wait(t, s.closed)
	if conn, err := net.Dial("tcp", addressOf(server)); err == nil {
		_ = conn.Close()
		t.Error("the port is still open")
	}
}

// A client that leaves in the middle of a result ends the request.
func TestClientLeavesInAResult(t *testing.T) {
	ended := make(chan error, 1)
	server, _ := start(t, endless(ended), Options{})
	c := login(t, server)
	c.query("cross")
	if _, err := io.ReadFull(c, make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	if err := wait(t, ended); !errors.Is(err, ErrConnectionLost) {
		t.Errorf("the engine saw %v", err)
	}
}

// A client that does not read blocks the server, whose memory does not grow.
func TestSlowReaders(t *testing.T) {
	ended := make(chan error, 1)
	server, _ := start(t, endless(ended), Options{})
	c := login(t, server)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c.query("cross")
	before := heap()
	for range 200 { // 20 MB, far more than the buffers between the two sides
		if _, err := io.ReadFull(c, make([]byte, 100_000)); err != nil {
			t.Fatal(err)
		}
	}
	if after := heap(); after > before+4<<20 {
		t.Errorf("the heap grew from %d to %d bytes", before, after)
	}
	select {
	case err := <-ended:
		t.Fatalf("the result of 5 GB ended: %v", err)
	default:
	}
	server.Close()
	wait(t, ended)
}

// A client whose login is refused reads the engine's error and the end of the connection.
func TestRefusedLogin(t *testing.T) {
	s := &script{refuse: &Message{Number: 18456, State: 1, Class: 14, Text: "Login failed for user 'sa'.", Line: 1}}
	server, _ := start(t, s, Options{})
	c := connect(t, server)
	c.send(packetLogin7, unhex(t, freetdsLogin))
	want := append(appendMessage(nil, tokenError, *s.refuse, "LAB"), appendDone(nil, tokenDone, doneError, 0, 0)...)
	if got := c.receive(); !bytes.Equal(got, want) {
		t.Errorf("answer %x", got)
	}
	c.ended()
}

// Clients of an older protocol and of integrated security are refused without asking the engine.
func TestLoginsOfOtherKinds(t *testing.T) {
	s := &script{}
	server, _ := start(t, s, Options{})
	for at, c := range map[int]struct {
		value byte
		want  string
	}{7: {0x72, "TDS_Version=7.4"}, 25: {flagSSPI, "Integrated authentication"}} {
		b := unhex(t, freetdsLogin)
		b[at] = c.value
		conn := connect(t, server)
		conn.send(packetLogin7, b)
		if got := conn.receive(); !bytes.Contains(got, AppendUTF16(nil, c.want)) {
			t.Errorf("%s: %x", c.want, got)
		}
		conn.ended()
	}
	if s.opened != 0 {
		t.Error("the engine was asked")
	}
}

// The response uses the packet size that the login negotiated.
func TestNegotiatedPacketSize(t *testing.T) {
	ended := make(chan error, 1)
	server, _ := start(t, endless(ended), Options{})
	b := unhex(t, freetdsLogin)
	copy(b[8:], []byte{0, 2, 0, 0})
	c := connect(t, server)
	c.send(packetLogin7, b)
	if got := c.receive(); !bytes.Contains(got, appendEnvText(nil, envPacketSize, "512", "4096")) {
		t.Fatalf("answer %x", got)
	}
	c.query("cross")
	head := make([]byte, headerSize)
	if _, err := io.ReadFull(c, head); err != nil || head[2] != 2 || head[3] != 0 {
		t.Errorf("first packet %x, %v", head, err)
	}
}

// Bad input closes only its own connection, with a line in the log.
func TestBadInput(t *testing.T) {
	for name, c := range map[string]struct {
		first  bool // before the login
		packet []byte
	}{
		"TLS":                      {true, []byte{0x16, 3, 1, 2, 0, 1, 0, 1}},
		"batch before login":       {true, packets(packetBatch, bytes.Clone(headers), 500)},
		"short PRELOGIN":           {true, packets(packetPrelogin, []byte{1}, 500)},
		"short login":              {true, packets(packetLogin7, make([]byte, 50), 500)},
		"second login":             {false, packets(packetLogin7, unhex(t, freetdsLogin), 500)},
		"batch without headers":    {false, packets(packetBatch, []byte{1}, 500)},
		"headers beyond the batch": {false, packets(packetBatch, []byte{255, 0, 0, 0}, 500)},
		"half a character":         {false, packets(packetBatch, append(bytes.Clone(headers), 'x'), 500)},
		"empty call":               {false, packets(packetRPC, nil, 500)},
	} {
		t.Run(name, func(t *testing.T) {
			server, log := start(t, &script{batch: func(context.Context, string, []Param, *Writer) {}}, Options{})
			other := login(t, server)
			conn := connect(t, server)
			if !c.first {
				conn = login(t, server)
			}
			conn.raw(c.packet)
			conn.ended()
			other.ask("still here")
			server.Close()
			server.Wait()
			if !strings.Contains(log.String(), "bad input") {
				t.Errorf("log: %s", log)
			}
		})
	}
}

// A request before the end of the last one's response violates the protocol.
func TestTwoRequestsAtOnce(t *testing.T) {
	ended := make(chan error, 1)
	server, log := start(t, endless(ended), Options{})
	c := login(t, server)
	c.query("cross")
	c.query("cross")
	c.ended()
	wait(t, ended)
	server.Close()
	server.Wait()
	if !strings.Contains(log.String(), "bad input") {
		t.Errorf("log: %s", log)
	}
}

// An engine that panics gives its client an error, ends only that connection, and the log shows where it was.
func TestPanickingEngine(t *testing.T) {
	s := &script{batch: func(_ context.Context, text string, _ []Param, _ *Writer) {
		if text == "panic" {
			panic("broken engine")
		}
	}}
	server, log := start(t, s, Options{})
	other, c := login(t, server), login(t, server)
	if got := c.ask("panic"); got[0] != tokenError || !bytes.Contains(got, appendText(nil, "broken engine")[2:]) {
		t.Errorf("answer %x", got)
	}
	c.ended()
	other.ask("still here")
	server.Close()
	server.Wait()
	if !strings.Contains(log.String(), "broken engine") || !strings.Contains(log.String(), "server_test.go") {
		t.Errorf("log: %s", log)
	}
}

// An error of class 20 is sent, and then the connection ends.
func TestFatalErrors(t *testing.T) {
	s := &script{batch: func(_ context.Context, _ string, _ []Param, w *Writer) { w.Error(Message{Number: 823, Class: 24}) }}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	want := append(appendMessage(nil, tokenError, Message{Number: 823, Class: 24}, "LAB"), appendDone(nil, tokenDone, doneError, 0, 0)...)
	if got := c.ask("x"); !bytes.Equal(got, want) {
		t.Errorf("answer %x", got)
	}
	c.ended()
}

// A pooled connection that is used again gets a fresh session.
func TestResetConnection(t *testing.T) {
	s := &script{closed: make(chan struct{}, 2), batch: func(context.Context, string, []Param, *Writer) {}}
	server, _ := start(t, s, Options{})
	c := login(t, server)
	m := packets(packetBatch, append(bytes.Clone(headers), 'x', 0), 500)
	m[1] |= statusReset
	c.raw(m)
	want := append(appendEnvBytes(nil, envReset, nil, nil), appendDone(nil, tokenDone, 0, 0, 0)...)
	if got := c.receive(); !bytes.Equal(got, want) {
		t.Errorf("answer %x", got)
	}
	wait(t, s.closed)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened != 2 {
		t.Errorf("%d sessions opened", s.opened)
	}
}

// A client that connects and sends nothing is disconnected.
func TestSilentClients(t *testing.T) {
	server, _ := start(t, &script{}, Options{LoginTimeout: time.Millisecond})
	connect(t, server).ended()
}
