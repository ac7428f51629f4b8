package tsql

import "strings"

// Batches splits a script at its GO lines, as client tools do; empty batches are left out.
func Batches(script string) []string {
	var out []string
	var batch []string
	flush := func() {
		if text := strings.TrimSpace(strings.Join(batch, "\n")); text != "" {
			out = append(out, text)
		}
		batch = nil
	}
	for _, line := range strings.Split(strings.ReplaceAll(script, "\r\n", "\n"), "\n") {
		if strings.EqualFold(strings.TrimSpace(line), "GO") {
			flush()
			continue
		}
		batch = append(batch, line)
	}
	flush()
	return out
}
