package semantics

import (
	"context"
	"errors"
	"time"
)

// MaxForwardHops is how often a message is forwarded at most (FWD-5).
const MaxForwardHops = 4

// Reasons of dead letters that were to be forwarded. The first is in the dead-letter queue of the source, the others in
// its transfer dead-letter queue (DLQ-10, DLQ-13).
const (
	ReasonTooManyHops         = "MaxTransferHopCountExceeded"
	ReasonDestinationNotFound = "TransferDestinationNotFound"
	ReasonDestinationDisabled = "TransferDestinationDisabled"
	ReasonDestinationFull     = "TransferDestinationQuotaExceeded"
)

// Transfers carry messages on from one entity to another (FWD-1). Source and destination need not be in the same place,
// so a transfer takes three steps, each atomic: messages are set aside at the source, stored at the destination,
// removed at the source. Every step may be repeated, by any sidecar, at any time, and takes effect once. So a sidecar
// that finds a transfer under way continues it, and no message is lost or duplicated.
type Transfers interface {
	// Destination finds the queue or topic of a path. If none exists its Incarnation is 0, and there is no error.
	Destination(ctx context.Context, path string) (Destination, error)

	// BeginTransfer returns the transfer of a source that is under way, whatever its destination; else it begins one,
	// with up to limit of the messages that are available, in order of sequence number (FWD-6). No receiver gets them
	// from then on, and they do not expire. The status of the source does not matter, and its activity is not stamped.
	// Without any Messages there is nothing to do. ENTITY_NOT_FOUND, and ErrForwardingChanged when none is under way
	// and the source does not forward to that path; an empty path is one it never forwards to.
	BeginTransfer(ctx context.Context, source Source, to Destination, limit int) (Transfer, error)

	// BeginResubmission returns the transfer of a dead-letter queue that is under way, whatever it is for; else it
	// begins one that resubmits dead letters, those with the given numbers that are not locked, as BeginTransfer sets
	// messages aside. It is activity of the source. ENTITY_NOT_FOUND, ENTITY_DISABLED.
	BeginResubmission(
		ctx context.Context, source Source, to Destination, numbers []int64, how Resubmitting,
	) (BegunResubmission, error)

	// Arrive stores what a transfer carries at its destination, all in one step, and returns the outcome of each
	// message, in the order given. Later calls return the first call's outcomes and ignore their arguments; once a
	// later transfer of the source has arrived, they return ErrOvertaken. version is that of the routes by which the
	// copies of a topic were decided, else 0. A message is stored as new, as if it was sent alone, but never scheduled;
	// a duplicate counts as stored (DUP-9). A message that the destination does not accept is refused alone. Unless
	// isLast, one such message is enough for Arrive to store nothing and return ErrNotYet. A queue with sessions makes
	// a forwarded message without one a dead letter of its own (FWD-3, DLQ-9). If the destination was deleted or
	// recreated, every message is refused; one of AnyIncarnation that does not exist is ENTITY_NOT_FOUND, and nothing
	// was done. If the store has lost only the record of one with several partitions, the answer is ErrNotYet, also
	// when isLast. It is activity of the destination only when it resubmits (FWD-10, CNT-5). ErrRoutesChanged.
	Arrive(
		ctx context.Context, transfer Transfer, version int64, arrivals []Publication, isLast bool,
	) ([]Arrival, error)

	// EndTransfer removes the messages of a transfer from its source, all in one step, as fates says in the order of
	// the messages. It does nothing when the transfer has ended. ENTITY_FULL when the transfer dead-letter queue of the
	// source is full: it may hold as many bytes as the source itself.
	EndTransfer(ctx context.Context, transfer Transfer, fates []Fate) error

	// Unbroken lets do make calls with the context it is given, one after the other. If the store comes back older than
	// it was between two of them, the later ones fail. Without it a message could be removed at its source because of
	// an arrival that is forgotten.
	Unbroken(ctx context.Context, do func(context.Context) error) error
}

