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
}

// MaxPageSize is the default and the most rows of one page of a list (ENT-17).
const MaxPageSize = 100

// Entities manages queues, topics and subscriptions. A path with the segment "Subscriptions" names a subscription, see
// SubscriptionPath; the kind given with another path must be QueueKind or TopicKind. An entity of another kind is
// ENTITY_NOT_FOUND, except for creation.
type Entities interface {
	// CreateEntity makes a queue or a topic, or gives back the present one unchanged with created=false when the name
	// is taken, be it by one of the other kind (ENT-2, ENT-6). QUOTA_EXCEEDED (QUOTA-1).
	CreateEntity(ctx context.Context, kind Kind, path string, options Options) (entity Entity, created bool, err error)

	// CreateSubscription creates a subscription with its first rules in one step (RULE-1), or returns the present one
	// unchanged with created=false (ENT-2, ENT-6). ENTITY_NOT_FOUND when there is no such topic, QUOTA_EXCEEDED
	// (RULE-4).
	CreateSubscription(
		ctx context.Context, path string, options Options, rules []Rule,
	) (entity Entity, created bool, err error)

	// GetEntity reads an entity. It does not count as activity (IDLE-7). ENTITY_NOT_FOUND.
	GetEntity(ctx context.Context, kind Kind, path string) (Entity, error)

	// UpdateEntity sets the named options (OptionNames) to the values in options, leaves the others alone and wakes all
	// waiting receivers. Stored messages and locks stay as they are (ENT-10). ENTITY_NOT_FOUND, and PROPERTY_IMMUTABLE
	// when one of them is Immutable and differs (ENT-7): nothing is changed then.
	UpdateEntity(ctx context.Context, kind Kind, path string, options Options, names []string) (Entity, error)

	// DeleteEntity removes an entity and all it holds, a topic with its subscriptions, and wakes all waiting receivers
	// (ENT-8). From the first step on no call finds it, and it can be created again, empty, when the call has returned.
	// If the call fails halfway, the next deletion or creation of an entity of that name completes it.
	// ENTITY_NOT_FOUND.
	DeleteEntity(ctx context.Context, kind Kind, path string) error

	// ListEntities gives up to limit entities of a kind in order of their folded names, beginning after the given
	// folded name ("" = from the start). topic is the path of the topic whose subscriptions are listed, else "". more
	// reports whether others follow. ENTITY_NOT_FOUND for the topic.
	ListEntities(
		ctx context.Context, kind Kind, topic, after string, limit int,
	) (entities []Entity, more bool, err error)

	// Runtime counts an entity: a queue or subscription in O(log n) (CNT-4), a topic in O(subscriptions).
	// ENTITY_NOT_FOUND.
	Runtime(ctx context.Context, kind Kind, path string) (Runtime, error)
}

// Stored is what a store says of one message that it was sent.
type Stored struct {
	SequenceNumber int64
	// Deduplicated: the queue remembers the message's id, so nothing was stored and the number is the original's
	// (DUP-7).
	Deduplicated bool
}

// SendResult is what a sender learns about one stored message.
type SendResult struct {
	Stored
	MessageID string // as given, else the one Sidebus made (MSG-1)
}

// SendOutcome is what became of one call of a SendEach.
type SendOutcome struct {
	Stored  []Stored
	Err     error       // as Send gives it
	Repeats *Repetition // of a SendOnce that took effect before; nil: it did not
}

