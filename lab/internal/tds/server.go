package tds

import (
	"context"
	"crypto/tls"
	"log/slog"
	"math"
	"net"
	"sync/atomic"
	"time"

	"vnuma.dev/lab/internal/ports"
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
	clients ports.Connections
	engine  Engine
	options Options
	ctx     context.Context
	stop    context.CancelCauseFunc
	served  atomic.Uint32 // connections so far
}

// Serve accepts connections on some ports, each in its own goroutine, until Close. It then owns the listeners.
func Serve(listeners []net.Listener, engine Engine, options Options) *Server {
	s := &Server{engine: engine, options: options.withDefaults()}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	for _, l := range listeners {
		s.clients.Accept(l, s.options.Log, s.serve)
	}
	return s
}

func (s *Server) serve(conn net.Conn) {
	spid := firstSPID + uint16((s.served.Add(1)-1)%(math.MaxUint16-firstSPID+1))
	c := &connection{server: s, net: conn, wire: conn, spid: spid}
	c.log = s.options.Log.With("spid", c.spid, "client", conn.RemoteAddr().String())
	c.out = newPacketWriter(conn, defaultPacketSize, c.spid)
	c.ctx, c.lose = context.WithCancelCause(s.ctx)
	if err := c.await(s.options.LoginTimeout); err != nil {
		c.log.Debug("a login without time limit", "error", err)
	}
	c.serve()
}

// Close stops listening and cuts every connection at once. It does not wait for running requests, whose contexts end; Wait
// does.
func (s *Server) Close() {
	s.stop(ErrConnectionLost)
	s.clients.Close()
}

// Wait returns when, after Close, the last session has been closed.
func (s *Server) Wait() { s.clients.Wait() }
