// Package recorded reads what real (or simulated) servers answered to `vnuma doctor --record`: golden cases
// that the lab's tests share with those of the product.
package recorded

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"vnuma.dev/lab/internal/vnuma"
)

// folder is seen from the tests of any package of internal/.
const folder = "../../../tests/data/recorded"

// Contact is one recording.
type Contact struct {
	Name     string `yaml:"-"`
	Versions struct {
		ESXi      string `yaml:"esxi"`
		SQLServer string `yaml:"sql_server"`
	} `yaml:"versions"`
	VSphere struct {
		Settings map[string]any `yaml:"settings"`
		Faults   []struct {
			Asked string `yaml:"asked"`
			Fault string `yaml:"fault"`
		} `yaml:"faults"`
		Log yaml.Node `yaml:"vmware_log"` // lines, or the reason for having none
	} `yaml:"vsphere"`
	SQLServer struct {
		Edition string              `yaml:"edition"`
		Columns map[string][]string `yaml:"columns"`
		Answers []Answer            `yaml:"answers"`
	} `yaml:"sql_server"`
}

// Answer is a statement under SET STATISTICS TIME, and the server's answer in order.
type Answer struct {
	Statement string `yaml:"statement"`
	Parts     []Part `yaml:"answer"`
}

// Part is a message, a result or an error of an answer.
type Part struct {
	State   string   `yaml:"state"`
	Columns int      `yaml:"columns"`
	Rows    int      `yaml:"rows"`
	Error   []string `yaml:"error"`
}

// All are the recordings, at least the lab's own.
func All(t testing.TB) []Contact {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.yml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recording in %s (%v)", folder, err)
	}
	var contacts []Contact
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		contact := Contact{Name: strings.TrimSuffix(filepath.Base(file), ".yml")}
		if err := yaml.Unmarshal(data, &contact); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		contacts = append(contacts, contact)
	}
	return contacts
}

// Simulated reports whether it is the lab's own.
func (c Contact) Simulated() bool { return strings.HasPrefix(c.Name, "lab-") }

// Release is the ESXi release line of the host.
func (c Contact) Release(t testing.TB) vnuma.Release {
	t.Helper()
	release, err := vnuma.ParseRelease(strings.Fields(c.Versions.ESXi)[0])
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// Number is a numeric setting; 0 if not set.
func (c Contact) Number(setting string) int {
	number, _ := c.VSphere.Settings[setting].(int)
	return number
}

// LogLines are the vNUMA lines of vmware.log; none if they were not available.
func (c Contact) LogLines() []string {
	var lines []string
	if c.VSphere.Log.Decode(&lines) != nil {
		return nil
	}
	return lines
}

var number = regexp.MustCompile(`\((\d+)\)`)

// Tokens abbreviate the parts of an answer: "info 3612", "result", "error 50000".
func (a Answer) Tokens() []string {
	var tokens []string
	for _, part := range a.Parts {
		switch {
		case part.Error != nil:
			tokens = append(tokens, "error "+number.FindStringSubmatch(part.Error[len(part.Error)-1])[1])
		case part.State != "":
			tokens = append(tokens, "info "+number.FindStringSubmatch(part.State)[1])
		case part.Columns > 0:
			tokens = append(tokens, fmt.Sprintf("result of %d", part.Rows))
		}
	}
	return tokens
}
