package sqlserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"vnuma.dev/lab/internal/recorded"
)

// sameAs is an instance of the version and edition of a recording, and whether there was one.
func sameAs(t *testing.T, contact recorded.Contact) (*Session, bool) {
	t.Helper()
	if contact.Versions.SQLServer == "" {
		return nil, false
	}
	return open(t, func(config *Config) {
		config.Version, config.Edition = contact.Versions.SQLServer, contact.SQLServer.Edition
	}), true
}

// A view of the lab has no column that the recorded server does not have: the product would read it there.
// No column of the lab's own recordings is missing.
func TestNoColumnIsTheLabsOwnInvention(t *testing.T) {
	for _, contact := range recorded.All(t) {
		session, ok := sameAs(t, contact)
		for view, columns := range contact.SQLServer.Columns {
			if !ok || len(columns) == 0 {
				continue
			}
			ours := columnsOf(session, view)
			few, many := ours, columns
			if contact.Simulated() {
				few, many = columns, ours
			}
			for _, name := range few {
				if len(ours) == 0 || !slices.Contains(many, name) {
					t.Errorf("%s: %s.%s is in one of lab and recording only", contact.Name, view, name)
				}
			}
		}
	}
}

func columnsOf(session *Session, view string) []string {
	var names []string
	for _, row := range session.ask(fmt.Sprintf("SELECT name FROM sys.all_columns WHERE object_id = OBJECT_ID(N'%s')", view)).rows {
		names = append(names, row[0].(string))
	}
	return names
}

// Messages, results and errors come in the recorded order.
func TestStatementsAreAnsweredInTheRecordedOrder(t *testing.T) {
	for _, contact := range recorded.All(t) {
		session, ok := sameAs(t, contact)
		if !ok {
			continue
		}
		session.ask("SET STATISTICS TIME ON")
		for _, answer := range contact.SQLServer.Answers {
			got, want := tokensOf(session.ask(answer.Statement)), answer.Tokens()
			if failed := strings.HasPrefix(want[len(want)-1], "error"); failed {
				got = slices.DeleteFunc(got, func(token string) bool { return strings.HasPrefix(token, "info") }) // drivers keep them
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %s\ngot  %v\nwant %v", contact.Name, answer.Statement, got, want)
			}
		}
	}
}

// tokensOf is an answer of the lab in the form of recordings: its rows counted, without the end of a statement.
func tokensOf(r *record) []string {
	var tokens []string
	rows := 0
	for _, line := range r.lines {
		if line == "row" {
			rows++
			continue
		}
		if rows > 0 {
			tokens, rows = append(tokens, fmt.Sprintf("result of %d", rows)), 0
		}
		if strings.HasPrefix(line, "info") || strings.HasPrefix(line, "error") {
			tokens = append(tokens, line)
		}
	}
	return tokens
}
