package main

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
)

// plan is what is done in each round.
type plan struct {
	messages  int // of one phase
	callers   int // that publish at a time
	batch     int // messages of one call that publishes many
	latencies int // messages that are alone on their way
}

func main() {
	var p plan
	flag.IntVar(&p.messages, "messages", 20_000, "messages of 1 KiB for each phase of a round")
	flag.IntVar(&p.callers, "callers", 64, "callers that publish at a time")
	flag.IntVar(
		&p.batch, "batch", 100,
		"messages of a call that publishes many; 0: no such calls, which a runtime of 1.14 does not know",
	)
	flag.IntVar(&p.latencies, "latencies", 1000, "messages that are sent one after the other")
	rounds := flag.Int("rounds", 5, "rounds; each takes every contender once, the median counts")
	only := flag.String("only", "", "names of contenders, separated by commas; empty: all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, p, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan, rounds int, only string) error {
	bed, err := newBed(ctx)
	if err != nil {
		return err
	}
	defer bed.stop()
	var names []string
	results := map[string]map[string][]float64{} // by contender and measure
	var started []*contender
	for _, c := range contenders {
		if only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		if err := c.start(ctx, bed); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		names, started, results[c.name] = append(names, c.name), append(started, c), map[string][]float64{}
	}
	for round := range rounds {
		for _, c := range started {
			got, err := c.round(ctx, bed, p)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			fmt.Printf("round %d  %-18s %s\n", round+1, c.name, line(got))
			for measure, value := range got {
				results[c.name][measure] = append(results[c.name][measure], value)
			}
		}
	}
	fmt.Println("\nmedians")
	for _, name := range names {
		medians := map[string]float64{}
		for measure, values := range results[name] {
			medians[measure] = slices.Sorted(slices.Values(values))[len(values)/2]
		}
		fmt.Printf("%-18s %s\n", name, line(medians))
	}
	return nil
}

func line(values map[string]float64) string {
	var b strings.Builder
	for _, measure := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&b, "  %s %.*f", measure, map[bool]int{true: 0, false: 2}[values[measure] >= 100], values[measure])
	}
	return b.String()
}
