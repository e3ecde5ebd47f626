package main

import (
	"cmp"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/test/figures"
)

const (
	bodySize = 1024
	window   = 1000 // messages in flight, for clients that can have several
	callers  = 64   // of clients that call for each message
)

// workload is something that is measured.
type workload struct {
	name  string
	share int // of the messages that a slow one gets: one in share; 0: all; -1: it has its own number
	open  func(ctx context.Context, dir string) (*opened, error)
}

// part returns how many of the messages of a round it gets.
func (w workload) part(messages int) int { return max(1, messages/max(1, w.share)) }

// opened is a workload whose programs run.
type opened struct {
	version            string // is added to the name of what is compared in several versions
	round              func(ctx context.Context, messages int) (figures.Round, error)
	versions, settings map[string]string
	stop               func()
}

// named returns the name of a workload in results.
func (o *opened) named(name string) string {
	if o.version == "" {
		return name
	}
	kind, _, _ := strings.Cut(name, "=")
	return kind + "-" + o.version
}

// processes are those that work for a workload, by what they do. Each returns the processor time that it has used.
type processes map[string]func() time.Duration

// carrying returns a round that measures carry, which moves messages through their whole life: sent and confirmed,
// delivered, acknowledged, sending and receiving at the same time.
func carrying(p processes, carry func(ctx context.Context, messages int) error) func(
	context.Context, int,
) (figures.Round, error) {
	return func(ctx context.Context, messages int) (figures.Round, error) {
		before := map[string]time.Duration{}
		for what, used := range p {
			before[what] = used()
		}
		began := time.Now()
		if err := carry(ctx, messages); err != nil {
			return figures.Round{}, err
		}
		r := figures.Round{Rate: float64(messages) / time.Since(began).Seconds(), CPU: map[string]float64{}}
		for what, used := range p {
			r.CPU[what] = float64((used() - before[what]).Nanoseconds()) / 1000 / float64(messages)
		}
		return r, nil
	}
}

// fromCallers lets callers work until messages are used up. Each runs work, which asks for one more message until there
// is none. The first error ends them all.
func fromCallers(messages int, work func(more func() bool) error) error {
	var left atomic.Int64
	left.Store(int64(messages))
	more := func() bool { return left.Add(-1) >= 0 }
	ended := make(chan error, callers)
	for range callers {
		go func() {
			err := work(more)
			if err != nil {
				left.Store(0)
			}
			ended <- err
		}()
	}
	var failed error
	for range callers {
		failed = cmp.Or(failed, <-ended)
	}
	return failed
}
