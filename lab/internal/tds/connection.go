package tds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"vnuma.dev/lab/internal/ports"
)

// connection is one client. While a request runs for long, another goroutine reads, to notice attention and the
// loss of the client.
type connection struct {
	server *Server
	net    net.Conn
	wire   net.Conn // net itself, or TLS over it
	log    *slog.Logger
	spid   uint16

	ctx  context.Context // ends with the connection
	lose context.CancelCauseFunc

	mu        sync.Mutex
	running   *request // nil while the client may send
	ending    *ending  // buffer of the previous request, for reuse
	attention bool     // asked for the running request

	in        *packetReader
	out       *packetWriter
	secured   bool // traffic is now encrypted
	loginOnly bool // encryption ends with the login
	login     loginRequest
	session   Session
	prepared  prepared
}

// request is a message being processed by the server.
type request struct {
	message
	*ending
}

// ending is how a request is told to end early. An unused one is reused for the connection's next request, since
// there may be thousands a second.
type ending struct {
	ctx     context.Context
	cancel  context.CancelCauseFunc
	stopped atomic.Bool // ctx has ended
}

func newEnding(parent context.Context) *ending {
	e := &ending{}
	e.ctx, e.cancel = context.WithCancelCause(parent)
	context.AfterFunc(e.ctx, func() { e.stopped.Store(true) })
	return e
}

// hearing is what listen returned: a request, or the reason why there will be none.
type hearing struct {
	request *request
	err     error
}

// listen reads until there is a request; it handles attention for the running one.
func (c *connection) listen() hearing {
	for {
		m, err := c.in.next()
		if err == nil {
			if m.kind == packetAttention && c.interrupt() {
				continue
			}
			var r *request
			if r, err = c.accept(m); err == nil {
				return hearing{request: r}
			}
		}
		c.lose(ErrConnectionLost)
		// A response may be blocked in a write to this client: closing ends that as well.
		_ = c.net.Close()
		return hearing{err: err}
	}
}

// interrupt cancels the running request; false when none runs.
func (c *connection) interrupt() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running == nil {
		return false
	}
	c.attention = true
	c.running.cancel(ErrAttention)
	return true
}

// accept makes a message the running request. requests has room for it: there is never a second one.
func (c *connection) accept(m message) (*request, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.running != nil {
		return nil, malformed("a message of type 0x%02x before the response to the last one ended", m.kind)
	}
	if c.ending == nil || c.ending.ctx.Err() != nil {
		c.ending = newEnding(c.ctx)
	}
	c.running = &request{message: m, ending: c.ending}
	return c.running, nil
}

// release lets the client send again and reports whether it asked for attention meanwhile. It precedes the last
// packet of a response, because the client's next message may follow that at once.
func (c *connection) release() (attention bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	attention, c.attention = c.attention, false
	c.running = nil
	return attention
}

// listenAfter is how long a request runs before another goroutine reads meanwhile. Short requests, perhaps thousands a
// second, are read and answered by one goroutine; attention waits for this time at most.
const listenAfter = 2 * time.Millisecond

// serve runs requests until the connection ends.
func (c *connection) serve() {
	meanwhile := make(chan hearing, 1)
	patience := time.AfterFunc(time.Hour, func() { meanwhile <- c.listen() })
	patience.Stop()
	next := hearing{err: c.greet()}
	if next.err == nil {
		next = c.listen()
	}
	for next.err == nil {
		// Until the login is answered the client sends one request at a time, and TLS may begin or end in between.
		if c.session != nil {
			patience.Reset(listenAfter)
		} else {
			patience.Reset(time.Hour)
		}
		fault := c.handle(next.request)
		if fault != nil {
			c.lose(ErrConnectionLost)
			_ = c.net.Close() // ends listening as well
		}
		if patience.Stop() {
			next = hearing{err: fault}
			if fault == nil {
				next = c.listen()
			}
			continue
		}
		next = <-meanwhile
		// The listener knows why a connection was lost.
		if fault != nil && (next.err == nil || !errors.Is(fault, ErrConnectionLost)) {
			next.err = fault
		}
	}
	c.lose(ErrConnectionLost)
	if err := c.net.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		c.log.Debug("closing", "error", err)
	}
	if c.session != nil {
		c.session.Close()
	}
	c.report(next.err)
}

// report logs how the connection ended: faults of client or lab as warnings, anything else for debugging.
func (c *connection) report(fault error) {
	var crash *crashError
	switch {
	case errors.As(fault, &crash):
		c.log.Error("connection closed: a request failed inside the server", "error", fault, "stack", crash.stack)
	case errors.Is(fault, errMalformed):
		c.log.Warn("connection closed: bad input", "error", fault)
	case errors.Is(fault, ErrDropped):
		c.log.Info("connection cut on purpose", "reason", fault)
	case errors.Is(fault, io.EOF) || fault == nil:
		c.log.Debug("connection closed by the client")
	default:
		c.log.Debug("connection ended", "reason", fault)
	}
}

