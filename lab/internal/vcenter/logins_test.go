package vcenter

import (
	"net/url"
	"testing"
	"time"

	"github.com/vmware/govmomi/session"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/scenario"
)

func TestLoginsAreCountedAndARefusalIsInjected(t *testing.T) {
	l := startLab(t, quick)
	login := func(user, password string) error {
		return session.NewManager(l.connect()).Login(l.ctx, url.UserPassword(user, password))
	}
	before := l.server.logins.counts()[administrator]
	l.server.inject(scenario.Fault{Kind: scenario.AccountRefused})
	wantFault[types.InvalidLogin](t, login("nobody", "wrong"))
	wantFault[types.InvalidLogin](t, login(administrator, testPassword))
	l.must(login(administrator, testPassword))
	counts := l.server.logins.counts()
	if of := counts["nobody"]; of.Failed != 1 || of.Succeeded != 0 {
		t.Errorf("nobody: %+v", of)
	}
	if of := counts[administrator]; of.Succeeded != before.Succeeded+1 || of.Failed != before.Failed+1 {
		t.Errorf("administrator: %+v, before %+v", of, before)
	}
}

func TestAnAccountIsLockedAfterFiveFailuresInThreeMinutes(t *testing.T) {
	var counted logins
	at := time.Now()
	for range 4 {
		counted.add("user", false, at)
	}
	if !counted.add("user", true, at) {
		t.Error("four failures lock no account")
	}
	for n := range 5 {
		counted.add("user", false, at.Add(time.Duration(n)*44*time.Second))
	}
	if counted.add("user", true, at.Add(200*time.Second)) {
		t.Error("five failures in 176 s lock the account")
	}
	if !counted.add("user", true, at.Add(500*time.Second)) {
		t.Error("after five minutes it may log in again")
	}
	for n := range 5 {
		counted.add("slow", false, at.Add(time.Duration(n)*46*time.Second))
	}
	if !counted.add("slow", true, at.Add(200*time.Second)) {
		t.Error("five failures in 184 s lock no account")
	}
}
