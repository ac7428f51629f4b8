package tds

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"time"
)

// errUnsupported marks a request that is well formed but asks for what this server does not do.
var errUnsupported = errors.New("not supported")

// wireType is TYPE_INFO as received.
type wireType struct {
	Type
	wire byte
	size int  // bytes, as sent
	utf8 bool // of char and varchar: the collation says UTF-8 rather than code page 1252
}

// fixedTypes have neither lengths nor NULL.
var fixedTypes = map[byte]struct {
	kind Kind
	size int
}{
	wireNull: {KindNVarChar, 0}, wireInt8: {KindInt8, 1}, wireBit: {KindBit, 1}, wireInt16: {KindInt16, 2},
	wireInt32: {KindInt32, 4}, wireInt64: {KindInt64, 8}, wireDateTime4: {KindDateTime, 4},
	wireFloat4: {KindReal, 4}, wireFloat8: {KindFloat, 8}, wireMoney: {KindMoney, 8}, wireMoney4: {KindMoney, 4},
	wireDateTime: {KindDateTime, 8},
}

// readType reads TYPE_INFO.
func readType(in *input) (wireType, error) {
	t := wireType{wire: in.u8()}
	if f, ok := fixedTypes[t.wire]; ok {
		t.Kind, t.size = f.kind, f.size
		return t, in.err
	}
	switch t.wire {
	case wireGUID, wireIntN, wireBitN, wireFloatN, wireMoneyN, wireDateTimeN:
		t.size = int(in.u8())
		t.Kind = kindOfWidth(t.wire, t.size)
		if in.err == nil && t.Kind == 0 {
			return t, malformed("type 0x%02x of %d bytes", t.wire, t.size)
		}
	case wireDecimalN, wireNumericN, wireDecimalOld, wireNumericOld:
		t.size, t.Precision, t.Scale = int(in.u8()), int(in.u8()), int(in.u8())
		t.Kind = KindDecimal
		if in.err == nil && checkType(t.Type) != nil {
			return t, malformed("decimal(%d,%d)", t.Precision, t.Scale)
		}
	case wireDate:
		t.Kind = KindDate
	case wireTime, wireDateTime2, wireDateTimeOffset:
		t.Kind = map[byte]Kind{wireTime: KindTime, wireDateTime2: KindDateTime2, wireDateTimeOffset: KindDateTimeOffset}[t.wire]
		if t.Scale = int(in.u8()); t.Scale > maxScale {
			return t, malformed("scale %d of a time", t.Scale)
		}
	default:
		return readSizedType(in, t)
	}
	return t, in.err
}

// kindsOfWidth are the kinds that types with a length byte mean, by that length.
var kindsOfWidth = map[[2]int]Kind{
	{wireGUID, 16}: KindUniqueIdentifier, {wireBitN, 1}: KindBit,
	{wireIntN, 1}: KindInt8, {wireIntN, 2}: KindInt16, {wireIntN, 4}: KindInt32, {wireIntN, 8}: KindInt64,
	{wireFloatN, 4}: KindReal, {wireFloatN, 8}: KindFloat,
	{wireMoneyN, 4}: KindMoney, {wireMoneyN, 8}: KindMoney,
	{wireDateTimeN, 4}: KindDateTime, {wireDateTimeN, 8}: KindDateTime,
}

// kindOfWidth is the kind that such a type means; 0 when there is none.
func kindOfWidth(wire byte, size int) Kind { return kindsOfWidth[[2]int{int(wire), size}] }

// readSizedType reads TYPE_INFO of the character and binary types.
func readSizedType(in *input, t wireType) (wireType, error) {
	characters := false
	switch t.wire {
	case wireVarCharOld, wireCharOld, wireVarBinaryOld, wireBinaryOld:
		t.size = int(in.u8())
	case wireVarChar, wireChar, wireNVarChar, wireNChar:
		t.size, characters = int(in.u16()), true
	case wireVarBinary, wireBinary:
		t.size = int(in.u16())
	case wireText, wireNText:
		t.size, characters = MaxSize, true
		in.u32()
	case wireImage:
		t.size = MaxSize
		in.u32()
	case wireXML:
		if in.u8() != 0 {
			return t, fmt.Errorf("xml with a schema collection: %w", errUnsupported)
		}
		t.size = plpLength
	case wireVariant, wireUDT, wireTable:
		return t, fmt.Errorf("sql_variant, user-defined and table-valued parameters: %w", errUnsupported)
	default:
		if in.err == nil {
			in.err = malformed("data type 0x%02x", t.wire)
		}
		return t, in.err
	}
	if characters {
		if c := in.take(len(collation)); c != nil {
			t.utf8 = c[3]&collationUTF8 != 0
		}
	}
	t.describeSize()
	return t, in.err
}