// Sender puts messages into entities.
type Sender interface {
	// Send stores all messages except duplicates, with consecutive sequence numbers, or none (BATCH-1, BATCH-3, DUP-8,
	// SEND-1), and returns the outcome of each in the order given. A message whose ScheduledAt is in the future is
	// stored as scheduled (SCHED-2). ENTITY_NOT_FOUND, ENTITY_DISABLED, MESSAGE_SIZE_EXCEEDED, ENTITY_FULL,
	// QUOTA_EXCEEDED (DUP-11), PARTITION_KEY_MISMATCH (BATCH-4), SESSION_ID_MISSING (SESS-6). Calls one goroutine makes
	// one after the other are numbered in that order (SEND-3).
	Send(ctx context.Context, path string, messages []*Message) ([]Stored, error)

	// SendEach runs several Sends on one entity, each whole or not at all, and returns the outcome of each. They are
	// numbered in the order given, however many share one step (SEND-3).
	SendEach(ctx context.Context, path string, calls [][]*Message) []SendOutcome

	// SendOnce is Send, unless the entity took the request id within RequestsKeptFor: then it gives the outcome of that
	// send, which Repeats, and changes nothing, or INVALID_ARGUMENT when the digest differs (OtherMessages). A send
	// that is refused leaves no trace of its id. At most MaxRequestsKept ids are kept, the oldest go first (IDEM-1); a
	// store may keep fewer when their answers are large.
	SendOnce(ctx context.Context, path string, once Once, messages []*Message) SendOutcome

	// CancelScheduled removes the scheduled messages with the given numbers, all or none (SCHED-5). A number given
	// twice counts once. ENTITY_NOT_FOUND, ENTITY_DISABLED, and MESSAGE_NOT_FOUND with the missing numbers
	// (NumbersNotFound).
	CancelScheduled(ctx context.Context, path string, numbers []int64) error

	// CancelScheduledByID removes every scheduled message with one of the message ids and returns how many (SCHED-8).
	// When there are more than one step may remove, it takes several steps, each atomic. ENTITY_NOT_FOUND,
	// ENTITY_DISABLED.
	CancelScheduledByID(ctx context.Context, path string, ids []string) (int, error)
}

// Register is whether a receive leaves the caller's sidecar on the list of those to wake when something arrives.
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

	// RecheckAfter is how long a caller that got nothing may wait before it must try again without a wake-up: until the
	// next lock ends, and never longer than a bound, in case a wake-up is lost. Zero means try again at once: more was
	// due than one call may process.
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
	// Store. From a held session it gives no more than SessionInFlight permits together with those not settled yet,
	// nothing behind a message that is delayed, and locks that end with the session's (SESS-25 to SESS-28, SETTLE-11).
	// ENTITY_NOT_FOUND, ENTITY_DISABLED, SESSION_REQUIRED for a queue with sessions without one (RECV-11),
	// SESSION_NOT_SUPPORTED for a session of another queue, SESSION_LOCK_LOST, and INVALID_OPERATION for a main queue
	// that forwards what it gets (FWD-2): see ForwardsAll.
	Receive(ctx context.Context, source Source, limit int, register Register) (Batch, error)

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

	// Peek gives up to limit messages with sequence numbers of at least from, in ascending order, that are in one of
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

// Settler ends or extends locks. Every method works token by token, each atomic on its own, and returns one outcome per
// token in the order given: the empty Code, or MESSAGE_LOCK_LOST for a token that does not hold, for whatever cause
// (LOCK-7, SETTLE-2, SETTLE-14). Under a session it is SESSION_LOCK_LOST for every token when the session's lock does
// not hold. The call as a whole fails with ENTITY_NOT_FOUND, with SESSION_REQUIRED for a queue with sessions without
// one, and with SESSION_NOT_SUPPORTED for a session of another queue.
type Settler interface {
	// Complete removes the messages (SETTLE-3).
	Complete(ctx context.Context, source Source, tokens []LockToken) ([]Code, error)

	// Abandon makes the messages available again with one delivery more, or dead-letters them when that was the last
	// permitted one, or expires them (SETTLE-4, SETTLE-12, TTL-9). In a dead-letter queue the count stays (DC-7). A
	// deferred message is deferred again (DEFER-5). A delay keeps them invisible that long (SETTLE-11); nil means the
	// queue's RedeliveryDelay, which a dead-letter queue and a deferred message do not have. properties are merged into
	// those of each message (SETTLE-5): see MergeProperties for the codes, with which the lock stays. While a message
	// of a session is delayed, those behind it wait, unless it skips its order (SETTLE-11).
	Abandon(ctx context.Context, source Source, tokens []LockToken, options AbandonOptions) ([]Code, error)

	// Defer sets the messages aside until they are asked for by number (SETTLE-9, DEFER-1). properties as in Abandon.
	Defer(ctx context.Context, source Source, tokens []LockToken, properties map[string]Value) ([]Code, error)

	// Release makes the messages available again, or deferred again, and counts nothing (SETTLE-10).
	Release(ctx context.Context, source Source, tokens []LockToken) ([]Code, error)

	// DeadLetter moves the messages to the dead-letter queue of source, which must be a main queue (SETTLE-6).
	// properties as in Abandon.
	DeadLetter(
		ctx context.Context, source Source, tokens []LockToken, texts DeadLetterTexts, properties map[string]Value,
	) ([]Code, error)

	// RenewLocks sets the end of the locks to now + LockDuration (LOCK-3, LOCK-5). On a queue with sessions the call is
	// INVALID_OPERATION: there a message is locked as long as its session (LOCK-4).
	RenewLocks(ctx context.Context, source Source, tokens []LockToken) ([]Renewal, error)
}

