package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

// running is a workload that takes turns with others.
type running struct {
	workload
	*opened
	result figures.Result
}

// open starts everything that the workloads need, so that what is missing ends the run before it begins.
func open(ctx context.Context, p plan, chosen []workload, dir string) (all []*running, stop func(), err error) {
	began, machine, load := time.Now().UTC().Truncate(time.Second), figures.Machine(), figures.LoadAverage()
	commit := figures.Commit(ctx)
	fmt.Printf("%s, load average %.1f\ncommit %s, %d rounds\n", machine, load, commit, p.rounds)
	stop = func() {
		for _, r := range all {
			r.stop()
		}
	}
	for i, w := range chosen {
		own := fmt.Sprintf("%s/%d", dir, i)
		if err := os.Mkdir(own, 0o700); err != nil {
			return all, stop, err
		}
		o, err := w.open(ctx, own)
		if err != nil {
			return all, stop, fmt.Errorf("%s: %w", w.name, err)
		}
		r := &running{w, o, figures.Result{
			Run: began, Commit: commit, Machine: machine, Load: load, Workload: o.named(w.name), Versions: o.versions,
			Settings: o.settings,
		}}
		if w.share >= 0 {
			r.result.Settings["messages"] = fmt.Sprint(w.part(p.messages), " of 1 KiB")
		}
		all = append(all, r)
		fmt.Printf(
			"%s\n    versions: %s\n    settings: %s\n", r.result.Workload, inOrder(o.versions, ": "),
			inOrder(o.settings, ": "),
		)
	}
	return all, stop, nil
}

// takeTurns measures the rounds. Before the first one, each workload that counts messages carries a few, which do not
// count, because programs compile and open things at first use.
func takeTurns(ctx context.Context, p plan, all []*running) error {
	for _, r := range all {
		if r.share < 0 {
			continue
		}
		if _, err := r.round(ctx, max(1, r.part(p.messages)/10)); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
	}
	for round := range p.rounds {
		began := time.Now()
		for _, r := range all {
			measured, err := r.round(ctx, r.part(p.messages))
			if err != nil {
				return fmt.Errorf("%s: %w", r.name, err)
			}
			r.result.Rounds = append(r.result.Rounds, measured)
			printRound(os.Stdout, fmt.Sprint("round ", round+1, "  ", r.result.Workload), measured)
		}
		fmt.Printf("round %d took %s\n", round+1, time.Since(began).Round(time.Second))
	}
	return nil
}
