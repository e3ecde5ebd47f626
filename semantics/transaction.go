package semantics

import (
	"context"
	"strconv"
	"time"
)

// Bounds of a transaction (TX-3, QUOTA-11). A store carries it out in one step, during which it does nothing else.
const (
	MaxOperations         = 100
	MaxTransactionItems   = 500     // messages sent, tokens settled and numbers cancelled, together
	MaxTransactionBytes   = 4 << 20 // of messages sent, states, and what settlements add to each message
	MaxTransactionSums    = 10_000  // topics, and their subscriptions, whose bytes are added up as they may be full
	MaxDeadLetterTokens   = 250     // messages that are abandoned or dead-lettered, which may be copied
	TransactionLifetime   = 2 * time.Minute
	MaxDeadLetterMoveSize = 4 << 20 // bytes of those that may be copied, or one message
)

// OperationVerb is what an operation of a transaction does.
type OperationVerb uint8

// The verbs. A receive and a peek are none (TX-2).
const (
	OperationSend OperationVerb = iota // also schedules
	OperationCancel
	OperationComplete
	OperationAbandon
	OperationDeadLetter
	OperationDefer
	OperationSetState
)

// Operation is one member of a transaction: a call of a verb, with the arguments that it has alone.
type Operation struct {
	Verb    OperationVerb
	Source  Source // what it is about; of a send and a cancel its target
	IsTopic bool   // of a send

	Messages   []*Message       // of a send
	Numbers    []int64          // of a cancel, each once
	Tokens     []LockToken      // of a settlement
	Abandon    AbandonOptions   // without properties
	Texts      DeadLetterTexts  // of a dead-lettering
	Properties map[string]Value // merged into those of each message that is abandoned, deferred or dead-lettered
	State      []byte           // of a session; nil clears it
	Version    *int64           // that the state must have, nil any
}

// Settles reports whether the verb ends locks.
func (v OperationVerb) Settles() bool {
	return v == OperationComplete || v == OperationAbandon || v == OperationDeadLetter || v == OperationDefer
}

// MayDeadLetter reports whether the verb may make messages dead letters, which copies them.
func (v OperationVerb) MayDeadLetter() bool { return v == OperationAbandon || v == OperationDeadLetter }

// Unfit returns why a message cannot take the properties of the operation, the empty Code if it can (SETTLE-5).
func (o *Operation) Unfit(m *Message) Code {
	if len(o.Properties) == 0 {
		return ""
	}
	_, code := m.MergeProperties(o.Properties)
	return code
}

// OperationResult is what became of one operation of a transaction that took effect.
type OperationResult struct {
	Stored  []Stored // of a send
	Version int64    // of the new state of a session
}

// TransactionOutcome is what became of a transaction.
type TransactionOutcome struct {
	Results []OperationResult
	Repeats *Repetition // of a transaction with this request id that took effect before; nil: it did not
	Err     error
}

// Transactor runs transactions.
type Transactor interface {
	// Transact runs all operations in one atomic step, or none (TX-11). Everything is checked, in the order of
	// the operations and as it was before the first, then all is done in that order: what an operation frees is not
	// there for another one. A lock, a scheduled message and a message id count once in all of them. It returns one
	// result per operation, or the refusal of the first that cannot be run, with DetailOperation: those of the
	// verbs, MESSAGE_LOCK_LOST and MESSAGE_SIZE_EXCEEDED or INVALID_ARGUMENT of a settlement with the DetailIndex of
	// its token. A topic takes a message as if it was scheduled for this instant: Upkeep makes its copies (TX-13). What
	// is due on the entities is not done before. once may be nil; else the entity of the first operation remembers the
	// request id as in SendOnce (TX-12). INVALID_OPERATION if the entities do not share the atomicity of the store
	// (TX-7), TRANSACTION_TOO_LARGE if what it may copy is over MaxDeadLetterMoveSize.
	Transact(ctx context.Context, once *Once, operations []Operation) TransactionOutcome
}

// EntitiesApart is INVALID_OPERATION for a transaction on entities that the store cannot change together (TX-7).
func EntitiesApart(first, other string) *Error {
	return Errorf(
		InvalidOperation, "entities %q and %q are in different slots of the Redis Cluster, so no transaction changes both; "+
			"name one queue, or one topic with its subscriptions", first, other,
	).With(DetailEntity, other)
}

// RefusedOperation adds to the refusal of an operation its place in the transaction.
func RefusedOperation(err error, place int) error {
	return AsError(err).With(DetailOperation, strconv.Itoa(place))
}

// LockLost is MESSAGE_LOCK_LOST for a token of a transaction, whatever the cause (SETTLE-2).
func LockLost(path string, index int) *Error {
	return Errorf(
		MessageLockLost, "entity %q: the lock of token %d has ended, or the message was settled; receive it again",
		path, index,
	).With(DetailEntity, path).With(DetailIndex, strconv.Itoa(index))
}

// UnfitChanges is the refusal of properties that the message of a token cannot take (SETTLE-5).
func UnfitChanges(code Code, path string, index int) *Error {
	return Errorf(
		code, "entity %q: the message of token %d cannot take these properties; set fewer or smaller ones", path, index,
	).With(DetailEntity, path).With(DetailIndex, strconv.Itoa(index))
}

// TransactionLarge is TRANSACTION_TOO_LARGE for a transaction with too much of something (TX-3).
func TransactionLarge(what string, actual, limit int64) *Error {
	return Errorf(
		TransactionTooLarge, "the transaction has %d %s, at most %d are allowed; use several transactions", actual, what,
		limit,
	).
		With(DetailField, what).
		With(DetailActual, strconv.FormatInt(actual, 10)).
		With(DetailLimit, strconv.FormatInt(limit, 10))
}

// CheckMoves refuses a transaction that abandons or dead-letters messages of too many bytes together; one alone may be
// of any size.
func CheckMoves(messages int, bytes int64) error {
	if messages > 1 && bytes > MaxDeadLetterMoveSize {
		return TransactionLarge("bytes of messages that are abandoned or dead-lettered", bytes, MaxDeadLetterMoveSize)
	}
	return nil
}

// Numbers returns the result as a store remembers it: the numbers of the messages, or the version.
func (r OperationResult) Numbers() []Stored {
	if r.Version != 0 {
		return []Stored{{SequenceNumber: r.Version}}
	}
	return r.Stored
}

// CountNumbers returns how many numbers the results of operations have.
func CountNumbers(operations []Operation) int {
	n := 0
	for _, o := range operations {
		n += o.numbers()
	}
	return n
}

func (o *Operation) numbers() int {
	if o.Verb == OperationSetState && o.State != nil {
		return 1
	}
	return len(o.Messages)
}

// ResultsOf is the opposite of Numbers, for all operations.
func ResultsOf(operations []Operation, numbers []Stored) []OperationResult {
	results := make([]OperationResult, len(operations))
	for i, o := range operations {
		n := o.numbers()
		switch {
		case o.Verb == OperationSetState && n > 0:
			results[i].Version = numbers[0].SequenceNumber
		case n > 0:
			results[i].Stored = numbers[:n:n]
		}
		numbers = numbers[n:]
	}
	return results
}
