package sqlserver

import (
	"slices"
	"strings"
	"time"

	"vnuma.dev/lab/internal/tsql"
)

// What sp_getapplock returns.
const (
	lockGranted       = 0
	lockAfterWaiting  = 1
	lockTimedOut      = -1
	lockCancelled     = -2
	lockBadParameters = -999
)

// appLock is one application lock of a database: its owners, and the queue of those waiting.
type appLock struct {
	exclusive bool
	holders   []*Session
	waiting   []*lockWaiter
}

type lockWaiter struct {
	session   *Session
	exclusive bool
	granted   chan struct{} // closed when it is this one's turn
}

// lockKey identifies a lock: resources of two databases are different.
func lockKey(db *database, resource string) string { return fold(db.name) + "\x00" + resource }

// getAppLock is sp_getapplock @Resource, @LockMode, @LockOwner, @LockTimeout, for locks of the session.
func getAppLock(b *batch, args []argument) {
	resource, mode, owner, timeout := lockArguments(args)
	if owner != "SESSION" {
		panic(tsql.Unmodelled(0, "application locks of a transaction"))
	}
	if resource == "" || mode != "SHARED" && mode != "EXCLUSIVE" {
		b.returned = lockBadParameters
		return
	}
	b.returned = b.s.lock(b, lockKey(b.s.db, resource), mode == "EXCLUSIVE", timeout)
}

func lockArguments(args []argument) (resource, mode, owner string, timeout int64) {
	owner, timeout = "TRANSACTION", -1
	for _, a := range args {
		text, _ := a.value.(string)
		switch a.name {
		case "@resource":
			resource = text
		case "@lockmode":
			mode = strings.ToUpper(text)
		case "@lockowner":
			owner = strings.ToUpper(text)
		case "@locktimeout":
			timeout, _ = a.value.(int64)
		}
	}
	return resource, mode, owner, timeout
}

// lock takes a lock, waiting for it if need be; it returns what sp_getapplock does.
func (s *Session) lock(b *batch, key string, exclusive bool, timeout int64) int64 {
	i := s.inst
	i.mu.Lock()
	l := i.locks[key]
	if l == nil {
		l = &appLock{}
		i.locks[key] = l
	}
	if len(l.holders) == 0 || !exclusive && !l.exclusive && len(l.waiting) == 0 || slices.Contains(l.holders, s) {
		l.holders, l.exclusive = append(l.holders, s), exclusive
		i.mu.Unlock()
		return lockGranted
	}
	w := &lockWaiter{session: s, exclusive: exclusive, granted: make(chan struct{})}
	l.waiting = append(l.waiting, w)
	s.waitType = map[bool]string{true: "LCK_M_X", false: "LCK_M_S"}[exclusive]
	i.mu.Unlock()
	return s.await(b, l, w, timeout)
}

// await waits until a lock is granted, the timeout is over or the request ends.
func (s *Session) await(b *batch, l *appLock, w *lockWaiter, timeout int64) int64 {
	var over <-chan time.Time
	if timeout >= 0 {
		timer := time.NewTimer(time.Duration(timeout) * time.Millisecond)
		defer timer.Stop()
		over = timer.C
	}
	result := int64(lockAfterWaiting)
	select {
	case <-w.granted:
	case <-over:
		result = lockTimedOut
	case <-b.ctx.Done():
		result = lockCancelled
	}
	s.inst.mu.Lock()
	defer s.inst.mu.Unlock()
	s.waitType = ""
	if slices.Contains(l.holders, s) { // it may have been granted just as the time ran out
		return lockAfterWaiting
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(o *lockWaiter) bool { return o == w })
	l.grant(s.inst)
	return result
}

// releaseAppLock is sp_releaseapplock @Resource, @LockOwner.
func releaseAppLock(b *batch, args []argument) {
	resource, _, _, _ := lockArguments(args)
	i := b.s.inst
	i.mu.Lock()
	defer i.mu.Unlock()
	l := i.locks[lockKey(b.s.db, resource)]
	if l == nil || !slices.Contains(l.holders, b.s) {
		b.returned = lockBadParameters
		panic(tsql.Errorf(1223, 0, "Cannot release the application lock (Database Principal: 'public', Resource: '%s') because it is not "+
			"currently held.", resource))
	}
	l.release(b.s)
}

// releaseLocks releases all locks of a session, at its end. The caller holds mu.
func (i *Instance) releaseLocks(s *Session) {
	for _, l := range i.locks {
		for slices.Contains(l.holders, s) {
			l.release(s)
		}
	}
}

// release releases one lock of a session. The caller holds mu.
func (l *appLock) release(s *Session) {
	n := slices.Index(l.holders, s)
	l.holders = slices.Delete(l.holders, n, n+1)
	l.grant(s.inst)
}

// grant gives a free lock to the first in the queue, and a shared one to all up to the next exclusive request. Those
// who get it together continue at the same time. The caller holds mu.
func (l *appLock) grant(i *Instance) {
	var lucky []*lockWaiter
	for len(l.waiting) > 0 {
		w := l.waiting[0]
		if len(l.holders) > 0 && (w.exclusive || l.exclusive) {
			break
		}
		l.holders, l.exclusive = append(l.holders, w.session), w.exclusive
		l.waiting = l.waiting[1:]
		lucky = append(lucky, w)
	}
	if lucky == nil {
		return
	}
	together := i.newCompany(len(lucky))
	for _, w := range lucky {
		w.session.company, w.session.worked = together, 0
		close(w.granted)
	}
}
