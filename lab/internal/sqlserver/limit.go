package sqlserver

import (
	"vnuma.dev/lab/internal/tsql"
)

// limitPlan is TOP.
type limitPlan struct {
	input plan
	take  scalar
	run   *run
}

func (p *limitPlan) columns() []column { return p.input.columns() }

func (p *limitPlan) each(yield func([]any) error) error {
	v, err := p.take.eval(nil)
	if err != nil {
		return err
	}
	take, ok := v.(int64)
	if !ok || take < 0 {
		return tsql.Errorf(127, 0, "A TOP N or FETCH rowcount value may not be negative.")
	}
	var n int64
	if take == 0 {
		return nil
	}
	return stoppable(p.input.each(func(row []any) error {
		n++
		if err := yield(row); err != nil || n < take {
			return err
		}
		return errStop
	}))
}
