package tds

import (
	"encoding/hex"
	"math/big"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// tried returns the error with which a function refuses its input; Go's own errors stay panics.
func tried[T any](run func() T) (out T, err error) {
	defer func() {
		switch problem := recover().(type) {
		case nil:
		case runtime.Error:
			panic(problem)
		case error:
			err = problem
		}
	}()
	return run(), nil
}

// valueCases have bytes computed without this package, by hand from the layout in MS-TDS.
var valueCases = []struct {
	name  string
	typ   Type
	value any
	bytes string
}{
	{"tinyint", Type{Kind: KindInt8}, int64(200), "01c8"},
	{"smallint", Type{Kind: KindInt16}, int64(-32768), "020080"},
	{"int", Type{Kind: KindInt32}, int64(-2), "04feffffff"},
	{"bigint", Type{Kind: KindInt64}, int64(1) << 40, "080000000000010000"},
	{"bit", Type{Kind: KindBit}, true, "0101"},
	{"float", Type{Kind: KindFloat}, -2.25, "0800000000000002c0"},
	{"decimal of 4 bytes", Type{Kind: KindDecimal, Precision: 9, Scale: 2}, NewDecimal(12345, 2), "050139300000"},
	{"decimal of 8 bytes", Type{Kind: KindDecimal, Precision: 19}, NewDecimal(1, 0), "09010100000000000000"},
	{"decimal of 12 bytes", Type{Kind: KindDecimal, Precision: 28},
		Decimal{Unscaled: new(big.Int).Neg(Pow10(27))}, "0d00000000e83c80d09f3c2e3b03"},
	{"decimal of 16 bytes", Type{Kind: KindDecimal, Precision: 38, Scale: 6}, NewDecimal(-12345678, 6),
		"11004e61bc00000000000000000000000000"},
	{"money", Type{Kind: KindMoney}, Money(-1234567), "08ffffffff7929edff"},
	{"big money", Type{Kind: KindMoney}, Money(1<<40 + 5), "080001000005000000"},
	{"date", Type{Kind: KindDate}, time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), "03dab937"},
	{"datetime", Type{Kind: KindDateTime}, time.Date(1999, 12, 31, 23, 59, 59, 997e6, time.UTC), "08ab8e0000ff818b01"},
	{"first datetime", Type{Kind: KindDateTime}, time.Date(1753, 1, 1, 0, 0, 0, 0, time.UTC), "08462effff00000000"},
	{"datetime2(7)", Type{Kind: KindDateTime2, Scale: 7}, time.Date(2024, 2, 29, 13, 14, 15, 123456700, time.UTC),
		"0807c4aaf46e80460b"},
	{"datetime2(0)", Type{Kind: KindDateTime2}, time.Date(2024, 2, 29, 13, 14, 15, 0, time.UTC), "0627ba0080460b"},
	{"nchar", Type{Kind: KindNChar, Size: 4}, "żó  ", "08007c01f30020002000"},
	{"nvarchar", Type{Kind: KindNVarChar, Size: 20}, "żółw 😀", "0e007c01f3004201770020003dd800de"},
	{"nvarchar(max)", Type{Kind: KindNVarChar, Size: MaxSize}, "aż", "04000000000000000400000061007c0100000000"},
	{"xml", Type{Kind: KindXML}, "aż", "04000000000000000400000061007c0100000000"},
	{"varbinary(max)", Type{Kind: KindVarBinary, Size: MaxSize}, []byte{0, 255}, "0200000000000000" + "02000000" + "00ff" + "00000000"},
	{"guid", Type{Kind: KindUniqueIdentifier}, [16]byte{1, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 1, 2, 3, 4, 5, 6, 7, 8},
		"1067452301ab89efcd0102030405060708"},
}

// Every type is written as SQL Server writes it, and is read back unchanged.
func TestValuesOnTheWire(t *testing.T) {
	for _, c := range valueCases {
		t.Run(c.name, func(t *testing.T) {
			got, err := tried(func() []byte { return appendValue(nil, c.typ, c.value) })
			if err != nil || hex.EncodeToString(got) != c.bytes {
				t.Fatalf("wrote %x (%v), want %s", got, err, c.bytes)
			}
			if !sent(c.typ.Kind) {
				return
			}
			if back := reread(t, c.typ, got); !sameValue(back, c.value) {
				t.Errorf("read %v back, want %v", back, c.value)
			}
		})
	}
}

// sent reports whether drivers send parameters of a kind; the others occur only in results.
func sent(k Kind) bool {
	return !slices.Contains([]Kind{KindMoney, KindDateTime, KindNChar, KindXML}, k)
}

// reread reads a value as a parameter: its type first.
func reread(t *testing.T, typ Type, value []byte) any {
	t.Helper()
	in := &input{b: append(appendType(nil, typ), value...)}
	w, err := tried(func() wireType { return readType(in) })
	if err != nil {
		t.Fatal(err)
	}
	if w.Type != typ {
		t.Errorf("type %+v came back as %+v", typ, w.Type)
	}
	v, err := tried(func() any { return readValue(in, w) })
	if err != nil || in.more() {
		t.Fatalf("error %v, %d bytes left", err, len(in.b))
	}
	return v
}

func sameValue(a, b any) bool {
	switch x := a.(type) {
	case time.Time:
		y, ok := b.(time.Time)
		return ok && x.Equal(y) && x.Format(time.RFC3339) == y.Format(time.RFC3339)
	case Decimal:
		y, ok := b.(Decimal)
		return ok && x.Scale == y.Scale && x.Unscaled.Cmp(y.Unscaled) == 0
	}
	return reflect.DeepEqual(a, b)
}

