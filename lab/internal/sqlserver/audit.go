package sqlserver

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/tsql"
)

// mostChanges is how many statements an audit keeps: enough to show that there was an unwanted one.
const mostChanges = 1000

// Audit is what clients have asked for since the lab started.
func (i *Instance) Audit() guest.Audit {
	i.mu.Lock()
	defer i.mu.Unlock()
	told := i.audit
	told.Changes = append([]string{}, told.Changes...)
	return told
}

// audit records a statement that is more than a read, even if it is not carried out. A statement that counts as a read
// changes nothing that outlives its session.
func (b *batch) audit(what string) {
	if what == "" {
		return
	}
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	if len(i.audit.Changes) < mostChanges {
		i.audit.Changes = append(i.audit.Changes, fmt.Sprintf("%s (%s, %s)", what, b.s.login.User, b.s.db.name))
	}
}

// readers are the system procedures that change nothing.
var readers = []string{
	"sp_executesql", "sp_datatype_info_100", "sp_datatype_info", "sp_readerrorlog", "xp_readerrorlog",
	"sp_getapplock", "sp_releaseapplock",
}

// changingCall is what a procedure would change; empty for one that reads.
func changingCall(name string) string {
	if slices.Contains(readers, fold(name)) {
		return ""
	}
	return "EXEC " + name
}

// changing is what a statement would change; empty for one that reads, and for a compound statement.
func changing(st tsql.Statement) string {
	switch st := st.(type) {
	case *tsql.SelectStatement:
		if changesData(st) {
			return "SELECT INTO"
		}
		return ""
	case *tsql.Exec:
		return changingCall(st.Name.Object())
	case *tsql.Accepted:
		if strings.HasPrefix(st.What, "SET ") || st.What == "DBCC TRACESTATUS" {
			return ""
		}
		return st.What
	case *tsql.Insert, *tsql.Delete, *tsql.CreateTable, *tsql.CreateIndex, *tsql.CreateSchema,
		*tsql.CreateProcedure, *tsql.Drop, *tsql.CreateDatabase, *tsql.AlterDatabase, *tsql.AlterServer, *tsql.ResourcePool,
		*tsql.ResourceGovernor, *tsql.Backup:
		return reflect.TypeOf(st).Elem().Name()
	}
	return ""
}