// Purge is one bounded step of a purge.
type Purge struct {
	Show   Show      // exactly one group, not ShowLocked
	Before time.Time // only messages enqueued before this instant; zero: now
	After  int64     // only sequence numbers above this; for a dead-letter queue see Purged.Last
	Limit  int       // most messages to remove
}

// Purged is what a step of a purge did.
type Purged struct {
	Deleted int
	Before  time.Time // the instant that was used
	Last    int64     // After of the next step
	More    bool      // there may be more behind Last
}

// Resubmission is one dead letter to be sent again.
type Resubmission struct {
	SequenceNumber int64
	MessageID      string         // the one it has, or a new one
	PartitionKey   string         // the one it has
	SessionID      string         // the one it has
	TimeToLive     *time.Duration // of its new life; nil: the target's default
	ExpiresAt      time.Time      // instead of a new life: the end of the old one stays (TTL-25); zero: a new life
	NewID          bool           // MessageID is new
	WasForwarded   bool           // what is known of that is forgotten: see Message.ForgetForwarding
	MoreBytes      int64          // by which the message is larger then, less than 0 when it is smaller
}

// Resubmitted is what became of one dead letter.
type Resubmitted struct {
	Stored
	// Code is empty when the message has moved; MESSAGE_NOT_FOUND when the number is unknown or locked; ENTITY_FULL,
	// MESSAGE_SIZE_EXCEEDED, QUOTA_EXCEEDED or SESSION_ID_MISSING when the target does not take it: then it stays where
	// it is.
	Code Code
}

// Remover takes messages out of a source without receiving them.
type Remover interface {
	// Purge removes messages, lowest number first, without a trace (PURGE-1, PURGE-2, PURGE-8), all or those of the
	// session that source names or holds (PURGE-7). ENTITY_NOT_FOUND, ENTITY_DISABLED, SESSION_NOT_SUPPORTED,
	// SESSION_LOCK_LOST.
	Purge(ctx context.Context, source Source, purge Purge) (Purged, error)

	// DeleteByNumber removes the messages with the given numbers that are neither locked nor scheduled (PURGE-9). It
	// gives one Code per number: empty, or MESSAGE_NOT_FOUND. ENTITY_NOT_FOUND, ENTITY_DISABLED.
	DeleteByNumber(ctx context.Context, source Source, numbers []int64) ([]Code, error)

	// Resubmit moves dead letters of source, which must be a dead-letter queue, to the queue target as new messages
	// that were never forwarded, each moved or not as a whole in one step (DLQ-22, FWD-5). bypassDuplicates switches
	// the target's duplicate detection off. ENTITY_NOT_FOUND for source or target, ENTITY_DISABLED when source cannot
	// be received from or target not sent to.
	Resubmit(
		ctx context.Context, source Source, target string, letters []Resubmission, bypassDuplicates bool,
	) ([]Resubmitted, error)
}

