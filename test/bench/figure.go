package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// figure is what one round of one queue took.
type figure struct {
	rate float64            // messages a second
	cpu  map[string]float64 // microseconds of processor time for each message, by process
}

// measure runs one round.
func measure(ctx context.Context, q *opened, messages int) (figure, error) {
	before := map[string]time.Duration{}
	for what, used := range q.processes {
		before[what] = used()
	}
	began := time.Now()
	if err := q.carry(ctx, messages); err != nil {
		return figure{}, err
	}
	f := figure{rate: float64(messages) / time.Since(began).Seconds(), cpu: map[string]float64{}}
	for what, used := range q.processes {
		f.cpu[what] = float64((used() - before[what]).Nanoseconds()) / 1000 / float64(messages)
	}
	return f, nil
}

func (f figure) total() (sum float64) {
	for _, us := range f.cpu {
		sum += us
	}
	return sum
}

// String returns the rate and the processor time of each process and of all.
func (f figure) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%9.0f messages/s  CPU us a message:", f.rate)
	for _, what := range slices.Sorted(maps.Keys(f.cpu)) {
		fmt.Fprintf(&b, " %s %.1f", what, f.cpu[what])
	}
	fmt.Fprintf(&b, ", total %.1f", f.total())
	return b.String()
}

// medians returns the median of each number.
func medians(rounds []figure) figure {
	m := figure{rate: median(rounds, func(f figure) float64 { return f.rate }), cpu: map[string]float64{}}
	for what := range rounds[0].cpu {
		m.cpu[what] = median(rounds, func(f figure) float64 { return f.cpu[what] })
	}
	return m
}

func median(rounds []figure, of func(figure) float64) float64 {
	return ratio(rounds, nil, of)
}

// ratio returns the median of the ratios of pairs; without others, of the numbers.
func ratio(rounds, others []figure, of func(figure) float64) float64 {
	values := make([]float64, len(rounds))
	for i, f := range rounds {
		values[i] = of(f)
		if others != nil {
			values[i] /= of(others[i])
		}
	}
	slices.Sort(values)
	return values[len(values)/2]
}
