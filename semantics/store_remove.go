package semantics

import (
	"context"
	"time"
)

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
	// returns one Code per number: empty, or MESSAGE_NOT_FOUND. ENTITY_NOT_FOUND, ENTITY_DISABLED.
	DeleteByNumber(ctx context.Context, source Source, numbers []int64) ([]Code, error)

	// Resubmit moves dead letters of source, which must be a dead-letter queue, to the queue target as new messages
	// that were never forwarded, each moved or not as a whole in one step (DLQ-22, FWD-5). bypassDuplicates switches
	// the target's duplicate detection off. ENTITY_NOT_FOUND for source or target, ENTITY_DISABLED when source cannot
	// be received from or target not sent to. ErrApart when source and target cannot be changed in one step; then a
	// transfer moves the letters (Transfers.BeginResubmission).
	Resubmit(
		ctx context.Context, source Source, target string, letters []Resubmission, bypassDuplicates bool,
	) ([]Resubmitted, error)
}
