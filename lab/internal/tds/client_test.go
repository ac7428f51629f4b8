package tds

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"
)

// patience limits every wait of these tests; none takes a noticeable part of it.
const patience = 20 * time.Second

// script is an engine whose sessions do what a test wants.
type script struct {
	refuse *Message
	batch  func(ctx context.Context, text string, params []Param, w *Writer)
	call   func(ctx context.Context, procedure string, params []Param, w *Writer)
	closed chan struct{}
	opened int
	mu     sync.Mutex
}

func (s *script) Open(Login) (Session, *Message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened++
	if s.refuse != nil {
		return nil, s.refuse
	}
	return scripted{s}, nil
}

type scripted struct{ *script }

func (s scripted) Database() string { return "master" }

func (s scripted) Batch(ctx context.Context, text string, params []Param, w *Writer) {
	s.batch(ctx, text, params, w)
}

func (s scripted) Call(ctx context.Context, procedure string, params []Param, w *Writer) {
	s.call(ctx, procedure, params, w)
}

func (s scripted) Close() {
	if s.closed != nil {
		s.closed <- struct{}{}
	}
}

// record is a log that a test can read.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// addresses are those of the servers that were started.
var addresses sync.Map

func addressOf(server *Server) string {
	address, _ := addresses.Load(server)
	return address.(string)
}

// start serves s until the test ends and gives the server and what it logs.
func start(t *testing.T, s *script, o Options) (*Server, *record) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	log := &record{}
	o.Log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	o.ServerName = "LAB"
	server := Serve([]net.Listener{l}, s, o)
	addresses.Store(server, l.Addr().String())
	t.Cleanup(func() {
		server.Close()
		server.Wait()
	})
	return server, log
}

// client implements the protocol independently of the package.
type client struct {
	t testing.TB
	net.Conn
}

func connect(t testing.TB, server *Server) *client {
	t.Helper()
	conn, err := net.Dial("tcp", addressOf(server))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &client{t, conn}
}

// login is connect, and a login as FreeTDS sends it.
func login(t testing.TB, server *Server) *client {
	t.Helper()
	c := connect(t, server)
	c.send(packetLogin7, unhex(t, freetdsLogin))
	if b := c.receive(); !bytes.Contains(b, []byte{tokenLoginAck, 0x32}) {
		t.Fatalf("login answered by %x", b)
	}
	return c
}

func (c *client) send(kind byte, data []byte) { c.raw(packets(kind, data, 500)) }

func (c *client) raw(b []byte) {
	c.t.Helper()
	if _, err := c.Write(b); err != nil {
		c.t.Fatal(err)
	}
}

// headers is ALL_HEADERS with the transaction descriptor 0.
var headers = []byte{22, 0, 0, 0, 18, 0, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0}

func (c *client) query(text string) {
	c.t.Helper()
	c.send(packetBatch, AppendUTF16(bytes.Clone(headers), text))
}

func (c *client) attention() { c.raw([]byte{packetAttention, statusEOM, 0, 8, 0, 0, 1, 0}) }

// receive is the data of one message.
func (c *client) receive() []byte {
	c.t.Helper()
	b, err := c.message()
	if err != nil {
		c.t.Fatalf("after %d bytes: %v", len(b), err)
	}
	return b
}

func (c *client) message() ([]byte, error) {
	var out []byte
	var head [headerSize]byte
	for {
		if _, err := io.ReadFull(c, head[:]); err != nil {
			return out, err
		}
		body := make([]byte, binary.BigEndian.Uint16(head[2:])-headerSize)
		if _, err := io.ReadFull(c, body); err != nil {
			return out, err
		}
		out = append(out, body...)
		if head[1]&statusEOM != 0 {
			return out, nil
		}
	}
}

// ended waits until the server has ended the connection.
func (c *client) ended() {
	c.t.Helper()
	_, err := io.Copy(io.Discard, c)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		c.t.Fatal("the connection is still open")
	}
}

// ask is query and receive.
func (c *client) ask(text string) []byte {
	c.t.Helper()
	c.query(text)
	return c.receive()
}

// rpc starts a request for a procedure with a number.
func rpc(number byte) []byte { return append(bytes.Clone(headers), 0xFF, 0xFF, number, 0, 0, 0) }

// param adds a parameter.
func param(dst []byte, p Param) []byte {
	dst = appendShortText(dst, p.Name)
	dst = append(dst, b2i(p.Output))
	dst = appendType(dst, p.Type)
	return appendValue(dst, p.Type, p.Value)
}

func text(s string) Param { return Param{Type: Type{Kind: KindNVarChar, Size: 4000}, Value: s} }
func number(n any) Param  { return Param{Type: Type{Kind: KindInt32}, Value: n} }
