package tds

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Options of a server. The zero value is usable.
type Options struct {
	ServerName    string        // @@SERVERNAME in messages; "SQL" when empty
	Version       string        // product version, "16.0.4135.4" when empty
	Log           *slog.Logger  // discarded when nil
	DropAfterRows int64         // default of Writer.DropAfter, 0 = never
	MaxMessage    int           // bytes of one request, 64 MiB when 0
	LoginTimeout  time.Duration // from connecting to login, 30 s when 0
	// Certificate encrypts sessions, or their logins alone, as clients ask for it; nil = no encryption.
	Certificate *tls.Certificate
	// Keytab names the file with the keys of this server's SPNs, read at each login by ticket; "" = no such logins.
	Keytab string
}

const (
	defaultMaxMessage   = 64 << 20
	defaultLoginTimeout = 30 * time.Second
	firstSPID           = 51 // SQL Server reserves the lower numbers for itself
	acceptPause         = 50 * time.Millisecond
)

func (o Options) withDefaults() Options {
	if o.ServerName == "" {
		o.ServerName = "SQL"
	}
	if o.Version == "" {
		o.Version = "16.0.4135.4"
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.MaxMessage == 0 {
		o.MaxMessage = defaultMaxMessage
	}
	if o.LoginTimeout == 0 {
		o.LoginTimeout = defaultLoginTimeout
	}
	return o
}

// Server accepts connections until Close.
type Server struct {
	listeners []net.Listener
	engine    Engine
	options   Options

	ctx   context.Context
	stop  context.CancelCauseFunc
	ended sync.WaitGroup

	mu          sync.Mutex
	closed      bool
	connections map[*connection]struct{}
	nextSPID    uint16
}

// Serve accepts connections on some ports, each in its own goroutine, until Close. It then owns the listeners.
func Serve(listeners []net.Listener, engine Engine, options Options) *Server {
	s := &Server{listeners: listeners, engine: engine, options: options.withDefaults(),
		connections: map[*connection]struct{}{}, nextSPID: firstSPID}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	for _, l := range listeners {
		s.ended.Go(func() { s.acceptAll(l) })
	}
	return s
}

func (s *Server) acceptAll(l net.Listener) {
	for {
		conn, err := l.Accept()
		switch {
		case err == nil:
			s.start(conn)
		case errors.Is(err, net.ErrClosed) || s.ctx.Err() != nil:
			return
		default:
			// Such as out of descriptors: connected clients continue, and others may disconnect.
			s.options.Log.Error("accepting a connection", "error", err)
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(acceptPause):
			}
		}
	}
}

func (s *Server) start(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = conn.Close() // the client is refused in any case
		return
	}
	c := &connection{server: s, net: conn, wire: conn, spid: s.nextSPID}
	if s.nextSPID++; s.nextSPID < firstSPID {
		s.nextSPID = firstSPID
	}
	c.log = s.options.Log.With("spid", c.spid, "client", conn.RemoteAddr().String())
	c.out = newPacketWriter(conn, defaultPacketSize, c.spid)
	c.ctx, c.lose = context.WithCancelCause(s.ctx)
	if err := c.await(s.options.LoginTimeout); err != nil {
		c.log.Debug("a login without time limit", "error", err)
	}
	s.connections[c] = struct{}{}
	s.ended.Go(func() {
		c.serve()
		s.mu.Lock()
		delete(s.connections, c)
		s.mu.Unlock()
	})
}

// Close stops listening and cuts every connection at once, as a power failure does: clients see a reset. It does
// not wait for running requests, whose contexts end; Wait does.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.stop(ErrConnectionLost)
	for _, l := range s.listeners {
		if err := l.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			s.options.Log.Error("closing the listener", "error", err)
		}
	}
	for c := range s.connections {
		c.cut()
	}
}

// Wait returns when, after Close, the last session has been closed.
func (s *Server) Wait() { s.ended.Wait() }
