package tds

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"testing/iotest"
)

// packets cuts data into packets of a kind with at most body bytes each.
func packets(kind byte, data []byte, body int) []byte {
	var out []byte
	for n := byte(1); ; n++ {
		part := data[:min(body, len(data))]
		data = data[len(part):]
		status := byte(0)
		if len(data) == 0 {
			status = statusEOM
		}
		out = append(out, kind, status, byte((len(part)+8)>>8), byte(len(part)+8), 0, 0, n, 0)
		out = append(out, part...)
		if len(data) == 0 {
			return out
		}
	}
}

// A message is complete however it is split into packets and however the network splits those.
func TestMessagesAcrossPackets(t *testing.T) {
	data := make([]byte, 1000)
	for i := range data {
		data[i] = byte(i * 7)
	}
	for _, size := range []int{1, 99, 100, 499, 500, 999, 1000, 1001} {
		stream := append(packets(packetBatch, data, size), packets(packetRPC, data[:3], 2)...)
		for name, in := range map[string]io.Reader{
			"whole": bytes.NewReader(stream), "byte by byte": iotest.OneByteReader(bytes.NewReader(stream)),
		} {
			r := &packetReader{in: in, limit: 1 << 20}
			first, err := r.next()
			if err != nil || first.kind != packetBatch || !bytes.Equal(first.data, data) {
				t.Fatalf("size %d, %s: kind %d, %d bytes, %v", size, name, first.kind, len(first.data), err)
			}
			second, err := r.next()
			if err != nil || second.kind != packetRPC || !bytes.Equal(second.data, data[:3]) {
				t.Fatalf("size %d, %s: second message %+v, %v", size, name, second, err)
			}
			if _, err := r.next(); !errors.Is(err, io.EOF) {
				t.Errorf("size %d, %s: end is %v", size, name, err)
			}
		}
	}
}

// Packets that violate the protocol are refused, and so is a message above the limit.
func TestMalformedPackets(t *testing.T) {
	for name, stream := range map[string][]byte{
		"unknown type": {0x55, 1, 0, 8, 0, 0, 1, 0}, "TLS": {0x16, 3, 1, 2, 0, 1, 0, 1}, "short length": {1, 1, 0, 7, 0, 0, 1, 0},
		"long length":       {1, 1, 0x80, 0, 0, 0, 1, 0},
		"two types":         append(packets(packetBatch, make([]byte, 20), 10)[:18], packets(packetRPC, nil, 10)...),
		"beyond the limit":  packets(packetBatch, make([]byte, 101), 60),
		"reply of a server": packets(packetReply, nil, 10),
	} {
		r := &packetReader{in: bytes.NewReader(stream), limit: 100}
		if _, err := r.next(); !errors.Is(err, errMalformed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message truncated by the network is a separate error, not an orderly end.
func TestCutMessages(t *testing.T) {
	stream := packets(packetBatch, make([]byte, 20), 10)
	for n := 1; n < len(stream); n++ {
		r := &packetReader{in: bytes.NewReader(stream[:n]), limit: 100}
		_, err := r.next()
		if err == nil || errors.Is(err, io.EOF) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
	}
}

// unpack joins packets and checks every header: type, status, length, number.
func unpack(t *testing.T, stream []byte, size int) []byte {
	t.Helper()
	var data []byte
	for n := byte(1); len(stream) > 0; n++ {
		length := int(binary.BigEndian.Uint16(stream[2:]))
		last := length == len(stream)
		if stream[0] != packetReply || stream[6] != n || binary.BigEndian.Uint16(stream[4:]) != 57 {
			t.Fatalf("packet %d: header %x", n, stream[:8])
		}
		if (stream[1] == statusEOM) != last || length > size || length == headerSize && !last {
			t.Fatalf("packet %d: status %d, %d of %d bytes", n, stream[1], length, len(stream))
		}
		if !last && length != size {
			t.Fatalf("packet %d of %d bytes is not full", n, length)
		}
		data = append(data, stream[headerSize:length]...)
		stream = stream[length:]
	}
	return data
}

// Responses are split at the packet size, whatever the pieces; the last packet has the end-of-message flag.
func TestResponsesInPackets(t *testing.T) {
	const size = minPacketSize
	body := size - headerSize
	for _, total := range []int{0, 1, body - 1, body, body + 1, 2 * body, 300*body - 1, 300 * body, 300*body + 1} {
		for _, piece := range []int{1, 13, body, 5000} {
			var out bytes.Buffer
			w := newPacketWriter(&out, size, 57)
			data := make([]byte, total)
			for i := range data {
				data[i] = byte(i * 31)
			}
			for rest := data; len(rest) > 0; {
				n := min(piece, len(rest))
				w.writeRow(rest[:n/2], rest[n/2:n])
				rest = rest[n:]
			}
			if err := w.finish(); err != nil {
				t.Fatal(err)
			}
			if got := unpack(t, out.Bytes(), size); !bytes.Equal(got, data) {
				t.Fatalf("%d bytes in pieces of %d came back changed", total, piece)
			}
		}
	}
}

// After a failed write nothing more is written, and the failure is reported.
func TestFailedWrites(t *testing.T) {
	gone := errors.New("gone")
	w := newPacketWriter(failing{gone}, minPacketSize, 57)
	for range 3 * writeAhead / 100 {
		w.writeRow(make([]byte, 50), make([]byte, 50))
	}
	if err := w.finish(); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
