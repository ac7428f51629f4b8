package tds

import (
	"bytes"
	"errors"
	"testing"
)

// Any bytes are read as messages within the limit, or refused.
func FuzzPacket(f *testing.F) {
	f.Add(packets(packetBatch, []byte("some text"), 4))
	f.Add(packets(packetRPC, nil, 4))
	f.Add([]byte{packetAttention, statusEOM, 0, 8, 0, 0, 1, 0})
	f.Add([]byte{packetBatch, 0, 0xFF, 0xFF})
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1000
		r := &packetReader{in: bytes.NewReader(stream), limit: limit}
		for read := 0; ; {
			m, err := r.next()
			if err != nil {
				return
			}
			if read += len(m.data) + headerSize; read > len(stream) || len(m.data) > limit {
				t.Fatalf("%d bytes out of %d", read, len(stream))
			}
		}
	})
}

// Any bytes are a login, or refused.
func FuzzLogin7(f *testing.F) {
	f.Add(unhex(f, freetdsLogin))
	f.Add(make([]byte, loginFixed))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := tried(func() loginRequest { return parseLogin7(b) })
		if err != nil && !errors.Is(err, errMalformed) {
			t.Fatal(err)
		}
		if err == nil && (r.packetSize < minPacketSize || r.packetSize > maxPacketSize) {
			t.Fatalf("packets of %d bytes", r.packetSize)
		}
		if _, err := tried(func() map[byte][]byte { return parsePrelogin(b) }); err != nil && !errors.Is(err, errMalformed) {
			t.Fatal(err)
		}
	})
}

// Any bytes are calls, or refused; the parameters of a call can be sent back as they came.
func FuzzRPC(f *testing.F) {
	f.Add(unhex(f, msodbcsqlPrepExec))
	f.Add(unhex(f, freetdsPrepExec))
	f.Add(append(rpc(procExecuteSQL), rpcBatch))
	for _, c := range valueCases {
		f.Add(param(rpc(procExecuteSQL), Param{Name: "@p", Type: c.typ, Value: c.value}))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		calls, err := tried(func() []call { return parseRPC(b) })
		if err != nil {
			if !errors.Is(err, errMalformed) && !errors.Is(err, errUnsupported) {
				t.Fatal(err)
			}
			return
		}
		for _, c := range calls {
			for _, p := range c.params {
				// A value may be too long for the type that came with it; that is an error of noValue, no other panic.
				_, _ = tried(func() []byte { return appendValue(nil, p.Type, p.Value) })
			}
		}
	})
}
