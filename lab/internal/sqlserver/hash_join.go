package sqlserver

import (
	"sync"

	"vnuma.dev/lab/internal/tsql"
)

// equalities are the columns that an inner join wants equal, place by place; nil when its condition is
// anything but equalities of one column of either side.
type equalities struct{ left, right []int }

func (c *compiler) equalities(on tsql.Expr, left, right plan) *equalities {
	switch x := on.(type) {
	case *tsql.Logic:
		if x.Op != "AND" {
			return nil
		}
		one, two := c.equalities(x.L, left, right), c.equalities(x.R, left, right)
		if one == nil || two == nil {
			return nil
		}
		return &equalities{append(one.left, two.left...), append(one.right, two.right...)}
	case *tsql.Compare:
		l, ok := x.L.(*tsql.ColumnRef)
		r, also := x.R.(*tsql.ColumnRef)
		if !ok || !also || x.Op != "=" {
			return nil
		}
		a, b := placeIn(l, left), placeIn(r, right)
		if a < 0 || b < 0 {
			a, b = placeIn(r, left), placeIn(l, right)
		}
		if a < 0 || b < 0 || !sameKey(left.columns()[a], right.columns()[b]) {
			return nil
		}
		return &equalities{[]int{a}, []int{b}}
	}
	return nil
}

func placeIn(ref *tsql.ColumnRef, p plan) int {
	at, err := (&scope{columns: p.columns()}).find(ref)
	if err != nil {
		return -1
	}
	return at
}

// sameKey tells whether equal values of two columns have equal keys.
func sameKey(a, b column) bool {
	return a.typ.Kind == b.typ.Kind || isInteger(a.typ.Kind) && isInteger(b.typ.Kind) || isText(a.typ.Kind) && isText(b.typ.Kind)
}

// hashes finds rows of a store by the values of some columns. Stores never change, so each is made once.
type hashes struct {
	mu   sync.Mutex
	made map[string]map[string][]int32
}

func (s *store) hashed(columns []int) map[string][]int32 {
	name := make([]byte, len(columns))
	for i, c := range columns {
		name[i] = byte(c)
	}
	s.hashes.mu.Lock()
	defer s.hashes.mu.Unlock()
	if found := s.hashes.made[string(name)]; found != nil {
		return found
	}
	out := map[string][]int32{}
	buffer := make([]any, len(s.cells))
	for row := range s.rows {
		s.read(row, buffer)
		key := rowKey(buffer, columns)
		out[key] = append(out[key], int32(row))
	}
	if s.hashes.made == nil {
		s.hashes.made = map[string]map[string][]int32{}
	}
	s.hashes.made[string(name)] = out
	return out
}

// byHash is the table on the right of a join that is looked up by hash; nil when there is none.
func (p *joinPlan) byHash() *scanPlan {
	if p.kind != "INNER" || p.equal == nil {
		return nil
	}
	return scanOf(p.right)
}

// candidates gives the rows on the right that one on the left may meet.
func (p *joinPlan) candidates(f *frame) (func(left []any, visit func(right []any) error) error, error) {
	if inner := p.byHash(); inner != nil {
		found := inner.rows.hashed(p.equal.right)
		buffer := make([]any, len(inner.cols))
		return func(left []any, visit func([]any) error) error {
			for _, at := range found[rowKey(left, p.equal.left)] {
				inner.rows.read(int(at), buffer)
				if err := visit(buffer); err != nil {
					return err
				}
			}
			return nil
		}, nil
	}
	inner, err := collect(p.right, f)
	return func(_ []any, visit func([]any) error) error {
		for _, right := range inner {
			if err := visit(right); err != nil {
				return err
			}
		}
		return nil
	}, err
}

// eachTimes is an inner join; of other kinds every row comes by itself. A hash only finds candidates: the
// condition decides.
func (p *joinPlan) eachTimes(f *frame, yield func([]any, int64) error) error {
	if p.kind != "INNER" {
		return p.nested(f, func(row []any) error { return yield(row, 1) })
	}
	candidates, err := p.candidates(f)
	if err != nil {
		return err
	}
	width := len(p.left.columns())
	buffer := make([]any, width+len(p.right.columns()))
	fr := &frame{outer: f, run: p.run, row: buffer}
	return eachTimes(p.left, f, func(row []any, times int64) error {
		copy(buffer, row)
		err := candidates(row, func(right []any) error {
			copy(buffer[width:], right)
			v, err := p.on.eval(fr)
			if err != nil || v != true {
				return err
			}
			return yield(buffer, times)
		})
		if err != nil {
			return err
		}
		return p.run.ended()
	})
}

// each hands over every row of the join.
func (p *joinPlan) each(f *frame, yield func([]any) error) error {
	if p.kind != "INNER" {
		return p.nested(f, yield)
	}
	return p.eachTimes(f, func(row []any, times int64) error {
		for range times {
			if err := yield(row); err != nil {
				return err
			}
		}
		return nil
	})
}
