package tds

import "strconv"

// Data types on the wire (TYPE_INFO).
const (
	wireNull           = 0x1F
	wireImage          = 0x22
	wireText           = 0x23
	wireGUID           = 0x24
	wireVarBinaryOld   = 0x25
	wireIntN           = 0x26
	wireVarCharOld     = 0x27
	wireDate           = 0x28
	wireTime           = 0x29
	wireDateTime2      = 0x2A
	wireDateTimeOffset = 0x2B
	wireBinaryOld      = 0x2D
	wireCharOld        = 0x2F
	wireInt8           = 0x30
	wireBit            = 0x32
	wireInt16          = 0x34
	wireDecimalOld     = 0x37
	wireInt32          = 0x38
	wireDateTime4      = 0x3A
	wireFloat4         = 0x3B
	wireMoney          = 0x3C
	wireDateTime       = 0x3D
	wireFloat8         = 0x3E
	wireNumericOld     = 0x3F
	wireVariant        = 0x62
	wireNText          = 0x63
	wireBitN           = 0x68
	wireDecimalN       = 0x6A
	wireNumericN       = 0x6C
	wireFloatN         = 0x6D
	wireMoneyN         = 0x6E
	wireDateTimeN      = 0x6F
	wireMoney4         = 0x7A
	wireInt64          = 0x7F
	wireVarBinary      = 0xA5
	wireVarChar        = 0xA7
	wireBinary         = 0xAD
	wireChar           = 0xAF
	wireNVarChar       = 0xE7
	wireNChar          = 0xEF
	wireUDT            = 0xF0
	wireXML            = 0xF1
	wireTable          = 0xF3
)

// plpLength as the length of a type says that its values come in chunks; as the length of a value, NULL.
const plpLength = 0xFFFF

// Lengths of a value in chunks.
const (
	plpNull    = 0xFFFFFFFFFFFFFFFF
	plpUnknown = 0xFFFFFFFFFFFFFFFE
)

const (
	maxBytes     = 8000 // of a type without (max)
	maxPrecision = 38
	maxScale     = 7 // of a time
)

var kindNames = map[Kind]string{
	KindInt8: "tinyint", KindInt16: "smallint", KindInt32: "int", KindInt64: "bigint", KindBit: "bit",
	KindReal: "real", KindFloat: "float", KindDecimal: "decimal", KindMoney: "money",
	KindDate: "date", KindTime: "time", KindDateTime: "datetime", KindDateTime2: "datetime2",
	KindDateTimeOffset: "datetimeoffset",
	KindChar:           "char", KindVarChar: "varchar", KindNChar: "nchar", KindNVarChar: "nvarchar",
	KindBinary: "binary", KindVarBinary: "varbinary", KindUniqueIdentifier: "uniqueidentifier", KindXML: "xml",
}

// String is the name that T-SQL gives the kind.
func (k Kind) String() string {
	if s, ok := kindNames[k]; ok {
		return s
	}
	return "kind " + strconv.Itoa(int(k))
}

// long tells whether values travel in chunks.
func (t Type) long() bool {
	switch t.Kind {
	case KindXML:
		return true
	case KindNVarChar:
		return t.Size < 0 || t.Size > maxBytes/2
	case KindVarChar, KindVarBinary:
		return t.Size < 0 || t.Size > maxBytes
	}
	return false
}

// decimalBytes is the width of a decimal of a precision, its sign left out.
func decimalBytes(precision int) int {
	switch {
	case precision <= 9:
		return 4
	case precision <= 19:
		return 8
	case precision <= 28:
		return 12
	}
	return 16
}

// timeBytes is the width of a time of day with a scale.
func timeBytes(scale int) int {
	switch {
	case scale <= 2:
		return 3
	case scale <= 4:
		return 4
	}
	return 5
}
