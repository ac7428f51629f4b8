// Package vnuma decides, by the documentation of each ESXi release, which virtual NUMA
// topology a VM gets at power-on. It is pure: the same arguments always give the same layout.
package vnuma

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is an ESXi release line, such as 6.5.
type Release struct{ Major, Minor int }

// ParseRelease reads "6.5" or "6.5.0".
func ParseRelease(text string) (Release, error) {
	parts := strings.Split(text, ".")
	if len(parts) < 2 {
		return Release{}, fmt.Errorf("ESXi release %q: want a number such as 6.5", text)
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return Release{}, fmt.Errorf("ESXi release %q: want a number such as 6.5", text)
	}
	minor, err := strconv.Atoi(parts[1])
	if err != nil {
		return Release{}, fmt.Errorf("ESXi release %q: want a number such as 6.5", text)
	}
	return Release{major, minor}, nil
}

// AtLeast reports whether r is the given release or a later one.
func (r Release) AtLeast(major, minor int) bool {
	return r.Major > major || r.Major == major && r.Minor >= minor
}

func (r Release) String() string { return fmt.Sprintf("%d.%d", r.Major, r.Minor) }

// Reading is one of two readings of the documentation of ESXi up to 6.0 for a VM that
// fits one host node.
type Reading string

const (
	// ReadingFollow lets the sockets shape vNUMA whenever the VM has enough vCPUs.
	ReadingFollow Reading = "follow"
	// ReadingFits gives one node to every VM that fits one host node.
	ReadingFits Reading = "fits"
)
