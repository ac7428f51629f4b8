package sqlserver

import (
	"testing"
	"time"
)

// A guest whose clock is off shows it in every wall-clock time, but not in SQL Server's uptime.
func TestAGuestsClockMayBeOff(t *testing.T) {
	s := open(t, func(c *Config) { c.ClockAhead = 7 * time.Minute })
	ahead := time.Until(s.inst.clock.now())
	if ahead < 6*time.Minute || s.inst.started.Before(time.Now().Add(6*time.Minute)) {
		t.Errorf("the guest's clock is %v ahead, SQL Server started at %v", ahead, s.inst.started)
	}
	if up := s.inst.up(); up < 0 || up > time.Minute {
		t.Errorf("SQL Server has been up for %v", up)
	}
}

// A guest that was already up when the lab started reports its uptime.
func TestAGuestMayHaveBeenUpForLong(t *testing.T) {
	i := newInstance(t, nil)
	b := boot(1, 4, 4, 1)
	b.UpFor = 10 * time.Hour
	if err := i.Start(b); err != nil {
		t.Fatal(err)
	}
	defer i.Stop()
	if up := i.up(); up < 10*time.Hour {
		t.Errorf("SQL Server has been up for %v", up)
	}
}
