package tds

// Data types on the wire (TYPE_INFO): those of results, and of the parameters that drivers send.
const (
	wireGUID      = 0x24
	wireIntN      = 0x26
	wireDate      = 0x28
	wireTime      = 0x29
	wireDateTime2 = 0x2A
	wireNText     = 0x63
	wireBitN      = 0x68
	wireDecimalN  = 0x6A
	wireNumericN  = 0x6C
	wireFloatN    = 0x6D
	wireMoneyN    = 0x6E
	wireDateTimeN = 0x6F
	wireVarBinary = 0xA5
	wireVarChar   = 0xA7
	wireNVarChar  = 0xE7
	wireNChar     = 0xEF
	wireXML       = 0xF1
)

// plpLength as the length of a type means that its values are sent in chunks; as the length of a value, NULL.
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
	KindInt8: "tinyint", KindInt16: "smallint", KindInt32: "int", KindInt64: "bigint", KindBit: "bit", KindFloat: "float",
	KindDecimal: "numeric", KindMoney: "money", KindDate: "date", KindDateTime: "datetime", KindDateTime2: "datetime2",
	KindNChar: "nchar", KindNVarChar: "nvarchar", KindVarBinary: "varbinary", KindUniqueIdentifier: "uniqueidentifier", KindXML: "xml",
}

// String is the kind's name in T-SQL; int for the type of NULL.
func (k Kind) String() string {
	if k == 0 {
		k = KindInt32
	}
	return kindNames[k]
}

// long reports whether values are sent in chunks.
func (t Type) long() bool {
	switch t.Kind {
	case KindXML:
		return true
	case KindNVarChar:
		return t.Size < 0 || t.Size > maxBytes/2
	}
	return t.Kind == KindVarBinary && (t.Size < 0 || t.Size > maxBytes)
}

// decimalBytes is the size of a decimal of a precision, without its sign.
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

// timeBytes is the size of a time of day with a scale.
func timeBytes(scale int) int {
	switch {
	case scale <= 2:
		return 3
	case scale <= 4:
		return 4
	}
	return 5
}
