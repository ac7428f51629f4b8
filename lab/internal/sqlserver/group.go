package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// aggregate compiles a call of an aggregate function.
func (c *compiler) aggregate(call *tsql.Call) (*aggregate, error) {
	name := fold(call.Name.Object())
	a := &aggregate{name: name, call: call, at: c, nullable: !strings.HasPrefix(name, "count")}
	if call.Star != (len(call.Args) == 0) || call.Star && a.nullable || !call.Star && len(call.Args) != 1 {
		return nil, tsql.Errorf(174, call.Name.Line, "The %s function requires 1 argument(s).", call.Name.Object())
	}
	argType := typeInt
	if !call.Star {
		arg, err := c.expr(call.Args[0])
		if err != nil {
			return nil, err
		}
		a.arg, argType = &arg, arg.typ
	}
	var err error
	a.typ, a.fresh, err = aggregates[name](argType)
	return a, err
}

// feed passes one row to the accumulator, as often as it occurs.
func (a *aggregate) feed(acc accumulator, row []any, times int64) error {
	if a.arg == nil {
		return acc.add(nil, times)
	}
	v, err := a.arg.eval(row)
	if err != nil || v == nil {
		return err
	}
	return acc.add(v, times)
}

// aggregatePlan groups its input; without GROUP BY there is one group, even of nothing.
type aggregatePlan struct {
	input      plan
	keys       []scalar
	aggregates []*aggregate
	cols       []column
	grouped    bool
	run        *run
}

type group struct {
	keys []any
	accs []accumulator
}

func (p *aggregatePlan) columns() []column { return p.cols }

func (p *aggregatePlan) newGroup(keys []any) *group {
	g := &group{keys: keys}
	for _, a := range p.aggregates {
		g.accs = append(g.accs, a.fresh())
	}
	return g
}

func (p *aggregatePlan) each(yield func([]any) error) error {
	row, ok, err := p.overProduct()
	if !ok && err == nil {
		row, ok = p.overCounted()
	}
	switch {
	case err != nil:
		return err
	case ok:
		return yield(row)
	}
	groups, err := p.gather()
	if err != nil {
		return err
	}
	for _, g := range groups {
		row := append([]any(nil), g.keys...)
		for _, acc := range g.accs {
			row = append(row, acc.result())
		}
		if err := yield(row); err != nil {
			return err
		}
	}
	return nil
}

// gather reads the input; groups keep the order in which they first occurred.
func (p *aggregatePlan) gather() ([]*group, error) {
	var order []*group
	if !p.grouped {
		order = []*group{p.newGroup(nil)}
	}
	groups := map[string]*group{}
	all := places(len(p.keys))
	n := 0
	err := eachTimes(p.input, func(row []any, times int64) error {
		if n++; n&4095 == 0 {
			if err := p.run.ended(); err != nil {
				return err
			}
		}
		g := (*group)(nil)
		if !p.grouped {
			g = order[0]
		} else {
			keys, err := evaluate(p.keys, row, make([]any, len(p.keys)))
			if err != nil {
				return err
			}
			id := rowKey(keys, all)
			if g = groups[id]; g == nil {
				g = p.newGroup(keys)
				groups[id] = g
				order = append(order, g)
			}
		}
		for i, a := range p.aggregates {
			if err := a.feed(g.accs[i], row, times); err != nil {
				return err
			}
		}
		return nil
	})
	return order, err
}