// crashError is a panic inside a request.
type crashError struct {
	value any
	stack string
}

func (e *crashError) Error() string { return fmt.Sprintf("panic: %v", e.value) }

// handle answers one request. A panic of the engine is answered as an error that ends this connection, not the
// server, and is logged; bad input ends the connection without an answer.
func (c *connection) handle(r *request) (err error) {
	defer func() {
		problem := recover()
		bad, _ := problem.(error)
		switch {
		case problem == nil:
		case errors.Is(bad, errMalformed):
			err = bad
		case errors.Is(bad, errUnsupported):
			err = c.fail(r, notSupported(bad.Error()))
		default:
			crash := &crashError{value: problem, stack: string(debug.Stack())}
			text := "vnuma-lab failed inside this request (" + crash.Error() + ")."
			err = errors.Join(crash, c.fail(r, Message{Number: 50000, State: 1, Class: 20, Text: text, Line: 1}))
		}
	}()
	switch {
	case r.kind == packetPrelogin && c.session == nil:
		return c.answerPrelogin(r)
	case r.kind == packetLogin7 && c.session == nil:
		return c.answerLogin(r)
	case c.session == nil || r.kind == packetPrelogin || r.kind == packetLogin7:
		return malformed("a message of type 0x%02x at this point of the connection", r.kind)
	case r.kind == packetAttention:
		c.release()
		return c.reply(appendDone(nil, tokenDone, doneAttention, commandAttention, 0))
	case r.status&statusIgnore != 0:
		c.release()
		return c.reply(appendDone(nil, tokenDone, doneError, 0, 0))
	}
	return c.answer(r)
}

// fail ends a response with an error. What was sent of it are whole tokens, so an error may follow.
func (c *connection) fail(r *request, m Message) error {
	w := c.response(r)
	w.Error(m)
	return c.end(w)
}

// reply sends a complete response.
func (c *connection) reply(tokens []byte) error {
	c.out.write(tokens)
	return c.out.finish()
}

// response begins the response to a request.
func (c *connection) response(r *request) *Writer {
	return &Writer{ending: r.ending, out: c.out, server: c.server.options.ServerName, cut: c.cut,
		DropAfter: c.server.options.DropAfterRows, inProcedure: r.kind == packetRPC}
}

// answer runs a batch or a call.
func (c *connection) answer(r *request) error {
	w := c.response(r)
	if r.status&(statusReset|statusResetKeep) != 0 {
		if refusal := c.restart(); refusal != nil {
			w.Error(*refusal)
			w.fatal = true
			return errors.Join(c.end(w), errors.New("the session could not be reset"))
		}
		w.token(func(b []byte) []byte { return appendEnvBytes(b, envReset, nil, nil) })
	}
	c.perform(r, w)
	return c.end(w)
}

// perform dispatches on the kind of request.
func (c *connection) perform(r *request, w *Writer) {
	switch r.kind {
	case packetBatch:
		in := &input{b: r.data}
		in.allHeaders()
		if len(in.b)%2 != 0 {
			panic(malformed("batch of %d bytes", len(in.b)))
		}
		c.session.Batch(r.ctx, DecodeUTF16(in.b), nil, w)
	case packetRPC:
		calls := parseRPC(r.data)
		for i, k := range calls {
			c.invoke(r.ctx, k, w)
			w.endCall(i == len(calls)-1)
			if w.Err() != nil {
				break
			}
		}
	case packetTransaction:
		w.Error(notSupported("transactions of more than one statement: connect with autocommit"))
	default:
		w.Error(notSupported("bulk loads"))
	}
}

// end finishes a response.
func (c *connection) end(w *Writer) error {
	attention := c.release()
	if err := w.end(attention); err != nil {
		return err
	}
	if w.fatal {
		return errors.New("an error of class 20 or more ended the connection")
	}
	return nil
}

// restart gives the connection a fresh session of the same login, as connection pools ask for.
func (c *connection) restart() *Message {
	c.session.Close()
	c.session, c.prepared = closedSession{}, prepared{}
	session, refusal := c.server.engine.Open(c.login.Login)
	if refusal != nil {
		return refusal
	}
	c.session = session
	return nil
}

// closedSession is the placeholder between two sessions of a connection.
type closedSession struct{ Session }

func (closedSession) Close() {}

// cut ends the connection at once: the client sees a reset.
func (c *connection) cut() {
	c.lose(ErrConnectionLost)
	ports.Cut(c.net)
}

// await limits how long a client may take to log in; zero removes the limit.
func (c *connection) await(limit time.Duration) error {
	var until time.Time
	if limit > 0 {
		until = time.Now().Add(limit)
	}
	return c.net.SetReadDeadline(until)
}
