package tds

import (
	"fmt"
	"math"
)

// CrossRows sends every outer row joined with every inner row, outer by outer, and returns how many rows it sent.
// The outer rows fill the first columns, the inner rows the others.
//
// Each row is encoded once: sending a joined row is two copies. It stops between two rows with Writer.Err, and
// blocks while the client does not read.
func (w *Writer) CrossRows(outer, inner [][]any) (int64, error) {
	if w.Err() != nil || len(outer) == 0 || len(inner) == 0 {
		return 0, w.err
	}
	split := len(outer[0])
	if split > len(w.columns) {
		w.refuse(fmt.Errorf("%d outer values for %d columns", split, len(w.columns)))
		return 0, w.err
	}
	block, ends, err := encodeRows(w.columns[split:], inner)
	if err != nil {
		w.refuse(err)
		return 0, w.err
	}
	w.settle()
	before := w.rows
	for _, row := range outer {
		w.scratch, err = appendRow(append(w.scratch[:0], tokenRow), w.columns[:split], row)
		if err != nil {
			w.refuse(err)
			break
		}
		if !w.joined(w.scratch, block, ends) {
			break
		}
	}
	return w.rows - before, w.Err()
}

// encodeRows encodes rows into one block; row i ends at ends[i].
func encodeRows(columns []Column, rows [][]any) (block []byte, ends []int, err error) {
	ends = make([]int, 0, len(rows))
	for _, row := range rows {
		if block, err = appendRow(block, columns, row); err != nil {
			return nil, nil, err
		}
		ends = append(ends, len(block))
	}
	return block, ends, nil
}

// joined sends one outer row with every inner row; false when the response is over.
func (w *Writer) joined(outer, block []byte, ends []int) bool {
	allowed := int64(math.MaxInt64)
	if w.DropAfter > 0 {
		allowed = w.DropAfter
	}
	start := 0
	for _, end := range ends {
		if w.stopped.Load() {
			return false
		}
		if w.rows >= allowed {
			w.drop()
			return false
		}
		w.out.writeRow(outer, block[start:end])
		w.rows++
		start = end
	}
	return w.Err() == nil
}
