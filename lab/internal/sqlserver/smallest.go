package sqlserver

import (
	"container/heap"
	"sort"
)

// smallest are the first n rows of a stable order, found without ordering the others.
func smallest(rows [][]any, keys []sortKey, n int64) [][]any {
	if int64(len(rows)) <= n || n == 0 {
		return sorted(rows, keys)[:min(n, int64(len(rows)))]
	}
	h := &rowHeap{keys: keys, rows: rows}
	for i := range rows {
		switch {
		case int64(len(h.kept)) < n:
			heap.Push(h, i)
		case h.before(i, h.kept[0]):
			h.kept[0] = i
			heap.Fix(h, 0)
		}
	}
	sort.Slice(h.kept, func(a, b int) bool { return h.before(h.kept[a], h.kept[b]) })
	out := make([][]any, len(h.kept))
	for i, at := range h.kept {
		out[i] = rows[at]
	}
	return out
}

// rowHeap keeps places of rows, the last one in the order on top.
type rowHeap struct {
	keys []sortKey
	rows [][]any
	kept []int
}

// before orders two places; equal rows keep the order in which they came.
func (h *rowHeap) before(a, b int) bool {
	if c := compareRows(h.rows[a], h.rows[b], h.keys); c != 0 {
		return c < 0
	}
	return a < b
}

func (h *rowHeap) Len() int           { return len(h.kept) }
func (h *rowHeap) Less(i, j int) bool { return h.before(h.kept[j], h.kept[i]) }
func (h *rowHeap) Swap(i, j int)      { h.kept[i], h.kept[j] = h.kept[j], h.kept[i] }
func (h *rowHeap) Push(x any)         { h.kept = append(h.kept, x.(int)) }

func (h *rowHeap) Pop() any {
	last := h.kept[len(h.kept)-1]
	h.kept = h.kept[:len(h.kept)-1]
	return last
}
