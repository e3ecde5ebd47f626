package stream

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Broker is what a subscription needs of the broker whose messages it delivers. Only Charge, Take and Accept count
// against the client's rate limit. All methods may be called concurrently.
type Broker interface {
	// Draining returns a channel that is closed when no new receives are taken.
	Draining() <-chan struct{}
	// Charge counts one call against the rate limit. It returns THROTTLED.
	Charge() error
	// Entity reads a queue or subscription.
	Entity(ctx context.Context, path string) (semantics.Entity, error)
	// Use notes that source is in use until end is called.
	Use(ctx context.Context, path string) (end func())

	// Take receives up to n messages and waits up to maxWait for the first. owner hears when they are settled, by any
	// call.
	Take(
		ctx context.Context, source semantics.Source, n int, maxWait time.Duration, mode semantics.Mode, owner Owner,
	) (*delivery.Delivery, error)
	// Complete completes messages.
	Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error)
	// Turn completes messages of sessions and takes the next ones, as Complete and Take without a wait.
	Turn(ctx context.Context, path string, turns []semantics.Turn, owner Owner) []Turned
	// Look is Turn without completions.
	Look(ctx context.Context, path string, turns []semantics.Turn, mode semantics.Mode, owner Owner) []Turned
	// WatchSessions hears of what there is for the sessions of a queue that found nothing and have registered.
	WatchSessions(ctx context.Context, path string) (semantics.Watch, error)
	// RenewLocks extends the locks of messages.
	RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error)
	// Release releases messages. What fails is available again when its lock ends.
	Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken)

	// Accept takes the lock of the session that has been ready longest, and waits up to maxWait for one. Nil: none
	// became ready.
	Accept(ctx context.Context, path string, maxWait time.Duration) (*semantics.Session, error)
	// RenewSession extends the lock of a session and all locks under it.
	RenewSession(ctx context.Context, source semantics.Source) error
	// CloseSession closes a session.
	CloseSession(ctx context.Context, source semantics.Source) error
}

// Turned is the outcome of a turn.
type Turned struct {
	Codes    []semantics.Code // as of Complete, as the error
	Err      error
	Delivery *delivery.Delivery // nil: nothing was taken
	Failure  error              // why; of Turn it comes again
	Recheck  time.Duration      // if there was nothing, after what time to look again without a wake-up; 0: at once
}

// Owner has messages that were taken. Owners compare with ==.
type Owner interface {
	// Forget notes that messages were settled, or that their locks are lost. It does not keep tokens.
	Forget(tokens []semantics.LockToken)
}
