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

// carrier is a queue that is compared. open starts it with its files in dir.
type carrier struct {
	name  string
	open  func(ctx context.Context, dir string) (*opened, error)
	share int // of the messages that a slow one gets: one in share
}

// opened is a carrier that runs.
type opened struct {
	// carry carries messages through their whole life, sent, delivered and acknowledged, sending and receiving at the
	// same time.
	carry func(ctx context.Context, messages int) error
	// processes are those that work for it, by what they do. Each returns the processor time that it has used.
	processes map[string]func() time.Duration
	stop      func()
}

func main() {
	messages := flag.Int("messages", 50_000, "messages of 1 KiB for each round")
	rounds := flag.Int("rounds", 5, "rounds; each takes every queue once, the median counts")
	only := flag.String("only", "", "names of queues, separated by commas; empty: all. "+
		"sidebus-stream=path runs another binary than bin/sidebus; binaries and queues may be repeated")
	socket := flag.Bool("socket", false, "sidecars listen on a unix socket instead of TCP")
	flag.Parse()
	if err := run(context.Background(), *messages, *rounds, *only, *socket); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, messages, rounds int, only string, socket bool) error {
	chosen, err := choose(only, socket)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sidebus-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	var queues []*opened
	for i, c := range chosen {
		own := fmt.Sprintf("%s/%d", dir, i)
		if err := os.Mkdir(own, 0o700); err != nil {
			return err
		}
		q, err := c.open(ctx, own)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		defer q.stop()
		queues = append(queues, q)
	}
	figures := make([][]figure, len(chosen)) // by queue and round
	for round := range rounds {
		for i, c := range chosen {
			f, err := measure(ctx, queues[i], messages/cmp.Or(c.share, 1))
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			figures[i] = append(figures[i], f)
			fmt.Printf("round %d  %-18s %s\n", round+1, c.name, f)
		}
	}
	fmt.Println()
	for i, c := range chosen {
		fmt.Printf("%-18s %s\n", c.name, medians(figures[i]))
		for j, other := range chosen {
			if i != j {
				fmt.Printf("    rate %.2f x, CPU %.3f x %s\n",
					ratio(figures[i], figures[j], func(f figure) float64 { return f.rate }),
					ratio(figures[i], figures[j], figure.total), other.name)
			}
		}
	}
	return nil
}

// choose returns the queues of a list of names.
func choose(only string, socket bool) ([]carrier, error) {
	var all []carrier
	if only == "" {
		only = "sidebus-stream,sidebus-sessions,sidebus-unary,sidebus-unary-2,nats-jetstream,asynq"
	}
	for _, name := range strings.Split(only, ",") {
		kind, binary, _ := strings.Cut(name, "=")
		s := sidecar{binary: cmp.Or(binary, "../../bin/sidebus"), socket: socket}
		known := append(s.carriers(), natsJetStream, asynqTasks)
		at := slices.IndexFunc(known, func(c carrier) bool { return c.name == kind })
		if at < 0 {
			return nil, fmt.Errorf("there is no %q", kind)
		}
		known[at].name = name
		all = append(all, known[at])
	}
	return all, nil
}
