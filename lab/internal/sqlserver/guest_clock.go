package sqlserver

import (
	"sync"
	"time"
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
