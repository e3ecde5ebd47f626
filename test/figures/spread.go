package figures

import "slices"

// Spread is where the values of several rounds lie.
type Spread struct{ Low, Median, High float64 }

// SpreadOf returns the zero Spread for no values.
func SpreadOf(values []float64) Spread {
	if len(values) == 0 {
		return Spread{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Spread{sorted[0], median(sorted), sorted[len(sorted)-1]}
}

func median(sorted []float64) float64 {
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// Percentile returns the smallest value that at least percent of all values do not exceed; 0 for no values.
func Percentile(values []float64, percent int) float64 {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(0, (len(sorted)*percent+99)/100-1)]
}
