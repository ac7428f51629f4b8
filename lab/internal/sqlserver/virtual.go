package sqlserver

import (
	"time"

	"vnuma.dev/lab/internal/cost"
)

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
