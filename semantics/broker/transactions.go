package broker

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of the transactions that one sidecar keeps (TX-9): of those that are open, and of those that have ended. Of
// what is open, each client has a share: see clientShare.
const (
	MaxTransactions  = 10_000
	MaxBufferedBytes = 256 << 20 // of operations
	MaxEndedBytes    = 64 << 20  // of answers that a repeated commit gets
)

// transactions are those that were begun. What has ended stays for RequestsKeptFor, so that a repeated commit gets the
// first answer, except that the oldest are forgotten when there are too many.
type transactions struct {
	mu      sync.Mutex
	byID    map[string]*transaction
	ended   []*transaction          // the first to end is the first
	bytes   int64                   // of operations, in all
	answers int64                   // bytes of answers, in all
	clients map[string]*clientShare // of those that have open ones
}

// transaction is one of them. Its running guards what is below it: see lock.
type transaction struct {
	id     string
	client string // that began it
	begun  time.Time
	timer  *time.Timer // ends it when it is over, and forgets it later

	running    chan struct{}         // full during a commit: a second one waits for the answer of the first
	operations []semantics.Operation // of an ended one, without what they carry
	bytes      int64                 // counted for operations; of an ended one, for its answer
	unsure     time.Time             // of the first commit that took effect or may have, zero if there was none
	stored     error                 // DURABILITY_NOT_MET of a commit, until it is confirmed
	hasEnded   bool
	ended      time.Time
	result     *TransactionResult // of the commit, as a repeat returns it
	failure    error              // why nothing more can be done, if there is no result
}

// over returns when the transaction ends if nothing is done: with the store's memory of a commit whose outcome is
// unknown, after which a repeat could run it twice. One that has ended is forgotten then.
func (t *transaction) over() time.Time {
	switch {
	case t.hasEnded:
		return t.ended.Add(semantics.RequestsKeptFor)
	case !t.unsure.IsZero():
		return t.unsure.Add(semantics.RequestsKeptFor)
	default:
		return t.begun.Add(semantics.TransactionLifetime)
	}
}

// lock waits until no other call uses the transaction. CANCELLED when ctx ends first.
func (t *transaction) lock(ctx context.Context) error {
	select {
	case t.running <- struct{}{}:
		return nil
	case <-ctx.Done():
		return semantics.CancelledBy(ctx)
	}
}

func (t *transaction) unlock() { <-t.running }

// Begin starts a transaction of a client and returns its id (TX-1). It is kept in memory, for at most
// TransactionLifetime: other sidecars do not know it. THROTTLED if the client has its share of MaxTransactions (TX-9).
func (b *Broker) Begin(client string) (id string, err error) {
	if err := b.admit(callCost); err != nil {
		return "", err
	}
	s := &b.transactions
	s.mu.Lock()
	defer s.mu.Unlock()
	t := &transaction{
		id: semantics.NewRandomUUID().String(), client: client, begun: time.Now(), running: make(chan struct{}, 1),
	}
	if err := s.openLocked(t); err != nil {
		return "", err
	}
	t.timer = time.AfterFunc(semantics.TransactionLifetime, func() { s.lapse(t) })
	return t.id, nil
}

// Add adds operations to a transaction and runs none of them (TX-4, TX-5). It returns how many it has. What is
// refused is not added, and the transaction goes on. It waits while a commit is under way. TRANSACTION_NOT_FOUND,
// TRANSACTION_TIMED_OUT, THROTTLED if the client that began it has its share of MaxBufferedBytes, an unknown outcome
// after a commit with one, CANCELLED, and the failures of Transact that concern arguments.
func (b *Broker) Add(ctx context.Context, id string, operations []semantics.Operation) (int, error) {
	t, err := b.transactions.take(ctx, id)
	if err != nil {
		return 0, err
	}
	defer t.unlock()
	if err := t.refuseChange(); err != nil {
		return 0, err
	}
	all := append(slices.Clip(t.operations), operations...)
	if err := b.checkOperations(all); err != nil {
		return 0, err
	}
	if err := b.transactions.buffer(t, sizeOf(operations)); err != nil {
		return 0, err
	}
	t.operations = all
	return len(all), nil
}

