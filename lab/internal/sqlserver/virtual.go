package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/cost"
)

// company are sessions that go on at one instant: those whom a released lock let through together, or one by itself.
// To the end of their requests their clock stands at that instant, and only modelled work advances it: what they
// measure then does not depend on how fast the lab's machine is.
type company struct {
	number  int // of those since the boot
	at      time.Time
	size    int
	longest time.Duration // modelled work of the one who has done most
}

// newCompany begins one. The caller holds mu.
func (i *Instance) newCompany(size int) *company {
	i.companies++
	return &company{number: i.companies, at: i.clock.now(), size: size}
}

// clock is the time that a statement sees.
func (s *Session) clock() time.Time {
	if s.company == nil {
		return s.inst.clock.now()
	}
	return s.company.at.Add(s.worked)
}

// spend books modelled work of a session: on its own clock, and on the guest's as far as nobody else's work
// at the same time has moved them already. The caller holds mu.
func (s *Session) spend(work time.Duration) {
	s.worked += work
	if more := s.worked - s.company.longest; more > 0 {
		s.company.longest = s.worked
		s.inst.clock.advance(more)
	}
}

// costOf is the cost of inserts in a loop by this session, booked on its clock and the server's counters. The
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
