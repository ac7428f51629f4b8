package ports

import (
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"
)

const acceptPause = 50 * time.Millisecond

// Connections are those of some listeners, each served in its own goroutine, until Close.
type Connections struct {
	mu        sync.Mutex
	listeners []net.Listener
	open      map[net.Conn]bool
	closed    bool
	working   sync.WaitGroup
}

// Accept serves those of one more listener, which it then owns, and closes each when serve returns.
func (c *Connections) Accept(l net.Listener, log *slog.Logger, serve func(net.Conn)) {
	c.mu.Lock()
	c.listeners = append(c.listeners, l)
	c.mu.Unlock()
	c.working.Go(func() {
		for {
			connection, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // such as out of descriptors: connected clients continue, and others may disconnect
				log.Error("accepting a connection", "error", err)
				time.Sleep(acceptPause)
				continue
			}
			c.start(connection, serve)
		}
	})
}

func (c *Connections) start(connection net.Conn, serve func(net.Conn)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		connection.Close() // the client is refused in any case
		return
	}
	if c.open == nil {
		c.open = map[net.Conn]bool{}
	}
	c.open[connection] = true
	c.working.Go(func() {
		serve(connection)
		connection.Close()
		c.mu.Lock()
		delete(c.open, connection)
		c.mu.Unlock()
	})
}

// Close stops listening and cuts every connection at once, as a power failure does: clients see a reset. It does not wait for
// what is being served; Wait does.
func (c *Connections) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, l := range c.listeners {
		l.Close()
	}
	for connection := range c.open {
		Cut(connection)
	}
}

// Wait returns when, after Close, the last connection has been served.
func (c *Connections) Wait() { c.working.Wait() }

// Cut ends a connection at once: the other side sees a reset. Errors mean that it has ended already.
func Cut(connection net.Conn) {
	if tcp, ok := connection.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	connection.Close()
}
