package vcenter

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"sync"
	"time"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/scenario"
)

// The defaults of vCenter's single sign-on for wrong passwords: see "Edit the
// vCenter Single Sign-On Lockout Policy" in vSphere Authentication.
const (
	lockAfter  = 5
	lockWithin = 180 * time.Second
	lockFor    = 300 * time.Second
)

// logins counts successful and refused logins, and locks accounts.
type logins struct {
	mu sync.Mutex
	of map[string]*loginsOf
}

type loginsOf struct {
	guest.LoginCount

	failed      []time.Time // within the interval
	lockedUntil time.Time
}

// add counts a login; it reports whether the account is admitted.
func (l *logins) add(user string, valid bool, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]*loginsOf{}
	}
	account := l.of[user]
	if account == nil {
		account = &loginsOf{}
		l.of[user] = account
	}
	if valid && now.After(account.lockedUntil) {
		account.Succeeded++
		account.failed = nil
		return true
	}
	account.Failed++
	account.failed = append(account.failed, now)
	if len(account.failed) > lockAfter {
		account.failed = account.failed[1:]
	}
	if len(account.failed) == lockAfter && now.Sub(account.failed[0]) <= lockWithin && now.After(account.lockedUntil) {
		account.lockedUntil = now.Add(lockFor)
		account.Locked++
	}
	return false
}

func (l *logins) counts() map[string]guest.LoginCount {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[string]guest.LoginCount{}
	for user, account := range l.of {
		counts[user] = account.LoginCount
	}
	return counts
}

// validLogin knows the administrator and the scenario's accounts; all have the same password.
func (s *Server) validLogin(login *types.Login) bool {
	known := login.UserName == s.administrator() || s.account(login.UserName) != nil
	valid := known && login.Password == s.config.Password && !s.refusesLogin() // it affects only right passwords
	return s.logins.add(login.UserName, valid, time.Now())
}

// assertion is the part of a SAML token that the lab reads.
type assertion struct {
	Subject    string `xml:"Assertion>Subject>NameID"`
	Conditions struct {
		NotOnOrAfter time.Time `xml:"NotOnOrAfter,attr"`
	} `xml:"Assertion>Conditions"`
	Proof string `xml:"Assertion>Signature>SignatureValue"`
}

// validToken accepts a recent token of a known account. Its signature is the lab's own: the hexadecimal
// HMAC-SHA256, with the one password as key, of the subject and the time exactly as in the token.
func (s *Server) validToken(ctx *simulator.Context) bool {
	element, ok := ctx.Header.Security.(*simulator.Element)
	var token assertion
	if !ok {
		return false
	}
	_ = element.Decode(&token) // it misses the end of the header's element, after reading everything
	until := token.Conditions.NotOnOrAfter
	sign := hmac.New(sha256.New, []byte(s.config.Password))
	sign.Write([]byte(token.Subject + " " + until.Format(time.RFC3339)))
	proven := hmac.Equal([]byte(hex.EncodeToString(sign.Sum(nil))), []byte(token.Proof))
	known := token.Subject == s.administrator() || s.account(token.Subject) != nil
	valid := known && proven && time.Now().Before(until) && !s.refusesLogin()
	return s.logins.add(token.Subject, valid, time.Now())
}

// refusesLogin reports whether the scenario refuses this login, as if the password had been changed.
func (s *Server) refusesLogin() bool {
	for _, m := range s.order {
		if s.faults.take(scenario.AccountRefused, m.scenario, int(m.boots.Load())) != nil {
			return true
		}
	}
	return false
}

// countedLogins answers with the logins at vCenter and at the SQL Server of each VM, by account, and with
// the sessions that are open at vCenter now.
func (s *Server) countedLogins(w http.ResponseWriter, _ *http.Request) {
	inside := map[string]map[string]guest.LoginCount{}
	for _, m := range s.order {
		if counter, ok := m.service.(guest.LoginCounter); ok {
			inside[m.scenario.Path()] = counter.Logins()
		}
	}
	open := map[string]int{}
	for _, session := range s.sessions() {
		open[session.UserName]++
	}
	answer(w, http.StatusOK, map[string]any{"vcenter": s.logins.counts(), "sessions": open, "sql": inside})
}
