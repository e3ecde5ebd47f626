package semantics

import (
	"context"
	"time"
)

// Store keeps entities and messages and performs every promise as one atomic step by its own clock.
//
// All methods of all parts may be called concurrently by any number of goroutines, block for as long as one round
// trip to the store takes, and return at once with an *Error when ctx ends. Paths must come from ParsePath and are
// looked up without case (ENT-4). Arguments are checked by Broker, a Store does not check them again. A Store never
// keeps a slice it was given after it has returned and hands over the slices it returns. Every method may return
// STORE_UNAVAILABLE (with outcome "unknown" when a change may have taken effect, ERR-6) and CANCELLED; the further
// codes stand at the methods. A Store never repeats a change by itself.
type Store interface {
	Queues
	Sender
	Receiver
	Settler
}

// Queues manages queues.
type Queues interface {
	// CreateQueue makes a queue, or gives back the present one unchanged with created=false when the name is taken
	// (ENT-2, ENT-6).
	CreateQueue(ctx context.Context, path string, options QueueOptions) (queue Queue, created bool, err error)

	// GetQueue reads a queue. It does not count as activity (IDLE-7). ENTITY_NOT_FOUND.
	GetQueue(ctx context.Context, path string) (Queue, error)

	// UpdateQueue sets the named options (QueueOptionNames) to the values in options, leaves the others alone and
	// wakes all waiting receivers. Stored messages and locks stay as they are (ENT-10). ENTITY_NOT_FOUND.
	UpdateQueue(ctx context.Context, path string, options QueueOptions, names []string) (Queue, error)

	// DeleteQueue removes a queue and all it holds and wakes all waiting receivers (ENT-8). ENTITY_NOT_FOUND.
	DeleteQueue(ctx context.Context, path string) error

	// ListQueues gives up to limit queues in order of their folded names, beginning after the given folded name
	// ("" = from the start). more tells whether others follow.
	ListQueues(ctx context.Context, after string, limit int) (queues []Queue, more bool, err error)

	// QueueRuntime counts a queue in O(log n) (CNT-4). ENTITY_NOT_FOUND.
	QueueRuntime(ctx context.Context, path string) (Runtime, error)
}

// Sender puts messages into entities.
type Sender interface {
	// Send stores all messages with consecutive sequence numbers, or none (BATCH-1, BATCH-3, SEND-1), and gives the
	// number of the first. ENTITY_NOT_FOUND, ENTITY_DISABLED, MESSAGE_SIZE_EXCEEDED, ENTITY_FULL. Calls one goroutine
	// makes one after the other are numbered in that order (SEND-3).
	Send(ctx context.Context, path string, messages []*Message) (first int64, err error)
}

// Register says whether a receive leaves the caller's sidecar on the list of those to wake when something arrives.
type Register uint8

const (
	// RegisterNever: the caller will not wait.
	RegisterNever Register = iota
	// RegisterIfEmpty: the caller will wait if this call gives it nothing.
	RegisterIfEmpty
	// RegisterAlways: others of this sidecar wait on the source whatever this call gives.
	RegisterAlways
)

// Batch is the answer to one receive.
type Batch struct {
	Messages []*Received

	// RecheckAfter is how long a caller that got nothing may sleep before it must look again although nobody woke
	// it: until the next lock ends, and never longer than a bound that makes up for a lost wake-up. Zero means look
	// again at once: there was more to clear away than one call may do.
	RecheckAfter time.Duration
}

// Watch is a subscription to wake-ups of one source.
type Watch interface {
	// C delivers, each time there may be something to receive, the number of messages that arrived or 0 when that is
	// not known and everyone should look. A wake-up means "look again", no more.
	C() <-chan int
	// Close ends the subscription. It may be called once.
	Close()
}

// Receiver takes and looks at messages.
type Receiver interface {
	// Receive locks up to limit available messages for the queue's LockDuration and hands them out with new tokens, in
	// order of sequence number, what was given back first (RECV-8, RECV-9, LOCK-1, LOCK-2). It never waits for a message to
	// arrive. On the way it takes back locks that ended (LOCK-6, DC-5) and clears away what has expired (TTL-8,
	// TTL-9, TTL-11). When it finds nothing and register asks for it, later arrivals wake a Watch of this Store.
	// ENTITY_NOT_FOUND, ENTITY_DISABLED.
	Receive(ctx context.Context, source Source, limit int, register Register) (Batch, error)

	// Watch subscribes to wake-ups of source. It blocks until the subscription stands, so that no wake-up caused by
	// a later Receive of the same caller can be missed.
	Watch(ctx context.Context, source Source) (Watch, error)

	// PassOn wakes the next sidecar that waits on source if there is something to receive. Whoever was woken and
	// has nobody left to serve calls it.
	PassOn(ctx context.Context, source Source) error

	// Peek gives up to limit messages with sequence numbers of at least from, in ascending order, whatever their state,
	// and changes nothing but the activity stamp (PEEK-1, PEEK-2, PEEK-9). ENTITY_NOT_FOUND, ENTITY_DISABLED.
	Peek(ctx context.Context, source Source, from int64, limit int) ([]*Received, error)
}

// Settler ends or extends locks. Every method works token by token, each atomic on its own, and returns one outcome
// per token in the order given: the empty Code, or MESSAGE_LOCK_LOST for a token that does not hold, for whatever
// cause (LOCK-7, SETTLE-2, SETTLE-14). The call as a whole fails with ENTITY_NOT_FOUND.
type Settler interface {
	// Complete removes the messages (SETTLE-3).
	Complete(ctx context.Context, source Source, tokens []LockToken) ([]Code, error)

	// Abandon makes the messages available again with one delivery more, or dead-letters them when that was the last
	// permitted one, or expires them (SETTLE-4, SETTLE-12, TTL-9). In a dead-letter queue the count stays (DC-7).
	Abandon(ctx context.Context, source Source, tokens []LockToken) ([]Code, error)

	// Release makes the messages available again and counts nothing (SETTLE-10).
	Release(ctx context.Context, source Source, tokens []LockToken) ([]Code, error)

	// DeadLetter moves the messages to the dead-letter queue of source, which must be a main queue (SETTLE-6).
	DeadLetter(ctx context.Context, source Source, tokens []LockToken, reason, description string) ([]Code, error)

	// RenewLocks sets the end of the locks to now + LockDuration (LOCK-3, LOCK-5).
	RenewLocks(ctx context.Context, source Source, tokens []LockToken) ([]Renewal, error)
}

// Health is what a Store says of itself when it can serve.
type Health struct {
	Store    string   // what it is and where, without secrets: "redis 7.0.15 at 127.0.0.1:6379"
	Warnings []string // what weakens its promises, in plain sentences; empty when nothing does
}

// Checker is a Store that can tell whether it is able and fit to serve. Check blocks for a few round trips and is safe
// for concurrent use. It fails with STORE_UNAVAILABLE when the store cannot be reached now, which may pass, and with
// PRECONDITION_FAILED when its version or settings would lose messages, which somebody must mend.
type Checker interface {
	Check(ctx context.Context) (Health, error)
}
