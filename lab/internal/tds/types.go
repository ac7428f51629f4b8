// Package tds serves the TDS 7.4 protocol of SQL Server: packets, login, batches, remote procedure calls,
// attention and results. It knows nothing of SQL; an Engine does.
//
// Layout and values of the messages follow Microsoft's open specification MS-TDS.
package tds

import (
	"context"
	"errors"
	"math/big"
)

// Login is what a client sends when it logs in.
type Login struct {
	User, Password string
	Database       string // "" = the login's default database
	App, Host      string
	Language       string // "" = the login's default language
	SPID           uint16 // number of the session, as its packets carry it (@@SPID)
	LocalAddress   string // address of this server that the client connected to
	LocalPort      int    // its port
	Encrypted      bool   // the whole session is encrypted, not only its login
	Kerberos       bool   // logged in by a ticket, not a password
}

// String leaves the password out, so that a log line cannot carry it.
func (l Login) String() string {
	return "login " + l.User + " from " + l.Host + " (" + l.App + ") to database " + l.Database
}

// GoString is String: %#v must not print the password either.
func (l Login) GoString() string { return l.String() }

// Engine decides who may log in. Open is called from many goroutines.
type Engine interface {
	// Open returns the session of one connection, or the error the client gets instead (18456, 4060, ...).
	Open(Login) (Session, *Message)
}

// Session is one logged-in connection. Its methods are called one at a time, never concurrently.
//
// The context of a request ends at the client's attention, at the loss of the connection and at Server.Close:
// a method must then return promptly. What it writes after that is discarded.
type Session interface {
	// Database is the current database.
	Database() string
	// Batch runs a language batch, or the text of sp_executesql, sp_prepexec or sp_execute with its parameters.
	Batch(ctx context.Context, text string, params []Param, w *Writer)
	// Call runs a remote procedure call by name, as the client wrote it: [sys].sp_datatype_info_100.
	Call(ctx context.Context, procedure string, params []Param, w *Writer)
	// Close is called once, when the connection has ended.
	Close()
}

// Kind is a family of SQL Server data types.
type Kind int

// Kinds, with the Go type of their values. Every value may also be nil (NULL).
const (
	KindInt8             Kind = iota + 1 // tinyint, 0..255: int64
	KindInt16                            // smallint: int64
	KindInt32                            // int: int64
	KindInt64                            // bigint: int64
	KindBit                              // bit: bool
	KindFloat                            // float: float64
	KindDecimal                          // decimal, numeric (Precision, Scale): Decimal
	KindMoney                            // money: Money
	KindDate                             // date: time.Time
	KindDateTime                         // datetime, in steps of 1/300 s: time.Time
	KindDateTime2                        // datetime2 (Scale 0..7): time.Time
	KindNChar                            // nchar (Size in UTF-16 units): string
	KindNVarChar                         // nvarchar (Size in UTF-16 units, -1 = max): string
	KindVarBinary                        // varbinary (Size bytes, -1 = max): []byte
	KindUniqueIdentifier                 // uniqueidentifier: [16]byte in the order of its text form
	KindXML                              // xml: string
)

// MaxSize as Type.Size is the (max) of varchar, nvarchar and varbinary.
const MaxSize = -1

// Type is a data type. Size, Precision and Scale count only for the kinds that have them.
type Type struct {
	Kind                   Kind
	Size, Precision, Scale int
}

// Column describes one column of a result.
type Column struct {
	Name     string
	Type     Type
	Nullable bool
}

// Message is an error (Class > 10) or an informational message. An error of class 20 or more ends the
// connection after the response.
type Message struct {
	Number       int32
	State, Class uint8
	Text         string
	Procedure    string
	Line         int32
}

// Param is a parameter of a batch (Name as declared, "@P1") or of a procedure (Name may be "").
type Param struct {
	Name   string
	Type   Type
	Value  any
	Output bool
}

// Decimal is Unscaled / 10^Scale.
type Decimal struct {
	Unscaled *big.Int
	Scale    int
}

// NewDecimal is unscaled / 10^scale.
func NewDecimal(unscaled int64, scale int) Decimal {
	return Decimal{Unscaled: big.NewInt(unscaled), Scale: scale}
}

// Rescale changes the scale; digits that do not fit are rounded half away from zero.
func (d Decimal) Rescale(scale int) Decimal {
	switch {
	case d.Scale == scale:
		return d
	case d.Scale < scale:
		return Decimal{new(big.Int).Mul(d.Unscaled, Pow10(scale-d.Scale)), scale}
	}
	by := Pow10(d.Scale - scale)
	quotient, rest := new(big.Int).QuoRem(d.Unscaled, by, new(big.Int))
	if rest.Abs(rest).Lsh(rest, 1).Cmp(by) >= 0 {
		quotient.Add(quotient, big.NewInt(int64(d.Unscaled.Sign())))
	}
	return Decimal{quotient, scale}
}

// powers are 10^0 to 10^99. They are never changed.
var powers = func() (out [100]*big.Int) {
	for n := range out {
		out[n] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
	}
	return out
}()

// Pow10 is 10^n, which must not be changed.
func Pow10(n int) *big.Int { return powers[n] }

// Money is an amount in ten-thousandths.
type Money int64

// Done ends one statement of a response.
type Done struct {
	Count    int64  // rows, when HasCount
	HasCount bool   // false under SET NOCOUNT ON and for statements that count nothing
	Error    bool   // the statement failed
	Command  uint16 // CommandSelect, ... or 0
}

// Commands of a Done.
const (
	CommandSelect uint16 = 0xC1
	CommandInsert uint16 = 0xC3
	CommandDelete uint16 = 0xC4
)

// Causes that end a response early: Writer.Err, Writer.CrossRows and the cause of a request's context.
var (
	// ErrAttention: the client cancelled the request.
	ErrAttention = errors.New("the client cancelled the request")
	// ErrConnectionLost: the client or Server.Close ended the connection.
	ErrConnectionLost = errors.New("the connection has ended")
	// ErrDropped: the connection was cut deliberately after Writer.DropAfter rows.
	ErrDropped = errors.New("the connection was cut after the rows it was allowed to send")
)

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

// kinds are the names in T-SQL, and TYPE_INFO as far as it is the same for each type of a kind.
var kinds = [...]struct {
	name       string
	wire, size byte
}{
	KindInt8: {"tinyint", wireIntN, 1}, KindInt16: {"smallint", wireIntN, 2}, KindInt32: {"int", wireIntN, 4},
	KindInt64: {"bigint", wireIntN, 8}, KindBit: {"bit", wireBitN, 1}, KindFloat: {"float", wireFloatN, 8},
	KindDecimal: {"numeric", wireNumericN, 0}, KindMoney: {"money", wireMoneyN, 8}, KindDate: {"date", wireDate, 0},
	KindDateTime: {"datetime", wireDateTimeN, 8}, KindDateTime2: {"datetime2", wireDateTime2, 0},
	KindNChar: {"nchar", wireNChar, 0}, KindNVarChar: {"nvarchar", wireNVarChar, 0}, KindVarBinary: {"varbinary", wireVarBinary, 0},
	KindUniqueIdentifier: {"uniqueidentifier", wireGUID, 16}, KindXML: {"xml", wireXML, 0},
}

// String is the kind's name in T-SQL; int for the type of NULL.
func (k Kind) String() string {
	if k == 0 {
		k = KindInt32
	}
	return kinds[k].name
}

// Size is the length in bytes of every value of the kind; 0 where it depends on the type.
func (k Kind) Size() int { return int(kinds[k].size) }

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
