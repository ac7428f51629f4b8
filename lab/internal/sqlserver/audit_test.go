package sqlserver

import (
	"slices"
	"testing"
)

// An audit names every statement that changes something, however it is wrapped, and counts reads only.
func TestTheAuditTellsChangesFromReads(t *testing.T) {
	s := open(t, nil)
	reads := []string{
		"SELECT cpu_count FROM sys.dm_os_sys_info", "SET NOCOUNT ON", "EXEC sys.sp_readerrorlog 0, 1, N'x'",
		"DECLARE @n int = 1; IF @n = 1 SELECT 1", "DBCC TRACESTATUS (-1) WITH NO_INFOMSGS",
	}
	for _, text := range reads {
		s.ask(text)
	}
	if told := s.inst.Audit(); len(told.Changes) > 0 || told.Requests < int64(len(reads)) || told.Logins < 1 {
		t.Errorf("reads were told as %+v", told)
	}
	for _, text := range []string{
		"ALTER SERVER CONFIGURATION SET SOFTNUMA OFF", "IF 1 = 1 EXEC sp_executesql N'CREATE DATABASE d'", "DBCC DROPCLEANBUFFERS",
	} {
		s.ask(text)
	}
	want := []string{"AlterServer (sa, master)", "CreateDatabase (sa, master)", "DBCC DROPCLEANBUFFERS (sa, master)"}
	if told := s.inst.Audit(); !slices.Equal(told.Changes, want) {
		t.Errorf("changes were told as %q, want %q", told.Changes, want)
	}
}