// Sessions keeps the sessions of queues with RequiresSession: who holds one, and the note that is kept with it. Every
// method fails with ENTITY_NOT_FOUND, and with SESSION_NOT_SUPPORTED on a queue without sessions (SESS-5). Those that
// take a source with a SessionLock fail with SESSION_LOCK_LOST when that lock does not hold, for whatever cause
// (SESS-19, SESS-22), and change nothing then.
type Sessions interface {
	// AcceptSession takes the lock of a session, which may have no message (SESS-11). It does not wait.
	// SESSION_CANNOT_BE_LOCKED when another client holds it or it is blocked (SESS-29), ENTITY_DISABLED.
	AcceptSession(ctx context.Context, path, id string) (*Session, error)

	// AcceptNextSession takes the lock of the session that has been ready longest: not held, not blocked, and with a
	// message that a receive would give (SESS-12, SESS-13). It does not wait: a nil Session says that none is ready,
	// and the duration is as Batch.RecheckAfter. When it finds none and register asks for it, a session that becomes
	// ready wakes a Watch of the queue. INVALID_OPERATION when AcceptNext forbids it (RR-5), ENTITY_DISABLED.
	AcceptNextSession(ctx context.Context, path string, register Register) (*Session, time.Duration, error)

	// RenewSessionLock sets the end of the lock, and with it that of all message locks under it, to now + LockDuration
	// (SESS-18).
	RenewSessionLock(ctx context.Context, source Source) (time.Time, error)

	// CloseSession ends the lock. Messages that were not settled are available again at once, uncounted and in their
	// order (SESS-21).
	CloseSession(ctx context.Context, source Source) error

	// SessionState reads the state (SESS-33). ENTITY_DISABLED.
	SessionState(ctx context.Context, source Source) (SessionState, error)

	// SetSessionState replaces the state, nil clears it, and gives its new version (SESS-33). expected is the version
	// it must have, nil any. PRECONDITION_FAILED (SESS-33a), SESSION_STATE_TOO_LARGE (SESS-32), ENTITY_FULL and
	// QUOTA_EXCEEDED (SESS-33c), ENTITY_DISABLED.
	SetSessionState(ctx context.Context, source Source, state []byte, expected *int64) (int64, error)

	// ListSessions gives up to limit sessions that have messages or state, in order of their ids, beginning after the
	// given id (SESS-36 to SESS-38). It may give fewer although there are more: then next is the id to go on after,
	// else "".
	ListSessions(
		ctx context.Context, path, after string, limit int, filter SessionFilter,
	) (rows []SessionRow, next string, err error)

	// UnblockSession lets a session go on that was blocked when one of its messages became a dead letter (SESS-29). One
	// that is not blocked stays as it is.
	UnblockSession(ctx context.Context, path, id string) error

	// DeadLetterRest makes all messages of a session dead letters that are neither locked nor scheduled, with
	// ReasonSession, and unblocks it (SESS-29). It may take several steps, in the first of which none of them can be
	// received any more; when it fails after that, the others follow all the same.
	DeadLetterRest(ctx context.Context, path, id string) error
}

// Sweeper is a Store that does in the background what time makes due: activations, expiry, the end of locks and delays
// (TTL-20, SCHED-6). Only promptness depends on it, except that scheduled messages of a topic and messages to be
// forwarded wait for upkeep, which is the Broker. Any number of sidecars may sweep at once. Sweep blocks until ctx
// ends; call it once.
type Sweeper interface {
	Sweep(ctx context.Context, upkeep Upkeep)
}

// Upkeep is what a Sweeper has done by others, because it takes rules, or more than one entity. Both methods block
// until they have done a bounded share of the work, are safe for concurrent use, and are called again for the rest.
type Upkeep interface {
	// ActivateDue enqueues the scheduled messages of a topic whose time has come (SCHED-7).
	ActivateDue(ctx context.Context, topic string) error
	// Forward carries on what a source has to forward (FWD-1). An error says that it is to be tried again later.
	Forward(ctx context.Context, source Source) error
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
