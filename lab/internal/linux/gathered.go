package linux

import (
	"bytes"
	"errors"
	"fmt"
	"sync"
)

// mostGathered limits what goes through a pipe or a command substitution, in bytes.
const mostGathered = 1 << 20

var errTooMuch = fmt.Errorf("the lab carries no more than %d bytes", mostGathered)

var errNobodyReads = errors.New("Broken pipe")

// gathered collects what programs write, possibly several at once, to be read after they have ended.
type gathered struct {
	mu      sync.Mutex
	bytes   bytes.Buffer
	tooMuch bool
}

func (g *gathered) Write(data []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.bytes.Len()+len(data) > mostGathered {
		g.tooMuch = true
		return 0, errNobodyReads
	}
	return g.bytes.Write(data)
}
