package sqlserver

import (
	"math/bits"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// An aggregate over a cross join visits every pair of rows. To do so at some 10^8 pairs a second, what
// depends on one side only is computed once per row of that side, and the rest works on int64.

// kernel is the value of an integer expression for outer row i and inner row j.
type kernel func(i, j int) (n int64, null bool, err error)

// sides of a product that an expression reads.
type sides uint8

const (
	leftSide  sides = 1
	rightSide sides = 2
	bothSides sides = 3
	// opaque expressions can only be computed row by row.
	opaque sides = 4
)

// pairs compiles kernels over two lists of rows.
type pairs struct {
	at          *compiler
	left, right [][]any
	width       int // columns of the left side
	outer       *frame
}

// overProduct computes the aggregates over a cross product without building its rows; ok is false when
// the query does not have that form.
func (p *aggregatePlan) overProduct(f *frame) (row []any, ok bool, err error) {
	cross := productOf(p.input)
	if cross == nil || p.grouped {
		return nil, false, nil
	}
	for _, a := range p.aggregates {
		if !a.onPairs() {
			return nil, false, nil
		}
	}
	in := &pairs{width: len(cross.left.columns()), outer: f}
	if in.left, in.right, err = cross.sides(f); err != nil {
		return nil, false, err
	}
	for _, a := range p.aggregates {
		v, ok, err := a.overPairs(in, p.run)
		if err != nil || !ok {
			return nil, false, err
		}
		row = append(row, v)
	}
	return row, true, nil
}

// productOf is the cross product that a plan is, under other names perhaps.
func productOf(p plan) *crossPlan {
	switch p := p.(type) {
	case *crossPlan:
		return p
	case *renamedPlan:
		return productOf(p.plan)
	}
	return nil
}

// onPairs tells whether the aggregate can be computed from kernels.
func (a *aggregate) onPairs() bool {
	if a.arg == nil {
		return true
	}
	return !a.distinct && isInteger(a.arg.typ.Kind) && a.arg.typ.Kind != tds.KindBit && a.name != "string_agg" && a.name != "avg"
}

// overPairs computes one aggregate over all pairs.
func (a *aggregate) overPairs(in *pairs, r *run) (any, bool, error) {
	if a.arg == nil {
		return int64(len(in.left)) * int64(len(in.right)), true, nil
	}
	in.at = a.at
	value, ok, err := in.kernel(a.call.Args[0])
	if err != nil || !ok {
		return nil, false, err
	}
	var acc tally
	for i := range in.left {
		if err := r.ended(); err != nil {
			return nil, false, err
		}
		for j := range in.right {
			n, null, err := value(i, j)
			if err != nil {
				return nil, false, err
			}
			if !null {
				acc.add(n)
			}
		}
	}
	v, err := acc.result(a)
	return v, true, err
}

// tally holds what the integer aggregates need.
type tally struct {
	count, sum, least, most, xor int64
	overflowed                   bool
}

func (t *tally) add(n int64) {
	sum := t.sum + n
	t.overflowed = t.overflowed || (sum > t.sum) != (n > 0) && n != 0
	if t.count == 0 || n < t.least {
		t.least = n
	}
	if t.count == 0 || n > t.most {
		t.most = n
	}
	t.sum, t.xor = sum, t.xor^n
	t.count++
}

func (t *tally) result(a *aggregate) (any, error) {
	switch {
	case a.name == "count" || a.name == "count_big":
		return convert(t.count, a.typ, 0)
	case t.count == 0:
		return nil, nil
	case a.name == "min":
		return t.least, nil
	case a.name == "max":
		return t.most, nil
	case a.name == "checksum_agg":
		return int64(int32(t.xor)), nil
	case t.overflowed:
		return nil, overflow(a.typ)
	}
	return convert(t.sum, a.typ, 0)
}

// kernel compiles an integer expression; ok is false when it must be computed row by row.
func (p *pairs) kernel(x tsql.Expr) (k kernel, ok bool, err error) {
	switch s := p.sides(x); {
	case s&opaque != 0:
		return nil, false, nil
	case s != bothSides:
		return p.oneSided(x, s)
	}
	switch x := x.(type) {
	case *tsql.Cast:
		return p.castKernel(x)
	case *tsql.Arith:
		return p.arithKernel(x)
	case *tsql.Call:
		return p.checksumKernel(x)
	}
	return nil, false, nil
}

// sides tells which rows an expression reads.
func (p *pairs) sides(x tsql.Expr) sides {
	var out sides
	tsql.Walk(x, func(x tsql.Expr) bool {
		switch x := x.(type) {
		case *tsql.ColumnRef:
			i, err := p.at.scope.find(x)
			switch {
			case err != nil || i < 0:
				out |= opaque
			case i < p.width:
				out |= leftSide
			default:
				out |= rightSide
			}
		case *tsql.Subquery, *tsql.Exists, *tsql.In:
			out |= opaque
		case *tsql.Call:
			if volatile[fold(x.Name.Object())] {
				out |= opaque
			}
		}
		return true
	})
	return out
}

// volatile functions give another value on every call.
var volatile = map[string]bool{"newid": true, "rand": true, "newsequentialid": true}

// oneSided computes an expression once for each row of its side.
func (p *pairs) oneSided(x tsql.Expr, s sides) (kernel, bool, error) {
	values, err := p.vector(x, s)
	if err != nil {
		return nil, false, err
	}
	numbers, nulls := make([]int64, len(values)), make([]bool, len(values))
	for i, v := range values {
		if nulls[i] = v == nil; v != nil {
			if numbers[i], err = wholeNumber(v, typeBigInt); err != nil {
				return nil, false, err
			}
		}
	}
	if s == rightSide {
		return func(_, j int) (int64, bool, error) { return numbers[j], nulls[j], nil }, true, nil
	}
	return func(i, _ int) (int64, bool, error) { return numbers[i], nulls[i], nil }, true, nil
}

// vector is the value of an expression for every row of one side.
func (p *pairs) vector(x tsql.Expr, s sides) ([]any, error) {
	compiled, err := p.at.expr(x)
	if err != nil {
		return nil, err
	}
	rows, from := p.left, 0
	if s == rightSide {
		rows, from = p.right, p.width
	}
	buffer := make([]any, len(p.at.scope.columns))
	fr := &frame{row: buffer, outer: p.outer, run: p.at.run}
	out := make([]any, len(rows))
	for i, row := range rows {
		copy(buffer[from:], row)
		if out[i], err = compiled.eval(fr); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (p *pairs) castKernel(x *tsql.Cast) (kernel, bool, error) {
	t, err := resolveType(x.Type, 30)
	if err != nil || !isInteger(t.Kind) || t.Kind == tds.KindBit || x.Try {
		return nil, false, err
	}
	operand, ok, err := p.kernel(x.X)
	if err != nil || !ok {
		return nil, false, err
	}
	if t.Kind == tds.KindInt64 {
		return operand, true, nil
	}
	least, most := rangeOf(t.Kind)
	return func(i, j int) (int64, bool, error) {
		n, null, err := operand(i, j)
		if err == nil && !null && (n < least || n > most) {
			err = overflow(t)
		}
		return n, null, err
	}, true, nil
}

func (p *pairs) arithKernel(x *tsql.Arith) (kernel, bool, error) {
	whole, err := p.at.expr(x)
	if err != nil || !isInteger(whole.typ.Kind) {
		return nil, false, err
	}
	left, okL, err := p.kernel(x.L)
	if err != nil || !okL {
		return nil, false, err
	}
	right, okR, err := p.kernel(x.R)
	if err != nil || !okR {
		return nil, false, err
	}
	apply := wholeOperator(x.Op, whole.typ)
	return func(i, j int) (int64, bool, error) {
		a, nullA, err := left(i, j)
		if err != nil || nullA {
			return 0, nullA, err
		}
		b, nullB, err := right(i, j)
		if err != nil || nullB {
			return 0, nullB, err
		}
		n, err := apply(a, b)
		return n, false, err
	}, true, nil
}

// checksumKernel splits CHECKSUM(...) into the parts of either side: the combination is an exclusive or.
func (p *pairs) checksumKernel(x *tsql.Call) (kernel, bool, error) {
	name := fold(x.Name.Object())
	if name != "checksum" && name != "binary_checksum" || x.Star {
		return nil, false, nil
	}
	outer, inner := make([]uint32, len(p.left)), make([]uint32, len(p.right))
	for k, arg := range x.Args {
		s := p.sides(arg)
		if s == bothSides || s&opaque != 0 {
			return nil, false, nil
		}
		values, err := p.vector(arg, s)
		if err != nil {
			return nil, false, err
		}
		into := outer
		if s == rightSide {
			into = inner
		}
		for i, v := range values {
			into[i] ^= bits.RotateLeft32(checksumOf(v, name == "checksum"), 4*(len(x.Args)-1-k))
		}
	}
	return func(i, j int) (int64, bool, error) { return int64(int32(outer[i] ^ inner[j])), false, nil }, true, nil
}