var (
	// ErrForwardingChanged says that a source does not forward to where it did. Read it again.
	ErrForwardingChanged = errors.New("the source does not forward there")
	// ErrApart says that two entities are in different places, so that only a transfer carries messages between them.
	ErrApart = errors.New("the entities are in different places")
	// ErrOvertaken says that nothing was done because a later transfer of the source has arrived: this one is over, and
	// what became of it is not known any more; or the store came back older than it was, and the next BeginTransfer
	// returns a transfer that can arrive.
	ErrOvertaken = errors.New("a later transfer has arrived")
	// ErrNotYet says that a destination did not take all of a transfer. Try again later.
	ErrNotYet = errors.New("the destination does not take it")
)

// Destination is where messages are forwarded to.
type Destination struct {
	Path string
	Kind Kind // QueueKind or TopicKind
	// Incarnation distinguishes an entity from an earlier one of the same name. It is never 0, which stands for none.
	Incarnation int64
	// Definition is the path of what has the subscriptions of a topic with several partitions; else it is empty. Only
	// what begins a transfer needs it.
	Definition string
}

// AnyIncarnation is that of a destination whose path never comes back after it: a partition of an entity (PART-1).
const AnyIncarnation = -1

// Transfer is a batch of messages on its way from a source to a destination.
type Transfer struct {
	Source   Source // the main queue or the dead-letter queue of an entity
	ID       string // distinguishes it from every other transfer there ever was; only the Store interprets it
	Seed     string // as ID, but never another one for the same transfer: what is chosen for it is chosen from this
	To       Destination
	Age      time.Duration // since it was begun
	Messages []*Received
	// Carried are the places, among Messages, of those that go on, in order; nil: all do. What becomes of a message at
	// its destination is remembered by its place, because a sidecar that continues the transfer may be able to read
	// fewer or more of them than the one that began (CRYPT-4).
	Carried []int

	Resubmits *Resubmitting // how dead letters are sent again; nil: the messages are forwarded
}

// Place returns the place, among Messages, of the message that goes on as number i.
func (t *Transfer) Place(i int) int {
	if t.Carried == nil {
		return i
	}
	return t.Carried[i]
}

// Resubmitting says how dead letters are sent again (DLQ-22).
type Resubmitting struct {
	NewMessageIDs    bool // each gets a new message id
	KeepExpiry       bool // ExpiresAt stays instead of a new life beginning (TTL-25)
	BypassDuplicates bool // duplicate detection does not apply
}

// BegunResubmission is what a BeginResubmission returns.
type BegunResubmission struct {
	Transfer
	IsNew bool // else another one was under way
	// of how many of the numbers it has, or there is no letter that could be had; the others are for another transfer
	Looked int
}

// Arrival is what became of a message at its destination.
type Arrival struct {
	// Stored is what a queue has of a resubmitted dead letter; zero when the arrival is not known to be the first call.
	Stored
	// Refused is empty when it was stored; else ENTITY_NOT_FOUND, ENTITY_DISABLED, ENTITY_FULL, QUOTA_EXCEEDED,
	// MESSAGE_SIZE_EXCEEDED, NO_MATCHING_SUBSCRIPTION or, of a resubmitted dead letter, SESSION_ID_MISSING. INTERNAL if
	// the others arrived before, carried by a sidecar that could not read this one.
	Refused Code
}

// Fate is what becomes of a message at its source when its transfer ends.
type Fate struct {
	// DeadLetter is why it was not forwarded; nil: it was, and is removed.
	DeadLetter *DeadLetterTexts
	// KeepsQueue puts it into the dead-letter queue of the source instead of the transfer dead-letter queue.
	KeepsQueue bool
	// Stays: it is returned to where it was, unchanged.
	Stays bool
}

// Forwarded is how a message came to the entity that it is in, from others before (FWD-4, FWD-5, FWD-9).
type Forwarded struct {
	Hops                   int // at least 1
	EnqueuedSequenceNumber int64

	DeadLetterSource string // path of the queue or subscription whose dead letter it was, "" if it was none
	DeadLetterTexts         // why it was one; they are among the application properties too (DLQ-15)
}
