package scaler

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Store is the part of a store that is read. Reading does not count as use of an entity.
type Store interface {
	GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error)
	Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error)
}

// Metric is what the number of replicas can follow. Its value is the name that KEDA shows.
type Metric string

// The metrics. None counts what is scheduled, deferred or delayed: no receiver could do anything about it (COMP-16).
// What receivers have locked counts, because those that work on it must not be removed.
const (
	Messages Metric = "messages" // available or locked
	Sessions Metric = "sessions" // ready or locked
	Age      Metric = "age"      // seconds since the oldest available message, or ready session, is there
)

// work is what there is to do in a source.
type work struct {
	messages, sessions int64
	since              time.Time // of Age; zero: nothing is available
	hasSessions        bool
}

// isAny reports whether a source that has no receiver needs one.
func (w work) isAny() bool {
	if w.hasSessions {
		return w.sessions > 0 // a message may be in a session that is blocked
	}
	return w.messages > 0
}

func (w work) value(m Metric, now time.Time) float64 {
	switch {
	case m == Messages:
		return float64(w.messages)
	case m == Sessions:
		return float64(w.sessions)
	case w.since.IsZero():
		return 0
	default:
		return max(now.Sub(w.since).Seconds(), 0)
	}
}

// read reads what there is to do, with two calls of scripts that take as long whatever the source holds, and one more
// for each partition.
func read(ctx context.Context, store Store, source semantics.Source) (work, error) {
	kind := semantics.QueueKind
	if isSubscription(source.Path) {
		kind = semantics.SubscriptionKind
	}
	entity, err := store.GetEntity(ctx, kind, source.Path)
	if err != nil {
		return work{}, err
	}
	counts, err := store.Runtime(ctx, kind, source.Path)
	if err != nil {
		return work{}, err
	}
	switch source.SubQueue {
	case semantics.DeadLetterQueue:
		return work{messages: counts.DeadLetter}, nil
	case semantics.TransferDeadLetterQueue:
		return work{messages: counts.TransferDeadLetter}, nil
	case semantics.MainQueue:
	}
	w := work{
		messages: counts.Locked, sessions: counts.LockedSessions, hasSessions: entity.Options.RequiresSession,
	}
	if entity.Options.Status.CanReceive() && entity.Options.ForwardTo == "" {
		w.messages += counts.Available - counts.Delayed
		w.sessions += counts.ReadySessions
		w.since = counts.AvailableSince
	}
	return w, nil
}

const (
	// freshFor is for how long calls share what was read.
	freshFor = 500 * time.Millisecond
	// maxReadings bounds the memory for what was read. They are all forgotten then, and read again.
	maxReadings = 10_000
)

// readings are what was read of each source. Calls about the same source share one read.
type readings struct {
	store Store
	mu    sync.Mutex
	of    map[semantics.Source]*reading
}

type reading struct {
	turn chan struct{} // capacity 1: held by the call that reads or looks
	work work
	at   time.Time
}

func newReadings(store Store) *readings {
	return &readings{store: store, of: map[semantics.Source]*reading{}}
}

// get returns what there is to do in a source.
func (r *readings) get(ctx context.Context, source semantics.Source) (work, error) {
	last := r.find(source)
	select {
	case last.turn <- struct{}{}:
	case <-ctx.Done():
		return work{}, ctx.Err()
	}
	defer func() { <-last.turn }()
	if time.Since(last.at) < freshFor {
		return last.work, nil
	}
	now, err := read(ctx, r.store, source)
	if err != nil {
		return work{}, err
	}
	last.work, last.at = now, time.Now()
	return now, nil
}

func (r *readings) find(source semantics.Source) *reading {
	source.Path = semantics.Fold(source.Path)
	r.mu.Lock()
	defer r.mu.Unlock()
	if found := r.of[source]; found != nil {
		return found
	}
	if len(r.of) >= maxReadings {
		clear(r.of)
	}
	created := &reading{turn: make(chan struct{}, 1)}
	r.of[source] = created
	return created
}
