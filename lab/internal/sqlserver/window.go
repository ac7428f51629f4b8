package sqlserver

import "vnuma.dev/lab/internal/tsql"

// windowPlan adds the value of ROW_NUMBER, RANK or DENSE_RANK to each row.
type windowPlan struct {
	input     plan
	function  string
	partition []scalar
	order     []scalar
	desc      []bool
	cols      []column
	run       *run
}

func (p *windowPlan) columns() []column { return p.cols }

// window compiles a ranking function over the rows built so far.
func (c *compiler) window(call *tsql.Call, input plan) (*windowPlan, error) {
	name := fold(call.Name.Object())
	switch name {
	case "row_number", "rank", "dense_rank":
	default:
		return nil, tsql.Unmodelled(call.Name.Line, "%s with an OVER clause", call.Name.Object())
	}
	if call.Over.Order == nil {
		return nil, tsql.Errorf(4112, call.Name.Line, "The function '%s' must have an OVER clause with ORDER BY.", call.Name.Object())
	}
	p := &windowPlan{input: input, function: name, run: c.run}
	var err error
	if p.partition, err = c.exprs(call.Over.Partition); err != nil {
		return nil, err
	}
	for _, item := range call.Over.Order {
		if !constantOrder(item.X) {
			key, err := c.expr(item.X)
			if err != nil {
				return nil, err
			}
			p.order, p.desc = append(p.order, key), append(p.desc, item.Desc)
		}
	}
	p.cols = append(append([]column(nil), input.columns()...), column{typ: typeBigInt})
	return p, nil
}

// constantOrder recognises (SELECT NULL) and the like: any order will do.
func constantOrder(x tsql.Expr) bool {
	q, ok := x.(*tsql.Subquery)
	if !ok {
		return false
	}
	s, ok := q.Query.Body.(*tsql.Select)
	return ok && s.From == nil
}

func (p *windowPlan) each(f *frame, yield func([]any) error) error {
	width := len(p.cols) - 1
	if len(p.order)+len(p.partition) == 0 { // no order: number the rows as they come
		buffer := make([]any, width+1)
		var n int64
		return p.input.each(f, func(row []any) error {
			n++
			copy(buffer, row)
			buffer[width] = n
			return yield(buffer)
		})
	}
	rows, err := p.keyed(f, width)
	if err != nil {
		return err
	}
	keys := places(len(p.partition) + len(p.order))
	var sortKeys []sortKey
	for i := range keys {
		desc := i >= len(p.partition) && p.desc[i-len(p.partition)]
		sortKeys = append(sortKeys, sortKey{column: width + 1 + i, desc: desc})
	}
	return p.number(sorted(rows, sortKeys), width, sortKeys, yield)
}

// keyed gathers rows with a place for the number and their partition and order keys behind it.
func (p *windowPlan) keyed(f *frame, width int) ([][]any, error) {
	exprs := append(append([]scalar(nil), p.partition...), p.order...)
	fr := &frame{outer: f, run: p.run}
	var rows [][]any
	err := p.input.each(f, func(row []any) error {
		fr.row = row
		out := make([]any, width+1+len(exprs))
		copy(out, row)
		_, err := evaluate(exprs, fr, out[width+1:])
		rows = append(rows, out)
		return err
	})
	return rows, err
}

func (p *windowPlan) number(rows [][]any, width int, keys []sortKey, yield func([]any) error) error {
	partition := keys[:len(p.partition)]
	var row, rank, dense int64
	for i, r := range rows {
		first := i == 0 || compareRows(rows[i-1], r, partition) != 0
		if first {
			row, rank, dense = 0, 0, 0
		}
		row++
		if first || compareRows(rows[i-1], r, keys) != 0 {
			rank = row
			dense++
		}
		switch p.function {
		case "row_number":
			r[width] = row
		case "rank":
			r[width] = rank
		default:
			r[width] = dense
		}
		if err := yield(r[:width+1]); err != nil {
			return err
		}
	}
	return nil
}
