package sqlserver

import (
	"cmp"
	"fmt"
	"maps"

	"vnuma.dev/lab/internal/guest"
	"vnuma.dev/lab/internal/tds"
)

// Messages that refuse a login, by number. The client always gets state 1.
// Source: https://learn.microsoft.com/sql/relational-databases/errors-events/database-engine-events-and-errors
var refusals = map[int]string{
	18401: "Login failed for user '%s'. Reason: Server is in script upgrade mode. Only administrator can connect at this time.",
	18456: "Login failed for user '%s'.",
	18470: "Login failed for user '%s'. Reason: The account is disabled.",
	18486: "Login failed for user '%s' because the account is currently locked out. The system administrator can unlock it.",
	18487: "Login failed for user '%s'.  Reason: The password of the account has expired.",
	18488: "Login failed for user '%s'.  Reason: The password of the account must be changed.",
}

// refusal is the message that refuses a login, nil if it may log in. The caller holds mu.
func (i *Instance) refusal(l tds.Login) *tds.Message {
	number := i.boot.Faults.RefuseLogins
	if number == 0 && !i.known(l) {
		number = 18456
	}
	if number == 0 {
		return nil
	}
	text := cmp.Or(refusals[number], refusals[18456])
	return &tds.Message{Number: int32(number), State: 1, Class: 14, Text: fmt.Sprintf(text, l.User)}
}

// count changes an account's login counts. The caller holds mu.
func (i *Instance) count(user string, change func(*guest.LoginCount)) {
	counted := i.logins[user]
	change(&counted)
	i.logins[user] = counted
}

// Logins are the logins of each account since the lab started.
func (i *Instance) Logins() map[string]guest.LoginCount {
	i.mu.Lock()
	defer i.mu.Unlock()
	return maps.Clone(i.logins)
}
