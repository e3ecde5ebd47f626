package main

import "github.com/sidebus/sidebus/test/figures"

// target is what performance is measured by, in several numbers.
type target struct {
	id     string
	checks []check
	why    string // it is missed, where it is
}

// check is one number of a target.
type check struct {
	what    string
	bound   bound
	measure measure
	floor   measure // what the stack below Sidebus leaves at best, where that is measured
}

// bound is the least or the most that a number should be.
type bound struct {
	sign  string
	value float64
	unit  string
}

func atLeast(value float64, unit string) bound { return bound{"≥", value, unit} }

func atMost(value float64, unit string) bound { return bound{"≤", value, unit} }

// isReached compares the median.
func (b bound) isReached(s figures.Spread) bool {
	if b.sign == "≤" {
		return s.Median <= b.value
	}
	return s.Median >= b.value
}

// measure returns what was measured last; false when nothing was.
type measure func(figures.History) (figures.Spread, bool)

// ratioOf compares one measure of two workloads of a run, round by round.
func ratioOf(workload, other string, of func(figures.Round) float64) measure {
	return func(h figures.History) (figures.Spread, bool) {
		run := h.Newest(workload, other)
		if run == nil {
			return figures.Spread{}, false
		}
		return run[workload].Ratio(run[other], of), true
	}
}

func rate(workload, other string) measure { return ratioOf(workload, other, figures.Rate) }

func cpu(workload, other string) measure { return ratioOf(workload, other, figures.TotalCPU) }

// value is a measure of one workload.
func value(workload string, of func(figures.Round) float64) measure {
	return func(h figures.History) (figures.Spread, bool) {
		run := h.Newest(workload)
		if run == nil {
			return figures.Spread{}, false
		}
		return run[workload].Of(of), true
	}
}

// named is a value of one workload, which older results may lack.
func named(workload, name string) measure {
	return func(h figures.History) (figures.Spread, bool) {
		if r, is := h.Newest(workload)[workload]; !is || !r.Has(name) {
			return figures.Spread{}, false
		}
		return value(workload, figures.Value(name))(h)
	}
}

// share compares two measures of one workload.
func share(workload, name, other string) measure {
	return value(workload, func(r figures.Round) float64 { return r.Values[name] / r.Values[other] })
}
