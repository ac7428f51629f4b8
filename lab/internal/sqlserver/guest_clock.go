package sqlserver

import (
	"sync"
	"time"
)

// guestClock is the guest's: it goes with real time, except while it is held. Then it moves by what is added alone,
// and never backwards.
type guestClock struct {
	ahead time.Duration // of real time, after every boot

	mu     sync.Mutex
	offset time.Duration
	held   bool
	at     time.Time // what it shows while it is held
}

// now is what the clock shows.
func (c *guestClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		return c.at
	}
	return time.Now().UTC().Add(c.ahead + c.offset)
}

// passed is how far work that took no real time has moved the clock since the boot.
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

// advance moves the clock, held or not: work was done that took no real time.
func (c *guestClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset += d
	if c.held {
		c.at = c.at.Add(d)
	}
}

// release lets real time go on from what the clock shows.
func (c *guestClock) release() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held {
		c.held, c.offset = false, time.Until(c.at)-c.ahead
	}
}

// reset shows real time again, as far as this guest's clock does: a boot sets it.
func (c *guestClock) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held, c.offset = false, 0
}
