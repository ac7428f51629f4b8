package sqlserver

import (
	"slices"

	"vnuma.dev/lab/internal/tds"
)

// Learned is where a real server was seen to answer otherwise than the lab does by itself.
type Learned struct {
	Errors  map[int32]int32     // the number of an error, the number that it has there
	Without map[string][]string // a view, without its schema: the columns that it lacks there
}

// learned gives an error the number that it was seen to have.
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
