package sqlserver

import (
	"slices"

	"vnuma.dev/lab/internal/tds"
)

// Learned is where a real server answered differently from the lab's default.
type Learned struct {
	Errors  map[int32]int32     // an error's number in the lab, its number there
	Without map[string][]string // a view, without its schema: the columns missing there
}

// learned gives an error the number seen on a real server.
func (i *Instance) learned(m tds.Message) tds.Message {
	if seen, ok := i.config.Learned.Errors[int32(m.Number)]; ok {
		m.Number = seen
	}
	return m
}

// lacks reports whether a view was seen without a column.
func (i *Instance) lacks(view, column string) bool {
	return slices.Contains(i.config.Learned.Without[view], column)
}
