package tds

import (
	"golang.org/x/text/encoding/charmap"

	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"
	"unicode/utf16"
)

// errUnsupported marks a valid request for something that this server does not implement.
var errUnsupported = errors.New("not supported")

// wireType is TYPE_INFO as received. Its Type is that of the value it is decoded to: text is Unicode, a time of day has a date.
type wireType struct {
	Type
	wire byte
	size int // bytes, as sent
}

// kindsOfWidth are the kinds of types with a length byte, by that length.
var kindsOfWidth = map[[2]int]Kind{
	{wireGUID, 16}: KindUniqueIdentifier, {wireBitN, 1}: KindBit, {wireFloatN, 8}: KindFloat,
	{wireIntN, 1}: KindInt8, {wireIntN, 2}: KindInt16, {wireIntN, 4}: KindInt32, {wireIntN, 8}: KindInt64,
}

// readType reads TYPE_INFO of a parameter.
func readType(in *input) (wireType, error) {
	t := wireType{wire: in.u8()}
	switch t.wire {
	case wireGUID, wireIntN, wireBitN, wireFloatN:
		t.size = int(in.u8())
		t.Kind = kindsOfWidth[[2]int{int(t.wire), t.size}]
		if in.err == nil && t.Kind == 0 {
			return t, malformed("type 0x%02x of %d bytes", t.wire, t.size)
		}
	case wireDecimalN, wireNumericN:
		t.size, t.Precision, t.Scale = int(in.u8()), int(in.u8()), int(in.u8())
		t.Kind = KindDecimal
		if in.err == nil && checkType(t.Type) != nil {
			return t, malformed("decimal(%d,%d)", t.Precision, t.Scale)
		}
	case wireDate:
		t.Kind = KindDate
	case wireTime, wireDateTime2:
		t.Kind = KindDateTime2
		if t.Scale = int(in.u8()); t.Scale > maxScale {
			return t, malformed("scale %d of a time", t.Scale)
		}
	case wireVarChar, wireNVarChar, wireVarBinary, wireNText:
		t.readSize(in)
	default:
		if in.err == nil {
			return t, fmt.Errorf("parameters of the type 0x%02x: %w", t.wire, errUnsupported)
		}
	}
	return t, in.err
}

// readSize reads TYPE_INFO of the character and binary types.
func (t *wireType) readSize(in *input) {
	t.size = MaxSize
	if t.wire == wireNText {
		in.u32()
	} else if n := int(in.u16()); n != plpLength {
		t.size = n
	}
	t.Kind, t.Size = KindNVarChar, t.size
	if t.wire == wireVarBinary {
		t.Kind = KindVarBinary
		return
	}
	in.take(len(collation))
	if t.wire == wireNVarChar && t.size > 0 {
		t.Size = t.size / 2
	}
}

// readValue reads one value of a type, nil for NULL.
func readValue(in *input, t wireType) (any, error) {
	data, null := readBytes(in, t)
	if in.err != nil || null {
		return nil, in.err
	}
	return t.decode(data)
}

// readBytes takes the bytes of one value.
func readBytes(in *input, t wireType) (data []byte, null bool) {
	switch t.wire {
	case wireVarChar, wireNVarChar, wireVarBinary:
		if t.size == MaxSize {
			return readChunks(in)
		}
		n := in.u16()
		if n == plpLength {
			return nil, true
		}
		return in.take(int(n)), false
	case wireNText:
		n := in.u32()
		if n == math.MaxUint32 {
			return nil, true
		}
		return in.take(int(n)), false
	}
	n := in.u8()
	if n == 0 {
		return nil, true
	}
	return in.take(int(n)), false
}

// readChunks takes a value that is sent in chunks.
func readChunks(in *input) (data []byte, null bool) {
	total := in.u64()
	if total == plpNull {
		return nil, true
	}
	data = []byte{}
	for in.err == nil {
		n := in.u32()
		if n == 0 {
			break
		}
		data = append(data, in.take(int(n))...)
	}
	if in.err == nil && total != plpUnknown && total != uint64(len(data)) {
		in.err = malformed("%d bytes in chunks, %d announced", len(data), total)
	}
	return data, false
}

// decode converts the bytes of a value.
func (t wireType) decode(b []byte) (any, error) {
	if want := t.width(); want > 0 && len(b) != want {
		return nil, malformed("%s of %d bytes", t.Kind, len(b))
	}
	switch t.Kind {
	case KindInt8:
		return int64(b[0]), nil
	case KindInt16:
		return int64(int16(binary.LittleEndian.Uint16(b))), nil
	case KindInt32:
		return int64(int32(binary.LittleEndian.Uint32(b))), nil
	case KindInt64:
		return int64(binary.LittleEndian.Uint64(b)), nil
	case KindBit:
		return b[0] != 0, nil
	case KindFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case KindDecimal:
		return t.decodeDecimal(b)
	case KindUniqueIdentifier:
		g := [16]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6]}
		copy(g[8:], b[8:])
		return g, nil
	case KindNVarChar:
		if t.wire == wireVarChar {
			return decode1252(b), nil
		}
		return DecodeUTF16(b), nil
	case KindVarBinary:
		return append([]byte{}, b...), nil
	case KindDate:
		return decodeDate(b), nil
	}
	n := timeBytes(t.Scale)
	day := epochDate
	if t.wire == wireDateTime2 {
		day = decodeDate(b[n:])
	}
	return day.Add(decodeTime(b[:n], t.Scale)), nil
}

// width is how many bytes a value has, 0 if that varies.
func (t wireType) width() int {
	switch t.wire {
	case wireDate:
		return 3
	case wireTime:
		return timeBytes(t.Scale)
	case wireDateTime2:
		return timeBytes(t.Scale) + 3
	case wireGUID, wireIntN, wireBitN, wireFloatN:
		return t.size
	}
	return 0
}

func (t wireType) decodeDecimal(b []byte) (any, error) {
	if len(b) < 2 || len(b) > 17 {
		return nil, malformed("decimal of %d bytes", len(b))
	}
	var big16 [16]byte
	for i, c := range b[1:] {
		big16[15-i] = c
	}
	n := new(big.Int).SetBytes(big16[:])
	if b[0] == 0 {
		n.Neg(n)
	}
	return Decimal{Unscaled: n, Scale: t.Scale}, nil
}

// decodeDate and decodeTime take exactly the bytes of their value.
func decodeDate(b []byte) time.Time {
	return epochDate.AddDate(0, 0, int(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16))
}

func decodeTime(b []byte, scale int) time.Duration {
	var whole [8]byte
	copy(whole[:], b)
	return time.Duration(int64(binary.LittleEndian.Uint64(whole[:])) * powersOfTen[9-scale])
}

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

// collation is SQL_Latin1_General_CP1_CI_AS, the default of a US installation: LCID 0x0409, code page 1252.
var collation = [5]byte{0x09, 0x04, 0xD0, 0x00, 0x34}

// decode1252 reads text of code page 1252.
func decode1252(b []byte) string {
	text, _ := charmap.Windows1252.NewDecoder().Bytes(b) // every byte is a character
	return string(text)
}
