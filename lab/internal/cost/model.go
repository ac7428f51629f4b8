// Package cost computes how long the lab's work takes: a pure, seeded model without any clock.
//
// The base times and the effect of the topology are those of Table 1 in Dakić (2019), "Virtual NUMA"
// study of five topologies on ESXi 6.0, for the client form of the join. What the paper does not
// report (the other forms, the noise) is an assumption of the lab and is documented here.
package cost

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
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

// Model has one scenario's parameters. Deviations are standard deviations of the natural logarithm.
type Model struct {
	Effect        Effect  `yaml:"effect"`
	BootSD        float64 `yaml:"boot_sd"`        // between boots
	IterationSD   float64 `yaml:"iteration_sd"`   // between iterations on one boot
	DriftPerBoot  float64 `yaml:"drift_per_boot"` // log units added by each further power-on
	OutlierRate   float64 `yaml:"outlier_rate"`   // probability that an iteration is an outlier
	OutlierFactor float64 `yaml:"outlier_factor"` // factor of an outlier
	RemotePenalty float64 `yaml:"remote_penalty"` // added time at 100% remote memory: effect remote, and any explicit placement
	ServerShare   float64 `yaml:"server_share"`   // base time of the server form / client form
	ServerEffect  float64 `yaml:"server_effect"`  // relative effect of the server form / client form
	IntoShare     float64 `yaml:"into_share"`     // the same for SELECT ... INTO
	IntoEffect    float64 `yaml:"into_effect"`
	CPUShare      float64 `yaml:"cpu_share"`    // CPU time / elapsed time
	PageMicros    float64 `yaml:"page_micros"`  // CPU time of one page of a disk-based table, in microseconds
	PagePenalty   float64 `yaml:"page_penalty"` // added time of a page on another physical node, at saturation
	Calls         Calls   `yaml:"calls"`

	LogCache  LogCache  `yaml:"log_cache"`  // inserts in a loop
	FileCache FileCache `yaml:"file_cache"` // a Linux machine's page cache
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
	var bad []string
	for _, f := range slices.Concat(m.fields(), m.Calls.fields(), m.LogCache.fields(), m.FileCache.fields()) {
		if math.IsNaN(f.value) || f.value < f.low || f.value > f.high {
			bad = append(bad, fmt.Sprintf("%s = %g is not within %g..%g", f.name, f.value, f.low, f.high))
		}
	}
	if bad != nil {
		return fmt.Errorf("cost: %s", strings.Join(bad, "; "))
	}
	return nil
}

type field struct {
	name             string
	value, low, high float64
}

func (m Model) fields() []field {
	return []field{
		{"boot_sd", m.BootSD, 0, 1}, {"iteration_sd", m.IterationSD, 0, 1}, {"drift_per_boot", m.DriftPerBoot, -1, 1},
		{"outlier_rate", m.OutlierRate, 0, 1}, {"outlier_factor", m.OutlierFactor, 0.1, 100},
		{"remote_penalty", m.RemotePenalty, 0, 100}, {"server_share", m.ServerShare, 0.001, 10},
		{"server_effect", m.ServerEffect, 0, 100}, {"into_share", m.IntoShare, 0.001, 10},
		{"into_effect", m.IntoEffect, 0, 100}, {"cpu_share", m.CPUShare, 0.01, 64},
		{"page_micros", m.PageMicros, 0.001, 1e6}, {"page_penalty", m.PagePenalty, 0, 100},
	}
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
