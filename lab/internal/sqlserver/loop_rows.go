package sqlserver

import "vnuma.dev/lab/internal/tsql"

// loopRows are the rows that a counting loop inserted, kept as what they follow from: each pass of the loop added rows
// whose integers grow by the same step every time.
type loopRows struct {
	first [][]any   // rows of the first pass
	step  [][]int64 // what each column grows by a pass, 0 for those that stay
	times int64     // passes
}

// mostExpanded is how many such rows become rows of their own, when something other than a loop changes them.
const mostExpanded = 5_000_000

func (s *loopRows) count() int64 { return s.times * int64(len(s.first)) }

// row puts one row of a pass into a slice.
func (s *loopRows) row(pass int64, n int, into []any) []any {
	copy(into, s.first[n])
	for i, step := range s.step[n] {
		if step != 0 {
			into[i] = s.first[n][i].(int64) + step*pass
		}
	}
	return into
}

// loopRowsPlan reads the rows of a table, and those that loops inserted.
type loopRowsPlan struct {
	cols   []column
	rows   *scanPlan
	looped []*loopRows
	run    *run
}

func (p *loopRowsPlan) columns() []column { return p.cols }

func (p *loopRowsPlan) count() int64 {
	n := int64(p.rows.rows.rows)
	for _, s := range p.looped {
		n += s.count()
	}
	return n
}

func (p *loopRowsPlan) each(f *frame, yield func([]any) error) error {
	if err := p.rows.each(f, yield); err != nil {
		return err
	}
	buffer := make([]any, len(p.cols))
	for _, s := range p.looped {
		for pass := range s.times {
			if pass&1023 == 1023 {
				if err := p.run.ended(); err != nil {
					return err
				}
			}
			for n := range s.first {
				if err := yield(s.row(pass, n, buffer)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// overLoops counts the rows of loops without making them; ok is false when the query asks for anything else.
func (p *aggregatePlan) overLoops() (row []any, ok bool) {
	input := p.input
	for {
		renamed, is := input.(*renamedPlan)
		if !is {
			break
		}
		input = renamed.plan
	}
	all, is := input.(*loopRowsPlan)
	if !is || p.grouped {
		return nil, false
	}
	for _, a := range p.aggregates {
		if a.arg != nil {
			return nil, false
		}
		row = append(row, all.count())
	}
	return row, true
}

// expandLoops turns the rows of loops into plain rows, before something changes them.
func (t *table) expandLoops() error {
	if len(t.looped) == 0 {
		return nil
	}
	rows := t.empty()
	for _, s := range t.looped {
		if s.count() > mostExpanded {
			return tsql.Unmodelled(0, "changing a table into which loops inserted more than %d rows", mostExpanded)
		}
		buffer := make([]any, len(t.columns))
		for pass := range s.times {
			for n := range s.first {
				if err := rows.add(s.row(pass, n, buffer)); err != nil {
					return err
				}
			}
		}
	}
	t.rows, t.looped = t.rows.with(rows), nil
	for _, u := range t.unique {
		u.order = nil
	}
	return nil
}

// mayAdd tells whether the rows of a loop certainly break no key of the table.
func (t *table) mayAdd(s *loopRows) bool {
	for _, u := range t.unique {
		if len(u.places) != 1 || !s.distinctIn(u.places[0]) {
			return false
		}
		low, high := s.rangeOf(u.places[0])
		for _, other := range t.looped {
			if from, to := other.rangeOf(u.places[0]); low <= to && from <= high {
				return false
			}
		}
		for row := range t.rows.rows {
			if v, ok := t.rows.cells[u.places[0]].value(row).(int64); !ok || low <= v && v <= high {
				return false
			}
		}
	}
	return true
}

// distinctIn tells whether a column certainly has no value twice within the loop.
func (s *loopRows) distinctIn(place int) bool {
	step := s.step[0][place]
	if step <= 0 {
		return false
	}
	seen := map[int64]bool{}
	for n := range s.first {
		v, ok := s.first[n][place].(int64)
		if !ok || s.step[n][place] != step || seen[(v%step+step)%step] {
			return false
		}
		seen[(v%step+step)%step] = true
	}
	return true
}

// rangeOf are the least and the greatest value of an integer column that grows.
func (s *loopRows) rangeOf(place int) (low, high int64) {
	for n := range s.first {
		from, _ := s.first[n][place].(int64)
		to := from + s.step[n][place]*(s.times-1)
		if n == 0 || from < low {
			low = from
		}
		if n == 0 || to > high {
			high = to
		}
	}
	return low, high
}
