package sqlserver

import (
	"sync"
	"time"

	"vnuma.dev/lab/internal/cost"
)

// guestClock is the guest's clock: it follows real time, except while it is held. Then it moves only by what is added,
// and never backwards.
type guestClock struct {
	ahead time.Duration // added to real time, after every boot

	mu     sync.Mutex
	offset time.Duration
	held   bool
	at     time.Time // its time while it is held
}

// now is the clock's time.
func (c *guestClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		return c.at
	}
	return time.Now().UTC().Add(c.ahead + c.offset)
}

// passed is how far simulated time has moved the clock since the boot.
func (c *guestClock) passed() time.Duration {
	return time.Until(c.now()) - c.ahead
}

// hold stops the clock; add moves it from then on.
func (c *guestClock) hold() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held {
		c.held, c.at = true, time.Now().UTC().Add(c.ahead+c.offset)
	}
}

func (c *guestClock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.at = c.at.Add(d)
	}
}

// advance moves the clock by simulated time, held or not.
func (c *guestClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
}

// release lets the clock follow real time again from its present time.
func (c *guestClock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.held, c.offset = false, time.Until(c.at)-c.ahead
	}
}

// reset sets the clock of a new boot to real time, but never back.
func (c *guestClock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, c.offset = false, 0
}

// company are sessions that continue at the same time: those that a released lock admitted together, or a single one.
// Until their requests end, their clock stops at that time, and only modelled work advances it: what they measure does
// not depend on the speed of the lab's machine.
type company struct {
	number  int // of those since the boot
	at      time.Time
	size    int
	longest time.Duration // modelled work of the session that has done most
}

// newCompany starts one. The caller holds mu.
func (i *Instance) newCompany(size int) *company {
	i.companies++
	return &company{number: i.companies, at: i.clock.now(), size: size}
}

// clock is the time as a statement sees it.
func (s *Session) clock() time.Time {
	if s.company == nil {
		return s.inst.clock.now()
	}
	return s.company.at.Add(s.worked)
}

// spend adds modelled work of a session: to its own clock, and to the guest's unless concurrent work
// has already moved that as far. The caller holds mu.
func (s *Session) spend(work time.Duration) {
	s.worked += work
	if more := s.worked - s.company.longest; more > 0 {
		s.company.longest = s.worked
		s.inst.clock.advance(more)
	}
}

// costOf is the cost of inserts in a loop by this session, added to its clock and the server's counters. The
// caller holds mu.
func (s *Session) costOf(inserts int64, native bool, commits int64) cost.InsertCost {
	i := s.inst
	if s.company == nil {
		s.company, s.worked = i.newCompany(1), 0
	}
	c := i.config.Cost.Inserting(cost.Inserting{
		Inserts: inserts, Sessions: s.company.size, Commits: commits, Remote: i.farFromLogWriter(), Native: native,
		Seed: i.config.Seed, VM: i.boot.VM, Boot: i.boot.Number, Iteration: s.company.number,
	})
	if slow := i.boot.Faults.SlowFactor; slow > 0 {
		c.Elapsed *= slow
	}
	s.spend(time.Duration(c.Elapsed * float64(time.Microsecond)))
	i.logCache.book(c, inserts, commits)
	return c
}