// Commit runs the operations of a transaction as Transact does, under its id (TX-12), if permit permits them to the
// caller, of whom it knows verb, source and kind. What may still succeed can be repeated: a commit that was not
// permitted, or failed with STORE_UNAVAILABLE, THROTTLED or CANCELLED, and with DURABILITY_NOT_MET, to confirm what
// took effect. Any other outcome ends the transaction, and a repeat returns it again. A commit whose outcome is unknown
// can be repeated as long as the store knows what became of it. After that it stays unknown, and also when a repeat is
// refused: the cause may be that the first one took effect, and the store forgot its id. TRANSACTION_NOT_FOUND,
// TRANSACTION_TIMED_OUT, and the failures of Transact.
func (b *Broker) Commit(
	ctx context.Context, id string, permit func([]semantics.Operation) error,
) (*TransactionResult, error) {
	t, err := b.transactions.take(ctx, id)
	if err != nil {
		return nil, err
	}
	defer t.unlock()
	if err := permit(t.operations); err != nil {
		return nil, err
	}
	if t.hasEnded {
		return t.result, t.failure
	}
	began, result := time.Now(), &TransactionResult{}
	if !t.unsure.IsZero() { // run later, it would be run again
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, t.over())
		defer stop()
	}
	if len(t.operations) > 0 {
		result, err = b.Transact(ctx, &id, t.operations)
	}
	if err == nil {
		b.transactions.end(t, &TransactionResult{Results: result.Results, Repeated: true}, nil)
		return result, nil
	}
	return nil, b.failed(t, err, began)
}

// failed notes the failure of a commit, and returns what its caller hears.
func (b *Broker) failed(t *transaction, err error, began time.Time) error {
	code, hasRun := semantics.CodeOf(err), mayHaveRun(err)
	if hasRun && t.unsure.IsZero() {
		t.unsure = began
	}
	switch {
	case code == semantics.DurabilityNotMet:
		t.stored = err
	case t.stored != nil:
		return t.stored
	case semantics.IsOutcomeUnknown(err): // says so itself
	case !t.unsure.IsZero():
		return t.unknownOutcome(repeatCommit)
	case code != semantics.StoreUnavailable && code != semantics.Throttled && code != semantics.Cancelled:
		b.transactions.end(t, nil, err)
	}
	return err
}

// mayHaveRun reports whether a transaction that failed may have taken effect: also one with an internal failure that no
// operation was refused with.
func mayHaveRun(err error) bool {
	e := semantics.AsError(err)
	return semantics.IsOutcomeUnknown(err) || e.Code == semantics.DurabilityNotMet ||
		e.Code == semantics.Internal && e.Details[semantics.DetailOperation] == ""
}

// Rollback ends a transaction and does nothing else (TX-6). TRANSACTION_NOT_FOUND, also after a commit,
// TRANSACTION_TIMED_OUT, CANCELLED, and an unknown outcome after a commit with one. It waits while a commit is under
// way.
func (b *Broker) Rollback(ctx context.Context, id string) error {
	t, err := b.transactions.take(ctx, id)
	if err != nil {
		return err
	}
	defer t.unlock()
	if err := t.refuseChange(); err != nil {
		return err
	}
	b.transactions.end(t, nil, transactionNotFound(id))
	return nil
}

// refuseChange refuses to change or roll back what has ended or may have taken effect.
func (t *transaction) refuseChange() error {
	switch {
	case t.stored != nil:
		return transactionNotFound(t.id)
	case !t.hasEnded && !t.unsure.IsZero():
		return t.unknownOutcome(repeatCommit)
	case !t.hasEnded:
		return nil
	case semantics.CodeOf(t.failure) == semantics.TransactionTimedOut || semantics.IsOutcomeUnknown(t.failure):
		return t.failure
	default:
		return transactionNotFound(t.id)
	}
}

const repeatCommit = "repeat the commit to learn what became of it"

func (t *transaction) unknownOutcome(next string) error {
	return semantics.Errorf(
		semantics.StoreUnavailable, "transaction %q may have taken effect: nothing confirms the outcome of its commit; %s", t.id, next,
	).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
}

func transactionNotFound(id string) error {
	return semantics.Errorf(
		semantics.TransactionNotFound, "this sidecar has no open transaction %q; it ended, or another sidecar began it",
		semantics.Shorten(id),
	)
}
