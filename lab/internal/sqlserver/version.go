package sqlserver

import (
	"fmt"
	"strconv"
	"strings"
)

// version is a product version: 15.0.4430.1.
type version struct {
	text                string
	major, minor, build int
}

func parseVersion(text string) (version, error) {
	parts := strings.Split(text, ".")
	v := version{text: text}
	var numbers [4]int
	if len(parts) != 4 {
		return v, fmt.Errorf("SQL Server version %q is not of the form 15.0.4430.1", text)
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 {
			return v, fmt.Errorf("SQL Server version %q is not of the form 15.0.4430.1", text)
		}
		numbers[i] = n
	}
	v.major, v.minor, v.build = numbers[0], numbers[1], numbers[2]
	if releases[v.major] == "" {
		return v, fmt.Errorf("SQL Server version %q is not one of 11 (2012) to 17 (2025)", text)
	}
	return v, nil
}

var releases = map[int]string{11: "2012", 12: "2014", 13: "2016", 14: "2017", 15: "2019", 16: "2022", 17: "2025"}

func (v version) atLeast(major, minor, build int) bool {
	if v.major != major {
		return v.major > major
	}
	if v.minor != minor {
		return v.minor > minor
	}
	return v.build >= build
}

// level is ProductLevel: RTM or a service pack; builds after RTM of 2017 and later carry an update level instead.
func (v version) level() string {
	switch {
	case v.major == 13 && v.build >= 6300:
		return "SP3"
	case v.major == 13 && v.build >= 5026:
		return "SP2"
	case v.major == 13 && v.build >= 4001:
		return "SP1"
	}
	return "RTM"
}

// since are minimum versions of columns and views, written 13.0.5026 in their definitions.
func (v version) has(since string) bool {
	if since == "" {
		return true
	}
	var major, minor, build int
	if _, err := fmt.Sscanf(since, "%d.%d.%d", &major, &minor, &build); err != nil {
		panic("a view is defined for version " + since)
	}
	return v.atLeast(major, minor, build)
}

// banner is @@VERSION, which also states that the server is simulated.
func (i *Instance) banner() string {
	simulated := "simulated by vnuma-lab"
	if i.config.Scenario != "" {
		simulated += ", scenario " + i.config.Scenario
	}
	return fmt.Sprintf("Microsoft SQL Server %s (%s) - %s (X64) \n\tCopyright (C) %s Microsoft Corporation\n\t%s on Windows Server 2016 "+
		"Standard 10.0 <X64> (Build 14393: ) (Hypervisor) (%s)\n", releases[i.version.major], i.version.level(), i.version.text,
		releases[i.version.major], i.edition(), simulated)
}

func (i *Instance) edition() string {
	return strings.TrimSuffix(i.config.Edition, " Edition (64-bit)") + " Edition (64-bit)"
}

// engineEdition is SERVERPROPERTY('EngineEdition').
func (i *Instance) engineEdition() int64 {
	switch name := fold(i.config.Edition); {
	case strings.Contains(name, "standard") || strings.Contains(name, "web"):
		return 2
	case strings.Contains(name, "express"):
		return 4
	}
	return 3
}
