package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tsql"
)

// aggregate compiles a call of an aggregate function.
func (c *compiler) aggregate(call *tsql.Call) (*aggregate, error) {
	name := fold(call.Name.Object())
	a := &aggregate{name: name, call: call, at: c, distinct: call.Distinct, nullable: !strings.HasPrefix(name, "count")}
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
func (a *aggregate) feed(acc accumulator, row []any, seen map[string]bool, times int64) error {
	if a.arg == nil {
		return addTimes(acc, nil, times)
	}
	v, err := a.arg.eval(row)
	if err != nil || v == nil {
		return err
	}
	if a.distinct {
		key := string(appendKey(nil, v))
		if seen[key] {
			return nil
		}
		seen[key], times = true, 1
	}
	return addTimes(acc, v, times)
}

// addTimes adds a value as often as it occurs.
func addTimes(acc accumulator, v any, times int64) error {
	if n, ok := v.(int64); ok && times > 1 {
		if sum, ok := acc.(*total); ok {
			return sum.addWhole(n, times)
		}
	}
	switch acc := acc.(type) {
	case *counter:
		acc.n += times
		return nil
	case *extreme:
		return acc.add(v)
	}
	for range times {
		if err := acc.add(v); err != nil {
			return err
		}
	}
	return nil
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
	seen []map[string]bool
}

func (p *aggregatePlan) columns() []column { return p.cols }

func (p *aggregatePlan) newGroup(keys []any) *group {
	g := &group{keys: keys}
	for _, a := range p.aggregates {
		g.accs = append(g.accs, a.fresh())
		g.seen = append(g.seen, map[string]bool{})
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
			v, err := acc.result()
			if err != nil {
				return err
			}
			row = append(row, v)
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
			if err := a.feed(g.accs[i], row, g.seen[i], times); err != nil {
				return err
			}
		}
		return nil
	})
	return order, err
}