// Every type can be NULL, those in chunks included.
func TestNulls(t *testing.T) {
	for _, c := range valueCases {
		b, err := tried(func() []byte { return appendValue(nil, c.typ, nil) })
		if err != nil {
			t.Fatal(c.name, err)
		}
		if sent(c.typ.Kind) && reread(t, c.typ, b) != nil {
			t.Errorf("%s: NULL came back as something", c.name)
		}
	}
}

// A value that its column cannot represent is refused, not altered.
func TestValuesThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		typ   Type
		value any
	}{
		{Type{Kind: KindInt8}, int64(256)}, {Type{Kind: KindInt8}, int64(-1)}, {Type{Kind: KindInt16}, int64(1 << 15)},
		{Type{Kind: KindInt32}, int64(1 << 31)}, {Type{Kind: KindInt32}, "1"}, {Type{Kind: KindInt32}, int32(1)},
		{Type{Kind: KindNVarChar, Size: 2}, "abc"},
		{Type{Kind: KindVarBinary, Size: 1}, []byte{1, 2}}, {Type{Kind: KindBit}, int64(1)},
		{Type{Kind: KindDecimal, Precision: 4, Scale: 2}, NewDecimal(100, 0)},
		{Type{Kind: KindDate}, "2024-01-01"}, {Type{Kind: KindXML}, []byte("<a/>")}, {Type{Kind: KindMoney}, int64(1)},
	} {
		if b, err := tried(func() []byte { return appendValue(nil, c.typ, c.value) }); err == nil {
			t.Errorf("%v as %s gave %x", c.value, c.typ.Kind, b)
		}
	}
}

// Times are rounded to their type's resolution, and a time rounded up to midnight is on the next day.
func TestTimesRoundAcrossMidnight(t *testing.T) {
	almost := time.Date(1999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	for _, c := range []struct {
		typ   Type
		bytes string
	}{
		{Type{Kind: KindDateTime}, "08ac8e000000000000"},
		{Type{Kind: KindDateTime2, Scale: 3}, "07" + "00000000" + "07240b"},
	} {
		b, err := tried(func() []byte { return appendValue(nil, c.typ, almost) })
		if err != nil || hex.EncodeToString(b) != c.bytes {
			t.Errorf("%s: %x (%v), want %s", c.typ.Kind, b, err, c.bytes)
		}
	}
}

// A decimal is converted to its column's scale, rounded half away from zero.
func TestDecimalScales(t *testing.T) {
	column := Type{Kind: KindDecimal, Precision: 9, Scale: 2}
	for _, c := range []struct {
		value any
		want  int64
	}{
		{NewDecimal(5, 0), 500}, {int64(-5), -500}, {NewDecimal(1005, 3), 101}, {NewDecimal(-1005, 3), -101}, {NewDecimal(1004, 3), 100},
	} {
		b, err := tried(func() []byte { return appendValue(nil, column, c.value) })
		if err != nil {
			t.Fatal(err)
		}
		if got := reread(t, column, b); !sameValue(got, NewDecimal(c.want, 2)) {
			t.Errorf("%v came back as %v, want %d hundredths", c.value, got, c.want)
		}
	}
}

// Types in which drivers send their values, other than those of results.
func TestTypesOnlyRead(t *testing.T) {
	for _, c := range []struct {
		name, bytes string
		want        any
	}{
		{"ntext", "63" + "10000000" + "0904d00034" + "04000000" + "61007c01", "aż"},
		{"null ntext", "63" + "10000000" + "0904d00034" + "ffffffff", nil},
		{"varchar of code page 1252", "a70a00" + "0904d00034" + "0300" + "806162", "€ab"},
		{"time", "2902" + "03" + "44d583", time.Date(1, 1, 1, 23, 59, 58, 120e6, time.UTC)},
		{"chunks of unknown total", "e7ffff0904d00034" + "feffffffffffffff" + "02000000" + "6100" + "02000000" + "7c01" + "00000000", "aż"},
	} {
		in := &input{b: unhex(t, c.bytes)}
		typ, err := tried(func() wireType { return readType(in) })
		if err != nil {
			t.Fatal(c.name, err)
		}
		got, err := tried(func() any { return readValue(in, typ) })
		if err != nil || in.more() || !sameValue(got, c.want) {
			t.Errorf("%s: %v (%v), want %v", c.name, got, err, c.want)
		}
	}
}

// Malformed values are errors, never panics or guesses.
func TestMalformedValues(t *testing.T) {
	for name, b := range map[string]string{
		"int of 3 bytes": "2603" + "03" + "010203", "value wider than its type": "2604" + "05" + "0102030405",
		"text cut short": "e70a000904d00034" + "0400" + "61", "no type": "",
		"decimal of precision 39": "6c112700" + "00", "time of scale 8": "2908" + "00", "chunks without end": "e7ffff0904d00034" + "feffffffffffffff" + "02000000" + "6100",
		"chunks unlike their total": "e7ffff0904d00034" + "0300000000000000" + "02000000" + "6100" + "00000000", "huge length": "63" + "10000000" + "0904d00034" + "feffffff",
	} {
		in := &input{b: unhex(t, b)}
		typ, err := tried(func() wireType { return readType(in) })
		if err == nil {
			_, err = tried(func() any { return readValue(in, typ) })
		}
		if err == nil || !strings.Contains(err.Error(), "malformed") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}
