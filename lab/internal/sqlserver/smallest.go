package sqlserver

import (
	"container/heap"
	"sort"
)

// smallest are the first n rows of a stable order of a plan; no more than n rows are kept at any time.
func smallest(p plan, f *frame, keys []sortKey, n int64) ([][]any, error) {
	h := &rowHeap{keys: keys}
	came := 0
	err := p.each(f, func(row []any) error {
		came++
		switch {
		case int64(len(h.kept)) < n:
			heap.Push(h, numberedRow{row: append([]any(nil), row...), came: came})
		case compareRows(row, h.kept[0].row, keys) < 0: // of equal rows those that came first stay
			copy(h.kept[0].row, row)
			h.kept[0].came = came
			heap.Fix(h, 0)
		}
		return nil
	})
	sort.Slice(h.kept, func(a, b int) bool { return h.before(a, b) })
	out := make([][]any, len(h.kept))
	for i, kept := range h.kept {
		out[i] = kept.row
	}
	return out, err
}

// numberedRow is a row and its number in the input.
type numberedRow struct {
	row  []any
	came int
}

// rowHeap keeps rows, the last one in the order on top.
type rowHeap struct {
	keys []sortKey
	kept []numberedRow
}

// before orders two kept rows; equal rows keep the order in which they came.
func (h *rowHeap) before(a, b int) bool {
	if c := compareRows(h.kept[a].row, h.kept[b].row, h.keys); c != 0 {
		return c < 0
	}
	return h.kept[a].came < h.kept[b].came
}

func (h *rowHeap) Len() int           { return len(h.kept) }
func (h *rowHeap) Less(i, j int) bool { return h.before(j, i) }
func (h *rowHeap) Swap(i, j int)      { h.kept[i], h.kept[j] = h.kept[j], h.kept[i] }
func (h *rowHeap) Push(x any)         { h.kept = append(h.kept, x.(numberedRow)) }

func (h *rowHeap) Pop() any {
	last := h.kept[len(h.kept)-1]
	h.kept = h.kept[:len(h.kept)-1]
	return last
}
