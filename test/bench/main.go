package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// carrier is a queue that is compared: it carries messages through their whole life, sent, delivered and acknowledged,
// sending and receiving at the same time, and returns how long that took.
type carrier struct {
	name string
	open func(ctx context.Context, dir string) (carry func(ctx context.Context, messages int) (time.Duration, error),
		stop func(), err error)
	share int // of the messages that a slow one gets: one in share
}

func main() {
	messages := flag.Int("messages", 50_000, "messages of 1 KiB for each round")
	rounds := flag.Int("rounds", 5, "rounds; each takes every queue once, the median counts")
	only := flag.String("only", "", "names of queues, separated by commas; empty: all")
	flag.Parse()
	if err := run(context.Background(), *messages, *rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, messages, rounds int, only string) error {
	var chosen []carrier
	for _, c := range []carrier{sidebusStream, sidebusSessions, sidebusUnary, sidebusTurns, natsJetStream, asynqTasks} {
		if only == "" || slices.Contains(strings.Split(only, ","), c.name) {
			chosen = append(chosen, c)
		}
	}
	dir, err := os.MkdirTemp("", "sidebus-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	carries := make([]func(context.Context, int) (time.Duration, error), len(chosen))
	for i, c := range chosen {
		own := dir + "/" + c.name
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		carry, stop, err := c.open(ctx, own)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		defer stop()
		carries[i] = carry
	}
	rates := make([][]float64, len(chosen))
	for round := range rounds {
		for i, c := range chosen {
			n := messages / cmp.Or(c.share, 1)
			took, err := carries[i](ctx, n)
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			rates[i] = append(rates[i], float64(n)/took.Seconds())
			fmt.Printf("round %d  %-18s %9.0f messages/s\n", round+1, c.name, rates[i][round])
		}
	}
	fmt.Println()
	for i, c := range chosen {
		fmt.Printf("%-18s %9.0f messages/s", c.name, median(rates[i]))
		for j, other := range chosen {
			if i != j {
				ratios := make([]float64, rounds)
				for round := range rounds {
					ratios[round] = rates[i][round] / rates[j][round]
				}
				fmt.Printf("   %.2f x %s", median(ratios), other.name)
			}
		}
		fmt.Println()
	}
	return nil
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
