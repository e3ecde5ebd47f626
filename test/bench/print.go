package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/test/figures"
)

// inOrder returns the items of a map in one line.
func inOrder[V any](items map[string]V, between string) string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(items)) {
		all = append(all, fmt.Sprint(name, between, items[name]))
	}
	return strings.Join(all, ", ")
}

// printRound prints the rate, the processor time of each process, and other values.
func printRound(out io.Writer, title string, r figures.Round) {
	fmt.Fprintf(out, "%-34s", title)
	if r.Rate > 0 {
		fmt.Fprintf(out, " %9.0f messages/s  CPU us a message:", r.Rate)
		for _, process := range slices.Sorted(maps.Keys(r.CPU)) {
			fmt.Fprintf(out, " %s %.1f,", process, r.CPU[process])
		}
		fmt.Fprintf(out, " total %.1f", r.TotalCPU())
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		fmt.Fprintf(out, "  %s %s", name, number(r.Values[name]))
	}
	fmt.Fprintln(out)
}

// printResults prints medians with the lowest and the highest, and what each is compared with the others.
func printResults(out io.Writer, results []figures.Result) {
	fmt.Fprintln(out, "\nmedian (lowest to highest)")
	for _, r := range results {
		fmt.Fprintln(out, r.Workload)
		if rate := r.Of(figures.Rate); rate.Median > 0 {
			fmt.Fprintf(out, "    messages/s %s\n    CPU us a message %s", spread(rate), spread(r.Of(figures.TotalCPU)))
			for _, process := range r.Processes() {
				fmt.Fprintf(out, ", %s %s", process, spread(r.Of(figures.CPU(process))))
			}
			fmt.Fprintln(out)
		}
		for _, name := range slices.Sorted(maps.Keys(r.Rounds[0].Values)) {
			fmt.Fprintf(out, "    %s %s\n", name, spread(r.Of(figures.Value(name))))
		}
		for _, other := range results {
			if other.Workload != r.Workload && other.Rounds[0].Rate > 0 && r.Rounds[0].Rate > 0 {
				fmt.Fprintf(
					out, "    rate %.2f x, CPU %.3f x %s\n", r.Ratio(other, figures.Rate).Median,
					r.Ratio(other, figures.TotalCPU).Median, other.Workload,
				)
			}
		}
	}
}

func spread(s figures.Spread) string {
	return fmt.Sprintf("%s (%s to %s)", number(s.Median), number(s.Low), number(s.High))
}

// number rounds to three digits, or to a whole number.
func number(n float64) string {
	if n >= 100 {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprintf("%.3g", n)
}
