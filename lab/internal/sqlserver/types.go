package sqlserver

import (
	"cmp"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// Types that results of functions and views often have.
var (
	typeTinyInt  = tds.Type{Kind: tds.KindInt8}
	typeSmallInt = tds.Type{Kind: tds.KindInt16}
	typeInt      = tds.Type{Kind: tds.KindInt32}
	typeBigInt   = tds.Type{Kind: tds.KindInt64}
	typeBit      = tds.Type{Kind: tds.KindBit}
	typeMoney    = tds.Type{Kind: tds.KindMoney}
	typeFloat    = tds.Type{Kind: tds.KindFloat}
	typeDateTime = tds.Type{Kind: tds.KindDateTime}
	typeDT2      = tds.Type{Kind: tds.KindDateTime2, Scale: 7}
	typeDate     = tds.Type{Kind: tds.KindDate}
	typeGUID     = tds.Type{Kind: tds.KindUniqueIdentifier}
	typeXML      = tds.Type{Kind: tds.KindXML}
	typeSysname  = textType(128)
)

func textType(size int) tds.Type { return tds.Type{Kind: tds.KindNVarChar, Size: size} }

func decimalType(precision, scale int) tds.Type {
	return tds.Type{Kind: tds.KindDecimal, Precision: precision, Scale: scale}
}

// simpleTypes are the types without arguments. Character types without N are kept as Unicode.
var simpleTypes = map[string]tds.Type{
	"tinyint": typeTinyInt, "smallint": typeSmallInt, "int": typeInt, "integer": typeInt, "bigint": typeBigInt,
	"bit": typeBit, "money": typeMoney, "smallmoney": typeMoney, "float": typeFloat, "real": typeFloat,
	"datetime": typeDateTime, "smalldatetime": typeDateTime, "date": typeDate, "uniqueidentifier": typeGUID,
	"sysname": typeSysname, "xml": typeXML, "ntext": textType(-1), "text": textType(-1), "sql_variant": textType(4000),
}

// resolveType turns a type as written into a wire type; undeclared lengths are 1 in columns and 30 in casts.
func resolveType(t tsql.TypeName, undeclared int) tds.Type {
	if known, ok := simpleTypes[t.Name]; ok && (len(t.Args) == 0 || t.Name == "float") {
		return known
	}
	arg := func(i, otherwise int) int {
		if i < len(t.Args) {
			return t.Args[i]
		}
		return otherwise
	}
	size := arg(0, undeclared)
	switch kind := sizedTypes[t.Name]; {
	case t.Name == "datetime2":
		return tds.Type{Kind: kind, Scale: arg(0, 7)}
	case kind == tds.KindDecimal:
		p, s := arg(0, 18), arg(1, 0)
		if p < 1 || p > 38 || s > p {
			panic(tsql.Errorf(2750, t.Line, "Specified column precision %d is greater than the maximum precision of 38.", p))
		}
		return decimalType(p, s)
	case kind == 0:
		panic(tsql.Errorf(243, t.Line, "Type %s is not a defined system type.", t.Name))
	case size == 0 || size > mostBytes || size < -1:
		panic(tsql.Errorf(131, t.Line, "The size (%d) given to the type '%s' exceeds the maximum allowed (%d).", size, t.Name, mostBytes))
	default:
		return tds.Type{Kind: kind, Size: size}
	}
}

// mostBytes is the largest size of a type that is not a max type.
const mostBytes = 8000

// sizedTypes are those with arguments.
var sizedTypes = map[string]tds.Kind{
	"nvarchar": tds.KindNVarChar, "varchar": tds.KindNVarChar, "nchar": tds.KindNChar, "char": tds.KindNChar,
	"varbinary": tds.KindVarBinary, "binary": tds.KindVarBinary, "rowversion": tds.KindVarBinary, "timestamp": tds.KindVarBinary,
	"datetime2": tds.KindDateTime2, "decimal": tds.KindDecimal, "numeric": tds.KindDecimal,
}

// precedence has the types from the lowest to the highest: in an operation of two types the lower one is converted to the
// higher one. The first is that of NULL.
var precedence = []tds.Kind{0, tds.KindVarBinary, tds.KindNChar, tds.KindNVarChar, tds.KindXML, tds.KindUniqueIdentifier, tds.KindBit,
	tds.KindInt8, tds.KindInt16, tds.KindInt32, tds.KindInt64, tds.KindMoney, tds.KindDecimal, tds.KindFloat, tds.KindDate,
	tds.KindDateTime, tds.KindDateTime2}

func rank(k tds.Kind) int { return slices.Index(precedence, k) }

func isInteger(k tds.Kind) bool {
	return k == tds.KindInt8 || k == tds.KindInt16 || k == tds.KindInt32 || k == tds.KindInt64 || k == tds.KindBit
}

func isText(k tds.Kind) bool { return k == tds.KindNVarChar || k == tds.KindNChar }

func isNumeric(k tds.Kind) bool {
	return isInteger(k) || k == tds.KindMoney || k == tds.KindDecimal || k == tds.KindFloat
}

// unify is the type that can represent values of both, as for CASE, COALESCE and UNION.
func unify(a, b tds.Type) tds.Type {
	if rank(a.Kind) < rank(b.Kind) {
		a, b = b, a
	}
	switch {
	case b.Kind == 0:
		return a
	case a.Kind == tds.KindDecimal && isNumeric(b.Kind):
		d := asDecimalType(b)
		scale := max(a.Scale, d.Scale)
		return decimalType(min(max(a.Precision-a.Scale, d.Precision-d.Scale)+scale, 38), scale)
	case isText(a.Kind) && isText(b.Kind) || a.Kind == tds.KindVarBinary && b.Kind == tds.KindVarBinary:
		a.Size = widest(a.Size, b.Size)
	}
	return a
}

func widest(a, b int) int {
	if a < 0 || b < 0 {
		return -1
	}
	return max(a, b)
}

// asDecimalType is the decimal type for every value of a numeric type.
func asDecimalType(t tds.Type) tds.Type {
	switch t.Kind {
	case tds.KindDecimal:
		return t
	case tds.KindMoney:
		return decimalType(19, 4)
	}
	digits := map[tds.Kind]int{tds.KindBit: 1, tds.KindInt8: 3, tds.KindInt16: 5, tds.KindInt64: 19}
	return decimalType(cmp.Or(digits[t.Kind], 10), 0)
}

// typeName is the name of a type in messages and views.
func typeName(t tds.Type) string { return t.Kind.String() }

// storageBytes is the length that sys.columns shows as max_length.
func storageBytes(t tds.Type) int {
	switch t.Kind {
	case tds.KindDate:
		return 3
	case tds.KindDateTime2:
		return 8
	case tds.KindNVarChar, tds.KindNChar:
		if t.Size > 0 {
			return 2 * t.Size
		}
		return -1
	case tds.KindVarBinary, tds.KindXML:
		return t.Size
	case tds.KindDecimal:
		return []int{5, 9, 13, 17}[min(max(t.Precision-1, 0)/9-max(t.Precision-1, 0)/27, 3)]
	}
	return t.Kind.Size()
}

// fold is how names are compared: the default collation ignores case.
func fold(s string) string { return strings.ToLower(s) }
