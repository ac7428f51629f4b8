package cost

import "math"

// sizes are the rows per side of Table 1.
var sizes = [...]float64{500, 1000, 2000, 3000}

// table1 holds median elapsed milliseconds: a row per size, a column per arm 1x16, 2x8, 4x4, 8x2, 16x1.
var table1 = [len(sizes)][5]float64{
	{4994, 5003, 5017, 5093, 5130},
	{19354, 19590, 19906, 19965, 20350},
	{76592, 76920, 78152, 78487, 79324},
	{173080, 173126, 175256, 176099, 178193},
}

// baseMS is the time of the client form on one node with n rows per side. Between the sizes of the
// paper the time per output row is interpolated over log n; outside them it is constant.
func baseMS(n float64) float64 {
	var perRow [len(sizes)]float64
	for i, size := range sizes {
		perRow[i] = table1[i][0] / (size * size)
	}
	return interpolate(perRow[:], n) * n * n
}

// paperRatio is the time at arm position p (0 = one node ... 4 = sixteen) over that at position 0.
// Positions between the paper's arms (3 or 6 nodes) are interpolated; beyond 4 the ratio is constant.
func paperRatio(n, p float64) float64 {
	var ratio [len(sizes)]float64
	low := int(math.Min(math.Floor(p), 3))
	part := math.Min(p-float64(low), 1)
	for i, row := range table1 {
		ratio[i] = (row[low]*(1-part) + row[low+1]*part) / row[0]
	}
	return interpolate(ratio[:], n)
}

// interpolate reads a value given at the sizes of the paper, linear in log n, constant outside.
func interpolate(values []float64, n float64) float64 {
	if n <= sizes[0] {
		return values[0]
	}
	for i := 1; i < len(sizes); i++ {
		if n <= sizes[i] {
			part := math.Log(n/sizes[i-1]) / math.Log(sizes[i]/sizes[i-1])
			return values[i-1]*(1-part) + values[i]*part
		}
	}
	return values[len(values)-1]
}
