package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

// limitPlan is TOP and OFFSET ... FETCH.
type limitPlan struct {
	input   plan
	skip    *scalar
	take    *scalar
	percent bool
	ties    []sortKey // TOP ... WITH TIES
	run     *run
}

func (p *limitPlan) columns() []column { return p.input.columns() }

func (p *limitPlan) each(f *frame, yield func([]any) error) error {
	skip, err := p.count(p.skip, f, 0)
	if err != nil {
		return err
	}
	take, err := p.count(p.take, f, -1)
	if err != nil {
		return err
	}
	if p.percent {
		return p.eachPercent(f, take, yield)
	}
	if take == 0 {
		return nil
	}
	var n int64
	var last []any
	defer func() { p.run.passed(p, n) }()
	return stoppable(p.input.each(f, func(row []any) error {
		n++
		switch {
		case n <= skip:
			return nil
		case take >= 0 && n > skip+take: // only reached to look for ties
			if compareRows(last, row, p.ties) != 0 {
				return errStop
			}
		}
		if err := yield(row); err != nil {
			return err
		}
		if take >= 0 && n == skip+take {
			if p.ties == nil {
				return errStop
			}
			last = append([]any(nil), row...)
		}
		return nil
	}))
}

func (p *limitPlan) eachPercent(f *frame, percent int64, yield func([]any) error) error {
	rows, err := collect(p.input, f)
	if err != nil {
		return err
	}
	n := (int64(len(rows))*percent + 99) / 100
	return (&rowsPlan{rows: rows[:min(n, int64(len(rows)))], run: p.run}).each(f, yield)
}

func (p *limitPlan) count(s *scalar, f *frame, otherwise int64) (int64, error) {
	if s == nil {
		return otherwise, nil
	}
	v, err := s.eval(&frame{outer: f, run: p.run})
	if err != nil {
		return 0, err
	}
	n, ok := v.(int64)
	if !ok || n < 0 {
		return 0, tsql.Errorf(127, 0, "A TOP N or FETCH rowcount value may not be negative.")
	}
	return n, nil
}
