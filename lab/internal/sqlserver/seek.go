package sqlserver

import (
	"sort"

	"vnuma.dev/lab/internal/tsql"
)

// seek limits a scan to the rows whose key may be the value in WHERE. The filter above still decides.
type seek struct {
	order *keyOrder
	place int // column of the key
	value scalar
}

// seekKey lets a scan below `WHERE key = value` read only the rows of that key, for a variable or literal, and
// an integer key of one column that the table is ordered by. The caller holds Instance.mu.
func (b *block) seekKey() {
	equal, ok := b.sel.Where.(*tsql.Compare)
	scan := scanOf(b.input)
	if !ok || equal.Op != "=" || scan == nil {
		return
	}
	ref, ok := equal.L.(*tsql.ColumnRef)
	if !ok || !variableOrLiteral(equal.R) {
		return
	}
	place, err := b.at.scope.find(ref)
	if err != nil || place < 0 || !isInteger(scan.cols[place].typ.Kind) {
		return
	}
	key := scan.table.ordered([]int{place})
	value, err := b.at.expr(equal.R)
	if key == nil || len(key.places) != 1 || err != nil || !isInteger(value.typ.Kind) {
		return
	}
	scan.seek = &seek{order: key.inOrder(scan.rows), place: place, value: value}
}

func variableOrLiteral(x tsql.Expr) bool {
	switch x.(type) {
	case *tsql.VarRef, *tsql.NumberLit:
		return true
	}
	return false
}

// rows are the positions in the key's order that have the value: from one up to the other, exclusive.
func (k *seek) rows(s *store, r *run) (from, to int, err error) {
	v, err := k.value.eval(nil)
	wanted, ok := v.(int64)
	if err != nil || !ok { // NULL equals nothing
		return 0, 0, err
	}
	at := func(place int) int64 {
		n, _ := s.cells[k.place].value(k.order.at(place)).(int64)
		return n
	}
	from = sort.Search(s.rows, func(place int) bool { return at(place) >= wanted })
	to = from
	for to < s.rows && at(to) == wanted {
		to++
	}
	return from, to, nil
}
