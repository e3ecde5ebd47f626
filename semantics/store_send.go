package semantics

import "context"

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
	Err     error       // as Send returns it
	Repeats *Repetition // of a SendOnce that took effect before; nil: it did not
}

// Sender puts messages into entities. The texts of a message can refer to the whole request that it came with, so a
// store copies what it keeps of them in memory.
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

	// SendOnce is Send, unless the entity took the request id within RequestsKeptFor: then it returns the outcome of
	// that send, which Repeats, and changes nothing, or INVALID_ARGUMENT when the digest differs (OtherMessages). A
	// send that is refused leaves no trace of its id. At most MaxRequestsKept ids are kept, the oldest go first
	// (IDEM-1); a store may keep fewer when their answers are large.
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
