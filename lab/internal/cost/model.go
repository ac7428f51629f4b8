// Package cost computes how long the lab's work takes: a pure, seeded model without any clock.
//
// The base times and the effect of the topology are those of Table 1 in Dakić (2019), "Virtual NUMA"
// study of five topologies on ESXi 6.0, for the client form of the join. What the paper does not
// report (the other forms, the noise) is an assumption of the lab and is documented here.
package cost

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Effect says how the effective topology changes a time.
type Effect string

// Effects.
const (
	// None: every topology takes the same time.
	None Effect = "none"
	// Paper: the ratios of Table 1, by effective vNUMA nodes, and by sockets when each has one core.
	Paper Effect = "paper"
	// Nodes: the ratios of Table 1, by effective vNUMA nodes alone; cores per socket is cosmetic.
	Nodes Effect = "nodes"
	// Remote: a large effect, proportional to the share of memory on other nodes.
	Remote Effect = "remote"
)

// Model has one scenario's parameters, each from 0 to 100 unless its tag or its section's states another range.
// Deviations are standard deviations of the natural logarithm.
type Model struct {
	Effect        Effect  `yaml:"effect"`
	BootSD        float64 `yaml:"boot_sd" within:"0 1"`            // between boots
	IterationSD   float64 `yaml:"iteration_sd" within:"0 1"`       // between iterations on one boot
	DriftPerBoot  float64 `yaml:"drift_per_boot" within:"-1 1"`    // log units added by each further power-on
	OutlierRate   float64 `yaml:"outlier_rate" within:"0 1"`       // probability that an iteration is an outlier
	OutlierFactor float64 `yaml:"outlier_factor" within:"0.1 100"` // factor of an outlier
	RemotePenalty float64 `yaml:"remote_penalty"`                  // added time at 100% remote memory: effect remote, and any explicit placement
	ServerShare   float64 `yaml:"server_share" within:"0.001 10"`  // base time of the server form / client form
	ServerEffect  float64 `yaml:"server_effect"`                   // relative effect of the server form / client form
	IntoShare     float64 `yaml:"into_share" within:"0.001 10"`    // the same for SELECT ... INTO
	IntoEffect    float64 `yaml:"into_effect"`
	CPUShare      float64 `yaml:"cpu_share" within:"0.01 64"`     // CPU time / elapsed time
	PageMicros    float64 `yaml:"page_micros" within:"0.001 1e6"` // CPU time of one page of a disk-based table, in microseconds
	PagePenalty   float64 `yaml:"page_penalty"`                   // added time of a page on another physical node, at saturation
	Calls         Calls   `yaml:"calls" within:"0 1e6"`

	LogCache  LogCache  `yaml:"log_cache" within:"0 1e6"`      // inserts in a loop
	FileCache FileCache `yaml:"file_cache" within:"0.001 1e3"` // a Linux machine's page cache
}

// Default is the scenario `paper`.
func Default() Model {
	return Model{
		Effect: Paper, BootSD: 0.003, IterationSD: 0.003, OutlierFactor: 1.3, RemotePenalty: 0.4,
		ServerShare: 0.12, ServerEffect: 3, IntoShare: 0.35, IntoEffect: 1.5, CPUShare: 0.97, Calls: DefaultCalls(),
		LogCache:   defaultLogCache(),
		FileCache:  defaultFileCache(),
		PageMicros: 60, PagePenalty: 0.05,
	}
}

// Validate returns an error for impossible values; a scenario file may have any numbers.
func (m Model) Validate() error {
	switch m.Effect {
	case None, Paper, Nodes, Remote:
	default:
		return fmt.Errorf("cost: effect %q is not one of none, paper, nodes, remote", m.Effect)
	}
	if bad := outside(reflect.ValueOf(m), "", "0 100"); bad != nil {
		return fmt.Errorf("cost: %s", strings.Join(bad, "; "))
	}
	return nil
}

// outside lists the numbers beyond the range that their tag states, or that of the section around them.
func outside(section reflect.Value, at, usual string) (bad []string) {
	for i := range section.NumField() {
		tag, low, high := section.Type().Field(i).Tag, 0.0, 0.0
		name, within := at+tag.Get("yaml"), cmp.Or(tag.Get("within"), usual)
		switch value := section.Field(i); value.Kind() {
		case reflect.Struct:
			bad = append(bad, outside(value, name+".", within)...)
		case reflect.Float64:
			fmt.Sscan(within, &low, &high)
			if f := value.Float(); math.IsNaN(f) || f < low || f > high {
				bad = append(bad, fmt.Sprintf("%s = %g is not within %g..%g", name, f, low, high))
			}
		}
	}
	return bad
}

// FromYAML reads the `cost` section of a scenario over the default model; an empty text gives the default.
// Unknown keys and impossible values are errors.
func FromYAML(data []byte) (Model, error) {
	m := Default()
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&m); err != nil && !errors.Is(err, io.EOF) {
		return Model{}, fmt.Errorf("cost: %w", err)
	}
	return m, m.Validate()
}
