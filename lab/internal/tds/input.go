package tds

import (
	"encoding/binary"
	"unicode/utf16"
)

// input reads a message sequentially. The first read beyond its end sets err; later reads return zeros, so
// a parser checks err once, and must check it before it trusts a length.
type input struct {
	b   []byte
	err error
}

// take is the next n bytes, not copied.
func (in *input) take(n int) []byte {
	if in.err == nil && (n < 0 || n > len(in.b)) {
		in.err = malformed("%d bytes wanted, %d left", n, len(in.b))
	}
	if in.err != nil {
		return nil
	}
	out := in.b[:n:n]
	in.b = in.b[n:]
	return out
}

func (in *input) u8() byte {
	if b := in.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (in *input) u16() uint16 {
	if b := in.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (in *input) u32() uint32 {
	if b := in.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (in *input) u64() uint64 {
	if b := in.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// text is n UTF-16 units.
func (in *input) text(n int) string { return DecodeUTF16(in.take(2 * n)) }

// more tells whether bytes are left to read.
func (in *input) more() bool { return in.err == nil && len(in.b) > 0 }

// allHeaders skips the ALL_HEADERS block that begins batches, calls and transaction requests.
func (in *input) allHeaders() {
	total := in.u32()
	if in.err == nil && (total < 4 || int64(total)-4 > int64(len(in.b))) {
		in.err = malformed("headers of %d bytes before %d", total, len(in.b))
		return
	}
	in.take(int(total) - 4)
}

// DecodeUTF16 decodes UTF-16LE; an odd last byte is ignored, a lone surrogate becomes U+FFFD.
func DecodeUTF16(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return string(utf16.Decode(units))
}

// AppendUTF16 adds s as UTF-16LE.
func AppendUTF16(dst []byte, s string) []byte {
	for _, r := range s {
		if r < 0x10000 {
			dst = append(dst, byte(r), byte(r>>8))
			continue
		}
		hi, lo := utf16.EncodeRune(r)
		dst = append(dst, byte(hi), byte(hi>>8), byte(lo), byte(lo>>8))
	}
	return dst
}

// CutUTF16 is a text from one UTF-16 unit up to another, exclusive; half of a character becomes U+FFFD.
func CutUTF16(s string, from, to int) string {
	units := utf16.Encode([]rune(s))
	return string(utf16.Decode(units[from:min(to, len(units))]))
}

// LenUTF16 is the number of UTF-16 units of s.
func LenUTF16(s string) int {
	n := 0
	for _, r := range s {
		n++
		if r >= 0x10000 {
			n++
		}
	}
	return n
}

// clip shortens s to at most units UTF-16 units, between two characters.
func clip(s string, units int) string {
	n := 0
	for i, r := range s {
		w := 1
		if r >= 0x10000 {
			w = 2
		}
		if n += w; n > units {
			return s[:i]
		}
	}
	return s
}
