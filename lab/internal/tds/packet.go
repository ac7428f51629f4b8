package tds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Packet types.
const (
	packetBatch       = 0x01
	packetRPC         = 0x03
	packetReply       = 0x04
	packetAttention   = 0x06
	packetBulk        = 0x07
	packetTransaction = 0x0E
	packetLogin7      = 0x10
	packetPrelogin    = 0x12
)

// Status bits of a packet.
const (
	statusEOM       = 0x01
	statusIgnore    = 0x02
	statusReset     = 0x08
	statusResetKeep = 0x10
)

const (
	headerSize        = 8
	defaultPacketSize = 4096
	minPacketSize     = 512
	maxPacketSize     = 32767
)

// errMalformed marks input that violates the protocol: the connection cannot continue.
var errMalformed = errors.New("malformed input")

func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", errMalformed, fmt.Sprintf(format, args...))
}

// message is one request of a client, its packets joined.
type message struct {
	kind   byte
	status byte // of the first packet: reset; of the last: ignore
	data   []byte
}

// packetReader joins packets to messages.
type packetReader struct {
	in    io.Reader
	limit int // bytes of a message
}

// next reads one message. io.EOF means that the client closed between two messages.
func (r *packetReader) next() (message, error) {
	var m message
	var head [headerSize]byte
	for first := true; ; first = false {
		if _, err := io.ReadFull(r.in, head[:]); err != nil {
			if first {
				return m, err
			}
			return m, fmt.Errorf("in the middle of a message: %w", noEOF(err))
		}
		length := int(binary.BigEndian.Uint16(head[2:]))
		switch {
		case first && !knownPacket(head[0]):
			return m, malformed("packet type 0x%02x", head[0])
		case !first && head[0] != m.kind:
			return m, malformed("packet type 0x%02x inside a message of type 0x%02x", head[0], m.kind)
		case length < headerSize || length > maxPacketSize:
			return m, malformed("packet of %d bytes", length)
		case len(m.data)+length-headerSize > r.limit:
			return m, malformed("message of more than %d bytes", r.limit)
		}
		if first {
			m.kind, m.status = head[0], head[1]&(statusReset|statusResetKeep)
		}
		n := len(m.data)
		m.data = append(m.data, make([]byte, length-headerSize)...)
		if _, err := io.ReadFull(r.in, m.data[n:]); err != nil {
			return m, fmt.Errorf("in the middle of a packet: %w", noEOF(err))
		}
		if head[1]&statusEOM != 0 {
			m.status |= head[1] & (statusEOM | statusIgnore)
			return m, nil
		}
	}
}

// noEOF distinguishes a truncated message from an orderly end.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func knownPacket(kind byte) bool {
	switch kind {
	case packetBatch, packetRPC, packetAttention, packetBulk, packetTransaction, packetLogin7, packetPrelogin:
		return true
	}
	return false
}

// packetWriter cuts one message into packets and sends many packets in one write. A slow client blocks it:
// its memory is one buffer.
type packetWriter struct {
	out   io.Writer
	size  int    // bytes of a packet, header included
	spid  uint16 // in every header
	buf   []byte // complete packets
	start int    // of the packet being filled
	pos   int    // next byte
	seq   byte
	sent  bool // bytes of this message already sent
	err   error
}

// writeAhead is how many bytes a response collects before it is sent.
const writeAhead = 128 << 10

func newPacketWriter(out io.Writer, size int, spid uint16) *packetWriter {
	w := &packetWriter{out: out, size: size, spid: spid}
	w.buf = make([]byte, max(1, writeAhead/size)*size)
	w.reset()
	return w
}

// reset begins a message.
func (w *packetWriter) reset() {
	w.start, w.pos, w.seq, w.sent = 0, headerSize, 1, false
}

// write adds bytes to the message; a full packet is closed only when more bytes come, so the last one is never empty.
func (w *packetWriter) write(p []byte) {
	for len(p) > 0 && w.err == nil {
		end := w.start + w.size
		if w.pos == end {
			w.closePacket(0)
			if end == len(w.buf) {
				w.send(end)
				end = 0
			}
			w.start, w.pos = end, end+headerSize
			end += w.size
		}
		n := copy(w.buf[w.pos:end], p)
		w.pos += n
		p = p[n:]
	}
}

// room is how many bytes still fit in the packet being filled.
func (w *packetWriter) room() int { return w.start + w.size - w.pos }

// writeRow adds a row of two parts; it is write without its loop when both fit, which is nearly always the case.
func (w *packetWriter) writeRow(a, b []byte) {
	if len(a)+len(b) <= w.room() {
		w.pos += copy(w.buf[w.pos:], a)
		w.pos += copy(w.buf[w.pos:], b)
		return
	}
	w.write(a)
	w.write(b)
}

// flush sends what is complete: whole packets, and the one being filled as a packet of its own.
func (w *packetWriter) flush() {
	if w.err != nil || w.pos == w.start+headerSize {
		return
	}
	w.closePacket(0)
	w.send(w.pos)
	w.start, w.pos = 0, headerSize
}

// finish ends the message.
func (w *packetWriter) finish() error {
	if w.err == nil {
		w.closePacket(statusEOM)
		w.send(w.pos)
	}
	w.reset()
	return w.err
}

func (w *packetWriter) closePacket(status byte) {
	h := w.buf[w.start : w.start+headerSize]
	h[0], h[1] = packetReply, status
	binary.BigEndian.PutUint16(h[2:], uint16(w.pos-w.start))
	binary.BigEndian.PutUint16(h[4:], w.spid)
	h[6], h[7] = w.seq, 0
	w.seq++
}

func (w *packetWriter) send(n int) {
	_, w.err = w.out.Write(w.buf[:n])
	w.sent = true
}
