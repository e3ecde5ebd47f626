package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"

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
	isFloor := flag.Bool("serve-floor", false, "run the server of floor-stream, floor-unary and floor-calls")
	bare := flag.String("serve-bare", "", "run the server of floor-sessions with the Redis of this unix socket")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := errors.New("-rounds and -messages must be above 0")
	switch {
	case *nats != "":
		err = serveNATS(*nats, os.Stdout)
	case *isFloor:
		err = serve(&floorServer{sent: make(chan struct{}, window)}, os.Stdout)
	case *bare != "":
		err = serve(newBareServer(*bare), os.Stdout)
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
	all, stop, err := open(ctx, p, chosen, dir)
	defer stop()
	if err != nil {
		return err
	}
	if err := takeTurns(ctx, p, all); err != nil {
		return err
	}
	var results []figures.Result
	for _, r := range all {
		results = append(results, r.result)
	}
	printResults(os.Stdout, results)
	if p.history == "" {
		return nil
	}
	return figures.Append(p.history, results)
}
