package sqlserver

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/tds"
	"vnuma.dev/lab/internal/tsql"
)

// Server permissions that the lab enforces.
const (
	controlServer   = "CONTROL SERVER"
	alterSettings   = "ALTER SETTINGS"
	alterState      = "ALTER SERVER STATE"
	viewState       = "VIEW SERVER STATE"
	viewPerformance = "VIEW SERVER PERFORMANCE STATE" // since 2022, a part of VIEW SERVER STATE
	createDatabase  = "CREATE ANY DATABASE"
)

// includes are the permissions that others include.
// Source: https://learn.microsoft.com/sql/relational-databases/security/permissions-database-engine
var includes = map[string][]string{
	viewPerformance:              {viewState, alterState},
	"VIEW SERVER SECURITY STATE": {viewState, alterState},
	viewState:                    {alterState},
	createDatabase:               {"ALTER ANY DATABASE"},
}

// limited reports whether the session's login may do less than a member of sysadmin.
func (s *Session) limited() bool {
	if s.login.Kerberos {
		return !s.inst.openToTickets()
	}
	return !strings.EqualFold(s.login.User, s.inst.config.User)
}

// authScheme is how the session logged in, as sys.dm_exec_connections shows it.
func (s *Session) authScheme() string {
	if s.login.Kerberos {
		return "KERBEROS"
	}
	return "SQL"
}

// may reports whether the session's login has a server permission.
func (s *Session) may(permission string) bool {
	if !s.limited() {
		return true
	}
	for user, granted := range s.inst.config.Logins {
		if strings.EqualFold(user, s.login.User) {
			return slices.Contains(granted, permission) || slices.Contains(granted, controlServer) ||
				slices.ContainsFunc(includes[permission], func(wider string) bool { return slices.Contains(granted, wider) })
		}
	}
	return false
}

// isServerPermission reports whether a permission is the server's; all logins have those within databases.
func isServerPermission(name string) bool {
	return strings.Contains(name, "SERVER") || strings.Contains(name, " ANY ") || name == alterSettings
}

// known checks a login's name and password, or only the name if a ticket has proven it.
func (i *Instance) known(l tds.Login) bool {
	if l.Kerberos {
		return i.openToTickets() || i.named(l.User)
	}
	if l.Password != i.config.Password || strings.Contains(l.User, `\`) {
		return false
	}
	return strings.EqualFold(l.User, i.config.User) || i.named(l.User)
}

// openToTickets reports whether every account of the domain is a member of sysadmin: no login of one is named.
func (i *Instance) openToTickets() bool {
	for name := range i.config.Logins {
		if strings.Contains(name, `\`) {
			return false
		}
	}
	return true
}

// named reports whether the scenario has a login of that name.
func (i *Instance) named(user string) bool {
	for name := range i.config.Logins {
		if strings.EqualFold(user, name) {
			return true
		}
	}
	return false
}

// refusal is the server's message to a login without a permission.
func refusal(number int32, class uint8, text string) *tsql.Error {
	return &tsql.Error{Number: number, Class: class, State: 1, Text: text}
}

// open views show a login without permissions its own sessions, or are granted to all logins.
var openViews = []string{"dm_exec_sessions", "dm_exec_requests", "dm_os_host_info"}

// requireView refuses views of the server's state to a login without permission. The real server sends 300 and then
// 297, the lab only 300.
func (s *Session) requireView(name string) {
	state := strings.HasPrefix(name, "dm_os_") || strings.HasPrefix(name, "dm_exec_") || strings.HasPrefix(name, "dm_server_") ||
		strings.HasPrefix(name, "dm_tcp_") || strings.HasPrefix(name, "dm_resource_governor_")
	if !state || slices.Contains(openViews, name) {
		return
	}
	needed := viewState
	if s.inst.version.major >= 16 {
		needed = viewPerformance
	}
	if !s.may(needed) {
		panic(refusal(300, 14, needed+" permission was denied on object 'server', database 'master'."))
	}
}

// requireStatement refuses statements for the server and its databases.
func (s *Session) requireStatement(st tsql.Statement) {
	switch st := st.(type) {
	case *tsql.CreateDatabase:
		if !s.may(createDatabase) {
			panic(refusal(262, 14, "CREATE DATABASE permission denied in database 'master'."))
		}
	case *tsql.AlterServer:
		s.requireAction(alterSettings)
	case *tsql.ResourcePool, *tsql.ResourceGovernor:
		s.requireAction(controlServer)
	case *tsql.Accepted:
		if st.What == "DBCC DROPCLEANBUFFERS" && !s.may(alterState) {
			panic(refusal(2571, 14, "User '"+s.login.User+"' does not have permission to run DBCC DROPCLEANBUFFERS."))
		}
	}
}

func (s *Session) requireAction(permission string) {
	if !s.may(permission) {
		panic(refusal(15247, 16, "User does not have permission to perform this action."))
	}
}

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
