package sqlserver

import (
	"context"
	"testing"
	"time"
)

// FuzzBatch: no batch stops the instance; failures have a number and a text.
func FuzzBatch(f *testing.F) {
	for _, text := range batches(readFile(f, "../tsql/testdata/statements.sql")) {
		f.Add(text)
	}
	f.Add("SELECT CAST('1e9' AS float) / 3, CAST(0.1 AS decimal(38, 20)) * 7, -a.v FROM dbo.a GROUP BY a.v ORDER BY 1")
	s := open(f, nil)
	must(f, s, dataset)
	f.Fuzz(func(t *testing.T, text string) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		r := &record{}
		s.run(ctx, text, nil, r)
		for _, e := range r.errors {
			if e.Number == 0 || e.Text == "" {
				t.Errorf("an error without number or text: %+v", e)
			}
		}
	})
}
