package semantics

import "context"

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
