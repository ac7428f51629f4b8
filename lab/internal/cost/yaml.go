package cost

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

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
