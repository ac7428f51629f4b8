package sqlserver

import (
	"cmp"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// uniqueKey enforces a primary key or unique index by the sorted order of its rows.
type uniqueKey struct {
	index  tsql.IndexDef
	places []int
	order  *keyOrder // nil until needed
}

// keyOrder is the order of the rows of a store by a key; rows is nil if they are in that order.
type keyOrder struct{ rows []int32 }

// at is the row at a position of the order.
func (o *keyOrder) at(place int) int {
	if o.rows == nil {
		return place
	}
	return int(o.rows[place])
}

const noDuplicate = -1

// inOrder finds the order of the rows of a table's store.
func (u *uniqueKey) inOrder(s *store) *keyOrder {
	if u.order == nil {
		u.order, _ = u.extended(&keyOrder{}, s, 0)
	}
	return u.order
}

// extended merges the rows of a store from one on into the order of those before. duplicate is the first row
// with the key of an earlier row.
func (u *uniqueKey) extended(o *keyOrder, s *store, from int) (out *keyOrder, duplicate int) {
	if u.ascending(o, s, from) {
		if o.rows != nil {
			o = &keyOrder{rows: append(o.rows[:len(o.rows):len(o.rows)], numbered(from, s.rows)...)}
		}
		return o, noDuplicate
	}
	rows := numbered(0, s.rows)
	slices.SortFunc(rows, func(a, b int32) int {
		return cmp.Or(s.compare(int(a), int(b), u.places), cmp.Compare(a, b))
	})
	duplicate = noDuplicate
	for place := 1; place < len(rows); place++ {
		before, row := int(rows[place-1]), int(rows[place])
		if s.compare(before, row, u.places) == 0 && (duplicate == noDuplicate || row < duplicate) {
			duplicate = row
		}
	}
	return &keyOrder{rows: rows}, duplicate
}

// ascending reports whether the rows from one on follow all others in the order of the key, each once.
func (u *uniqueKey) ascending(o *keyOrder, s *store, from int) bool {
	for row := max(from, 1); row < s.rows; row++ {
		before := row - 1
		if row == from {
			before = o.at(from - 1)
		}
		if s.compare(before, row, u.places) >= 0 {
			return false
		}
	}
	return true
}

func numbered(from, to int) []int32 {
	out := make([]int32, 0, to-from)
	for row := from; row < to; row++ {
		out = append(out, int32(row))
	}
	return out
}

// insert adds rows after checking keys.
func (t *table) insert(rows *store) error {
	if t.repeated != nil {
		return errCounted
	}
	before := t.rows
	after := before.with(rows)
	orders := make([]*keyOrder, len(t.unique))
	for i, u := range t.unique {
		order, duplicate := u.extended(u.inOrder(before), after, before.rows)
		if duplicate != noDuplicate {
			return u.duplicate(t, after, duplicate)
		}
		orders[i] = order
	}
	t.rows = after
	for i, u := range t.unique {
		u.order = orders[i]
	}
	return nil
}

// replace replaces all rows by others; stores passed to readers before stay as they were.
func (t *table) replace(rows *store) {
	t.repeated, t.counted = nil, 0
	t.rows = rows.clipped()
	for _, u := range t.unique {
		u.order = nil
	}
}

// checkKeys finds the order of the rows by every key, or returns the error of one that is not unique.
func (t *table) checkKeys() error {
	for _, u := range t.unique {
		order, duplicate := u.extended(&keyOrder{}, t.rows, 0)
		if duplicate != noDuplicate {
			return u.duplicate(t, t.rows, duplicate)
		}
		u.order = order
	}
	return nil
}

// ordered is a key that yields the rows in the order of some columns without a sort, as the optimiser would
// use it: clustered, or any range index of a memory-optimised table. Nil if there is none.
func (t *table) ordered(columns []int) *uniqueKey {
	for _, u := range t.unique {
		usable := !u.index.Hash && (t.memoryOptimized || u.index.Clustered)
		for i := range min(len(columns), len(u.places)) {
			usable = usable && columns[i] == u.places[i]
		}
		if usable {
			return u
		}
	}
	return nil
}

func (u *uniqueKey) duplicate(t *table, s *store, row int) error {
	var values []string
	for _, p := range u.places {
		v := s.cells[p].value(row)
		text, err := toText(v)
		if v == nil || err != nil {
			text = "<NULL>"
		}
		values = append(values, text)
	}
	key := "(" + strings.Join(values, ", ") + ")"
	if u.index.Primary {
		return tsql.Errorf(2627, 0, "Violation of PRIMARY KEY constraint '%s'. Cannot insert duplicate key in object '%s'. "+
			"The duplicate key value is %s.", u.index.Name, t.fullName(), key)
	}
	return tsql.Errorf(2601, 0, "Cannot insert duplicate key row in object '%s' with unique index '%s'. The duplicate key value is %s.",
		t.fullName(), u.index.Name, key)
}