// describeSize sets Kind and Size of the character and binary types.
func (t *wireType) describeSize() {
	t.Size = t.size
	switch t.wire {
	case wireVarCharOld, wireVarChar, wireText:
		t.Kind = KindVarChar
	case wireCharOld, wireChar:
		t.Kind = KindChar
	case wireVarBinaryOld, wireVarBinary, wireImage:
		t.Kind = KindVarBinary
	case wireBinaryOld, wireBinary:
		t.Kind = KindBinary
	case wireNVarChar, wireNText:
		t.Kind, t.Size = KindNVarChar, t.size/2
	case wireNChar:
		t.Kind, t.Size = KindNChar, t.size/2
	case wireXML:
		t.Kind, t.Size = KindXML, 0
		return
	}
	if t.size == plpLength || t.size == MaxSize {
		t.Size = MaxSize
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
	if f, ok := fixedTypes[t.wire]; ok {
		return in.take(f.size), t.wire == wireNull
	}
	switch t.wire {
	case wireVarChar, wireChar, wireNVarChar, wireNChar, wireVarBinary, wireBinary, wireXML:
		if t.size == plpLength {
			return readChunks(in)
		}
		n := in.u16()
		if n == plpLength {
			return nil, true
		}
		return in.take(int(n)), false
	case wireText, wireNText, wireImage:
		n := in.u32()
		if n == math.MaxUint32 {
			return nil, true
		}
		return in.take(int(n)), false
	}
	n := in.u8()
	if n == 0 {
		// An empty value of the old character types has no form of its own: SQL Server reads it as NULL too.
		return nil, true
	}
	return in.take(int(n)), false
}

// readChunks takes a value that comes in chunks.
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

// decode makes a value of its bytes.
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
	case KindReal:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))), nil
	case KindFloat:
		return math.Float64frombits(binary.LittleEndian.Uint64(b)), nil
	case KindDecimal:
		return t.decodeDecimal(b)
	case KindMoney:
		if len(b) == 4 {
			return Money(int32(binary.LittleEndian.Uint32(b))), nil
		}
		return Money(int64(int32(binary.LittleEndian.Uint32(b)))<<32 | int64(binary.LittleEndian.Uint32(b[4:]))), nil
	case KindUniqueIdentifier:
		g := [16]byte{b[3], b[2], b[1], b[0], b[5], b[4], b[7], b[6]}
		copy(g[8:], b[8:])
		return g, nil
	case KindChar, KindVarChar:
		if t.utf8 {
			return string(b), nil
		}
		return decode1252(b), nil
	case KindNChar, KindNVarChar, KindXML:
		return utf16Text(b), nil
	case KindBinary, KindVarBinary:
		return append([]byte{}, b...), nil
	}
	return t.decodeMoment(b), nil
}

// width is how many bytes a value has, 0 when that varies.
func (t wireType) width() int {
	switch t.Kind {
	case KindDate:
		return 3
	case KindTime:
		return timeBytes(t.Scale)
	case KindDateTime2:
		return timeBytes(t.Scale) + 3
	case KindDateTimeOffset:
		return timeBytes(t.Scale) + 5
	case KindDecimal, KindChar, KindVarChar, KindNChar, KindNVarChar, KindBinary, KindVarBinary, KindXML:
		return 0
	}
	return t.size
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

func (t wireType) decodeMoment(b []byte) time.Time {
	n := timeBytes(t.Scale)
	switch t.Kind {
	case KindDate:
		return decodeDate(b)
	case KindTime:
		return epochDate.Add(decodeTime(b, t.Scale))
	case KindDateTime2:
		return decodeDate(b[n:]).Add(decodeTime(b[:n], t.Scale))
	case KindDateTimeOffset:
		minutes := int(int16(binary.LittleEndian.Uint16(b[n+3:])))
		utc := decodeDate(b[n : n+3]).Add(decodeTime(b[:n], t.Scale))
		return utc.In(time.FixedZone("", minutes*60))
	}
	if len(b) == 4 {
		return decodeSmallDateTime(b)
	}
	return decodeDateTime(b)
}
