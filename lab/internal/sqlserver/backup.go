package sqlserver

import (
	"strings"

	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// backup is BACKUP to the null device, which only permits the log to be truncated.
func (b *batch) backup(st *tsql.Backup) error {
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	db := i.lookup(st.Database)
	kind := map[bool]string{true: "LOG", false: "DATABASE"}[st.Log]
	switch {
	case db == nil:
		return tsql.Errorf(911, st.Line(), "Database '%s' does not exist. Make sure that the name is entered correctly.", st.Database)
	case !strings.EqualFold(strings.TrimSuffix(st.Path, ":"), "NUL"):
		return tsql.Unmodelled(st.Line(), "BACKUP %s to %s: only to NUL", kind, st.Path)
	}
	db.backedUp = true
	b.s.rowCount = 0
	b.info(tds.Message{Number: 3014, State: 1, Class: 0, Line: int32(st.Line()),
		Text: "BACKUP " + kind + " successfully processed 300 pages in 0.010 seconds (234.375 MB/sec)."})
	return nil
}
