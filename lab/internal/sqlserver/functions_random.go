package sqlserver

import "math/rand/v2"

func init() { register(randomFunctions) }

// randomFunctions holds RAND: one number for a whole statement, as on the server; a seed starts the session's
// sequence anew.
var randomFunctions = map[string]function{
	"rand": {most: 1, args: typeInt, result: always(typeFloat), eval: func(r *run, a []any) (any, error) {
		if len(a) > 0 {
			r.s.random, r.random = rand.New(rand.NewPCG(uint64(a[0].(int64)), 2)), nil
		}
		if r.random == nil {
			v := r.s.nextRandom()
			r.random = &v
		}
		return *r.random, nil
	}},
}

// nextRandom is the next number of the session's sequence, from 0 to below 1.
func (s *Session) nextRandom() float64 {
	if s.random == nil {
		return rand.Float64()
	}
	return s.random.Float64()
}
