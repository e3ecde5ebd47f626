package semantics

import (
	"context"
	"time"
)

// Store keeps entities and messages and performs every promise as one atomic step by its own clock.
//
// All methods of all parts may be called concurrently by any number of goroutines, block for as long as one round trip
// to the store takes, and return at once with an *Error when ctx ends. Paths must come from ParsePath and are looked up
// without case (ENT-4). Arguments are checked by Broker, a Store does not check them again. A Store never keeps a slice
// it was given after it has returned and hands over the slices it returns. Every method may return STORE_UNAVAILABLE
// (with outcome "unknown" when a change may have taken effect, ERR-6) and CANCELLED; the methods list further codes. A
// Store never repeats a change.
type Store interface {
	Entities
	Topics
	Sender
	Receiver
	Settler
	Remover
	Sessions
	Transfers
	Transactor
	Observed
}

// Sweeper is a Store that does in the background what time makes due: activations, expiry, the end of locks and delays
// (TTL-20, SCHED-6). Only promptness depends on it, except that scheduled messages of a topic and messages to be
// forwarded wait for upkeep, which is the Broker. Any number of sidecars may sweep at once. Sweep blocks until ctx
// ends; call it once.
type Sweeper interface {
	Sweep(ctx context.Context, upkeep Upkeep)
}

// Upkeep is what a Sweeper has done by others, because it takes rules, or more than one entity. All methods block
// until they have done a bounded share of the work, are safe for concurrent use, and are called again for the rest.
type Upkeep interface {
	// ActivateDue enqueues the scheduled messages of a topic whose time has come (SCHED-7).
	ActivateDue(ctx context.Context, topic string) error
	// Forward carries on what a source has to forward (FWD-1). An error says that it is to be tried again later.
	Forward(ctx context.Context, source Source) error
	// Level completes changes that did not reach this partition of an entity, or that its server has forgotten: of
	// options, and of the subscriptions and rules of a topic (PART-8, DUR-4).
	Level(ctx context.Context, partition string) error
	// RemoveUnused deletes an entity with several partitions if none of them was used for AutoDeleteOnIdle, and returns
	// when to call it again, 0 for never (IDLE-8).
	RemoveUnused(ctx context.Context, path string) (time.Duration, error)
}

// Sharer is a Store that lets one sidecar read something for all of them, so that many sidecars cost what one does.
//
// Shared returns what some sidecar has read under a name within maxAge, and how old that is by the clock of the store.
// Without such a value it calls read, which blocks, shares the result and returns it. Errors of read are returned as
// they are. While another sidecar reads, Shared returns the last value instead, which is then some seconds older than
// maxAge, or ErrNotYet without one. Callers bound the size of values and the number of names.
type Sharer interface {
	Shared(
		ctx context.Context, name string, maxAge time.Duration, read func(context.Context) ([]byte, error),
	) (value []byte, age time.Duration, err error)
}

// Counter is a Store that counts many entities at the cost of few, for those who watch all of them. Runtimes counts
// queues and subscriptions as Runtime does, and blocks. Its answers are in the order of paths; nil for what is not
// there.
type Counter interface {
	Runtimes(ctx context.Context, paths []string) ([]*Runtime, error)
}

// Health is what a Store says of itself when it can serve.
type Health struct {
	Store    string   // what it is and where, without secrets: "redis 7.0.15 at 127.0.0.1:6379"
	Warnings []string // what weakens its promises, in plain sentences; empty when nothing does
}

// Checker is a Store that can check whether it is available and safe to use. Check blocks for a few round trips and is
// safe for concurrent use. It fails with STORE_UNAVAILABLE when the store cannot be reached now, which may pass, and
// with PRECONDITION_FAILED when its version or settings would lose messages, which an operator must correct.
type Checker interface {
	Check(ctx context.Context) (Health, error)
}
