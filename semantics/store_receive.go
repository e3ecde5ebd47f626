package semantics

import (
	"context"
	"time"
)

// Register is whether a receive leaves the caller's sidecar on the list of those to wake when something arrives.
type Register uint8

const (
	// RegisterNever: the caller will not wait.
	RegisterNever Register = iota
	// RegisterIfEmpty: the caller will wait if this call returns nothing.
	RegisterIfEmpty
	// RegisterAlways: others of this sidecar wait on the source whatever this call returns.
	RegisterAlways
)

// Batch is the answer to one receive.
type Batch struct {
	Messages []*Received

	// RecheckAfter is how long a caller that got nothing may wait before it must try again without a wake-up: until the
	// next lock ends, and never longer than a bound, in case a wake-up is lost. Zero means try again at once: more was
	// due than one call may process.
	RecheckAfter time.Duration
}

// NextBatch is what a CompleteAndReceive did.
type NextBatch struct {
	Codes   []Code // one for each token, as of Complete
	Batch   Batch
	Failure error // of the receive
}

// CompleteThenReceive is CompleteAndReceive by two calls of a store.
func CompleteThenReceive(ctx context.Context, s interface {
	Settler
	Receiver
}, source Source, tokens []LockToken, limit int, register Register,
) (next NextBatch, err error) {
	if next.Codes, err = s.Complete(ctx, source, tokens); err == nil {
		next.Batch, next.Failure = s.Receive(ctx, source, limit, register)
	}
	return next, err
}

// Watch is a subscription to wake-ups of one source.
type Watch interface {
	// C delivers, each time there may be something to receive, the number of messages that arrived or 0 when that is
	// not known and everyone should look. A wake-up means "look again", no more.
	C() <-chan int
	// Sessions returns, and forgets, the locks of the sessions that wake-ups since the last call were about. Only a
	// watch of HeldSessions has some; a wake-up of 0 is about all of them.
	Sessions() []LockToken
	// Close ends the subscription. It may be called once.
	Close()
}

// Use says until when a queue or subscription was in use.
type Use struct {
	Path string
	Ago  time.Duration // since then; 0: it still is
}

// NoteEvery is how often a Broker calls NoteUse. It is short against MinAutoDeleteOnIdle, so that one failure costs
// nothing.
const NoteEvery = 40 * time.Second

// Receiver takes and looks at messages.
type Receiver interface {
	// Receive locks up to limit available messages for the queue's LockDuration and hands them out with new tokens, in
	// order of sequence number, what was given back first (RECV-8, RECV-9, LOCK-1, LOCK-2). It never waits for a
	// message to arrive. On the way it takes back locks that ended (LOCK-6, DC-5) and clears away what has expired
	// (TTL-8, TTL-9, TTL-11). When it finds nothing and register asks for it, later arrivals wake a Watch of this
	// Store. From a held session it returns no more than SessionInFlight permits together with those not settled yet,
	// nothing behind a message that is delayed, and locks that end with the session's (SESS-25 to SESS-28, SETTLE-11).
	// If the outcome of a receive from a session was unknown, the next one through this Store first releases what that
	// one may have locked, so that nothing overtakes it.
	// ENTITY_NOT_FOUND, ENTITY_DISABLED, SESSION_REQUIRED for a queue with sessions without one (RECV-11),
	// SESSION_NOT_SUPPORTED for a session of another queue, SESSION_LOCK_LOST, and INVALID_OPERATION for a main queue
	// that forwards what it gets (FWD-2): see ForwardsAll.
	Receive(ctx context.Context, source Source, limit int, register Register) (Batch, error)

	// CompleteAndReceive completes messages as Complete does, and then receives from the same source as Receive does
	// (RECV-15). It fails as Complete does, and then receives nothing.
	CompleteAndReceive(
		ctx context.Context, source Source, tokens []LockToken, limit int, register Register,
	) (NextBatch, error)

	// Watch subscribes to wake-ups of source. It blocks until the subscription stands, so that no wake-up caused by
	// a later Receive of the same caller can be missed.
	Watch(ctx context.Context, source Source) (Watch, error)

	// NoteUse stamps the activity of queues and subscriptions that were in use without a call, because a receive waited
	// for their messages (IDLE-5). It concerns only those that AutoDeleteOnIdle may delete, or delete with their topic.
	// One that does not exist is skipped.
	NoteUse(ctx context.Context, uses []Use) error

	// PassOn wakes the next sidecar that waits on source if there is something to receive. A caller that was woken and
	// has no waiter left calls it.
	PassOn(ctx context.Context, source Source) error

	// ReceiveByNumber locks the messages with the given numbers, all or none, and hands them out in the order given, a
	// number given twice once. state Deferred takes deferred messages (DEFER-3), Active available ones, delayed ones
	// included (PURGE-9), and is INVALID_OPERATION on a queue with sessions, whose order it would break. An expired
	// message is ended instead of taken (TTL-8, TTL-18). ENTITY_NOT_FOUND, ENTITY_DISABLED, the further errors of
	// Receive, and MESSAGE_NOT_FOUND with the numbers that are unknown, in another state, in another session (DEFER-7),
	// locked or expired.
	ReceiveByNumber(ctx context.Context, source Source, state State, numbers []int64) ([]*Received, error)

	// Reactivate makes the deferred messages with the given numbers available at their old places, all or none
	// (DEFER-8), with a held session only those of that session. Errors and expiry as ReceiveByNumber, but a queue with
	// sessions needs none, and one that forwards what it gets may do so.
	Reactivate(ctx context.Context, source Source, numbers []int64) error

	// Peek returns up to limit messages with sequence numbers of at least from, in ascending order, that are in one of
	// the shown states, and changes only the activity stamp (PEEK-1, PEEK-2, PEEK-7, PEEK-9), over all sessions or in
	// the one that source names or holds (PEEK-8, SESS-39). ENTITY_NOT_FOUND, ENTITY_DISABLED, SESSION_NOT_SUPPORTED,
	// SESSION_LOCK_LOST.
	Peek(ctx context.Context, source Source, from int64, limit int, show Show) ([]*Received, error)
}

// Show says which messages a Peek or a Purge is about, by what can be done with them now.
type Show uint8

// The groups of messages.
const (
	ShowAvailable Show = 1 << iota // delayed and expired ones included
	ShowLocked
	ShowDeferred // and not locked
	ShowScheduled

	ShowAll = ShowAvailable | ShowLocked | ShowDeferred | ShowScheduled
)
