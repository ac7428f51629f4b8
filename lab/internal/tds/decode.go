package tds

import (
	"golang.org/x/text/encoding/charmap"

	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
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

// readType reads TYPE_INFO of a parameter.
func readType(in *input) wireType {
	t := wireType{wire: in.u8()}
	switch t.wire {
	case wireGUID, wireIntN, wireBitN, wireFloatN:
		t.size = int(in.u8())
		for kind, k := range kinds {
			if k.wire == t.wire && int(k.size) == t.size {
				t.Kind = Kind(kind)
			}
		}
		if t.Kind == 0 {
			panic(malformed("type 0x%02x of %d bytes", t.wire, t.size))
		}
	case wireDecimalN, wireNumericN:
		t.Kind, t.size, t.Precision, t.Scale = KindDecimal, int(in.u8()), int(in.u8()), int(in.u8())
		if t.Precision < 1 || t.Precision > maxPrecision || t.Scale > t.Precision {
			panic(malformed("decimal(%d,%d)", t.Precision, t.Scale))
		}
	case wireDate:
		t.Kind, t.size = KindDate, 3
	case wireTime, wireDateTime2:
		t.Kind = KindDateTime2
		if t.Scale = int(in.u8()); t.Scale > maxScale {
			panic(malformed("scale %d of a time", t.Scale))
		}
		if t.size = timeBytes(t.Scale); t.wire == wireDateTime2 {
			t.size += 3
		}
	case wireVarChar, wireNVarChar, wireVarBinary, wireNText:
		t.readSize(in)
	default:
		panic(fmt.Errorf("parameters of the type 0x%02x: %w", t.wire, errUnsupported))
	}
	return t
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
func readValue(in *input, t wireType) any {
	switch t.wire {
	case wireVarChar, wireNVarChar, wireVarBinary:
		if t.size == MaxSize {
			return readChunks(in, t)
		}
		if n := in.u16(); n != plpLength {
			return t.decode(in.take(int(n)))
		}
	case wireNText:
		if n := in.u32(); n != math.MaxUint32 {
			return t.decode(in.take(int(n)))
		}
	default:
		n := int(in.u8())
		if n > 0 && n != t.size && t.Kind != KindDecimal {
			panic(malformed("%s of %d bytes", t.Kind, n))
		}
		if n > 0 {
			return t.decode(in.take(n))
		}
	}
	return nil
}

// readChunks reads a value that is sent in chunks.
func readChunks(in *input, t wireType) any {
	total := in.u64()
	if total == plpNull {
		return nil
	}
	var data []byte
	for n := in.u32(); n > 0; n = in.u32() {
		data = append(data, in.take(int(n))...)
	}
	if total != plpUnknown && total != uint64(len(data)) {
		panic(malformed("%d bytes in chunks, %d announced", len(data), total))
	}
	return t.decode(data)
}

// decode converts the bytes of a value.
func (t wireType) decode(b []byte) any {
	switch t.Kind {
	case KindInt8:
		return int64(b[0])
	case KindInt16:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case KindInt32:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	case KindInt64:
		return int64(binary.LittleEndian.Uint64(b))
	case KindBit:
		return b[0] != 0
	case KindFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	case KindDecimal:
		return t.decodeDecimal(b)
	case KindUniqueIdentifier:
		return [16]byte(append([]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6]}, b[8:]...))
	case KindNVarChar:
		if t.wire == wireVarChar {
			text, _ := charmap.Windows1252.NewDecoder().Bytes(b) // every byte is a character
			return string(text)
		}
		return DecodeUTF16(b)
	case KindVarBinary:
		return append([]byte{}, b...)
	case KindDate:
		return decodeDate(b)
	}
	var whole [8]byte
	n := copy(whole[:], b[:timeBytes(t.Scale)])
	day := epochDate
	if t.wire == wireDateTime2 {
		day = decodeDate(b[n:])
	}
	return day.Add(time.Duration(int64(binary.LittleEndian.Uint64(whole[:])) * powersOfTen[9-t.Scale]))
}

func (t wireType) decodeDecimal(b []byte) any {
	if len(b) < 2 || len(b) > 17 {
		panic(malformed("decimal of %d bytes", len(b)))
	}
	number := slices.Clone(b[1:])
	slices.Reverse(number)
	n := new(big.Int).SetBytes(number)
	if b[0] == 0 {
		n.Neg(n)
	}
	return Decimal{Unscaled: n, Scale: t.Scale}
}

func decodeDate(b []byte) time.Time {
	return epochDate.AddDate(0, 0, int(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16))
}

// input reads a message sequentially. A read beyond its end panics: the message is malformed.
type input struct{ b []byte }

// take is the next n bytes, not copied.
func (in *input) take(n int) []byte {
	if n < 0 || n > len(in.b) {
		panic(malformed("%d bytes wanted, %d left", n, len(in.b)))
	}
	out := in.b[:n:n]
	in.b = in.b[n:]
	return out
}

func (in *input) u8() byte    { return in.take(1)[0] }
func (in *input) u16() uint16 { return binary.LittleEndian.Uint16(in.take(2)) }
func (in *input) u32() uint32 { return binary.LittleEndian.Uint32(in.take(4)) }
func (in *input) u64() uint64 { return binary.LittleEndian.Uint64(in.take(8)) }

// text is n UTF-16 units.
func (in *input) text(n int) string { return DecodeUTF16(in.take(2 * n)) }

// more tells whether bytes are left to read.
func (in *input) more() bool { return len(in.b) > 0 }

// allHeaders skips the ALL_HEADERS block that begins batches, calls and transaction requests.
func (in *input) allHeaders() { in.take(int(in.u32()) - 4) }

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
	var units [2]uint16
	for _, r := range s {
		for _, unit := range utf16.AppendRune(units[:0], r) {
			dst = binary.LittleEndian.AppendUint16(dst, unit)
		}
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
		n += utf16.RuneLen(r)
	}
	return n
}

// clip shortens s to at most units UTF-16 units, between two characters.
func clip(s string, units int) string {
	n := 0
	for i, r := range s {
		if n += utf16.RuneLen(r); n > units {
			return s[:i]
		}
	}
	return s
}

// collation is SQL_Latin1_General_CP1_CI_AS, the default of a US installation: LCID 0x0409, code page 1252.
var collation = [5]byte{0x09, 0x04, 0xD0, 0x00, 0x34}
