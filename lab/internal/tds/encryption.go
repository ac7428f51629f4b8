package tds

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// recordHandshake is the first byte of a TLS connection: a client of TDS 8 begins with it.
const recordHandshake = 0x16

// greet starts reading. A client that starts with TLS uses TDS 8: everything is encrypted from the first byte.
func (c *connection) greet() error {
	begun := bufio.NewReaderSize(c.net, defaultPacketSize)
	c.in = &packetReader{in: begun, limit: c.server.options.MaxMessage}
	first, err := begun.Peek(1)
	if err != nil || first[0] != recordHandshake || c.server.options.Certificate == nil {
		return err
	}
	config := c.tlsConfig()
	config.NextProtos = []string{"tds/8.0"}
	return c.encrypt(tls.Server(&readAhead{c.net, begun}, config))
}

// secure performs the handshake after PRELOGIN. Its messages are sent inside TDS packets, later ones are not.
func (c *connection) secure() error {
	inside := &handshakePackets{Conn: c.net}
	config := c.tlsConfig()
	config.MaxVersion = tls.VersionTLS12 // SQL Server supports 1.3 only in TDS 8
	if err := c.encrypt(tls.Server(inside, config)); err != nil {
		return err
	}
	inside.done = true
	return nil
}

func (c *connection) tlsConfig() *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{*c.server.options.Certificate}, MinVersion: tls.VersionTLS12}
}

func (c *connection) encrypt(secured *tls.Conn) error {
	if err := secured.Handshake(); err != nil {
		return fmt.Errorf("TLS handshake: %w", err)
	}
	c.secured = true
	c.speakOver(secured)
	return nil
}

// unsecure continues without encryption, as both sides do after a login that alone was encrypted.
func (c *connection) unsecure() {
	c.secured = false
	c.speakOver(c.net)
}

func (c *connection) speakOver(wire net.Conn) {
	c.wire, c.in.in, c.out.out = wire, bufio.NewReaderSize(wire, defaultPacketSize), wire
}

// readAhead is a connection whose first bytes have been read already.
type readAhead struct {
	net.Conn
	in *bufio.Reader
}

func (r *readAhead) Read(p []byte) (int, error) { return r.in.Read(p) }

// handshakePackets carries TLS records inside packets of type PRELOGIN until done.
type handshakePackets struct {
	net.Conn
	left int // unread bytes of the last packet
	done bool
}

func (h *handshakePackets) Read(p []byte) (int, error) {
	if h.done {
		return h.Conn.Read(p)
	}
	for h.left == 0 {
		var head [headerSize]byte
		if _, err := io.ReadFull(h.Conn, head[:]); err != nil {
			return 0, err
		}
		if head[0] != packetPrelogin {
			return 0, malformed("packet type 0x%02x in the TLS handshake", head[0])
		}
		h.left = max(0, int(binary.BigEndian.Uint16(head[2:]))-headerSize)
	}
	n, err := h.Conn.Read(p[:min(len(p), h.left)])
	h.left -= n
	return n, err
}

func (h *handshakePackets) Write(p []byte) (int, error) {
	if h.done {
		return h.Conn.Write(p)
	}
	var packets []byte
	for rest := p; len(rest) > 0; {
		part := rest[:min(len(rest), defaultPacketSize-headerSize)]
		rest = rest[len(part):]
		head := [headerSize]byte{packetPrelogin, 0, 0, 0, 0, 0, 1}
		if len(rest) == 0 {
			head[1] = statusEOM
		}
		binary.BigEndian.PutUint16(head[2:], uint16(headerSize+len(part)))
		packets = append(append(packets, head[:]...), part...)
	}
	if _, err := h.Conn.Write(packets); err != nil {
		return 0, err
	}
	return len(p), nil
}
