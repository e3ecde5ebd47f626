package main

import "github.com/sidebus/sidebus/test/figures"

// check is one number of a target.
type check struct {
	target, what string
	isLimit      bool // the bound is the most, not the least
	bound        float64
	unit         string
	measure      measure
}

// measure returns what was measured last; false when nothing was.
type measure func(figures.History) (figures.Spread, bool)

// isReached compares the median.
func (c check) isReached(s figures.Spread) bool {
	if c.isLimit {
		return s.Median <= c.bound
	}
	return s.Median >= c.bound
}

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

func named(workload, name string) measure { return value(workload, figures.Value(name)) }

// share compares two measures of one workload.
func share(workload, name, other string) measure {
	return value(workload, func(r figures.Round) float64 { return r.Values[name] / r.Values[other] })
}
