package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

// plan is what the command line asks for.
type plan struct {
	messages, rounds int
	only             string
	history          string
	socket           bool
}

func main() {
	var p plan
	flag.IntVar(&p.messages, "messages", 50_000, "messages of 1 KiB for each round; slow workloads get a part of them")
	flag.IntVar(&p.rounds, "rounds", 7, "rounds; each takes every workload once, the median counts")
	flag.StringVar(&p.only, "only", "sidebus,peers", "workloads or groups (sidebus, peers, dapr, targets), separated by "+
		"commas. sidebus-stream=path runs another binary than bin/sidebus, rabbitmq-quorum=path the server of the system in "+
		"this folder; workloads may be repeated")
	flag.StringVar(&p.history, "history", "", "folder whose file of today gets the results, a line of JSON each")
	flag.BoolVar(&p.socket, "socket", false, "sidecars listen on a unix socket instead of TCP")
	nats := flag.String("serve-nats", "", "run the NATS server with its files in this folder, for nats-jetstream")
	isFloor := flag.Bool("serve-floor", false, "run the server of floor-stream and floor-unary")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := errors.New("-rounds and -messages must be above 0")
	switch {
	case *nats != "":
		err = serveNATS(*nats, os.Stdout)
	case *isFloor:
		err = serveFloor(os.Stdout)
	case p.rounds > 0 && p.messages > 0:
		err = run(ctx, p)
	}
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, p plan) error {
	chosen, err := choose(p.only, p.socket)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sb-") // short, as sockets are in it
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
	results, all, stop, err := open(ctx, p, chosen, dir)
	defer stop()
	if err != nil {
		return err
	}
	for round := range p.rounds {
		began := time.Now()
		for i, w := range chosen {
			r, err := all[i].round(ctx, w.part(p.messages))
			if err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			results[i].Rounds = append(results[i].Rounds, r)
			printRound(os.Stdout, fmt.Sprint("round ", round+1, "  ", results[i].Workload), r)
		}
		fmt.Printf("round %d took %s\n", round+1, time.Since(began).Round(time.Second))
	}
	printResults(os.Stdout, results)
	if p.history == "" {
		return nil
	}
	return figures.Append(p.history, results)
}

// open starts everything that the workloads need, so that what is missing ends the run before it begins.
func open(ctx context.Context, p plan, chosen []workload, dir string) (
	results []figures.Result, all []*opened, stop func(), err error,
) {
	began, machine, commit := time.Now().UTC().Truncate(time.Second), figures.Machine(), figures.Commit(ctx)
	fmt.Printf("%s\ncommit %s, %d rounds\n", machine, commit, p.rounds)
	stop = func() {
		for _, o := range all {
			o.stop()
		}
	}
	for i, w := range chosen {
		own := fmt.Sprintf("%s/%d", dir, i)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, stop, err
		}
		o, err := w.open(ctx, own)
		if err != nil {
			return nil, nil, stop, fmt.Errorf("%s: %w", w.name, err)
		}
		all = append(all, o)
		r := figures.Result{
			Run: began, Commit: commit, Machine: machine, Workload: o.named(w.name), Versions: o.versions,
			Settings: o.settings,
		}
		if w.share >= 0 {
			r.Settings["messages"] = fmt.Sprint(w.part(p.messages), " of 1 KiB")
		}
		results = append(results, r)
		fmt.Printf("%s\n    versions: %s\n    settings: %s\n", r.Workload, inOrder(r.Versions, ": "), inOrder(r.Settings, ": "))
	}
	return results, all, stop, nil
}
