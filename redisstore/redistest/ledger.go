package redistest

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Ledger notes which messages stores have handed out under lock and who has settled them, by their answers alone. With
// it an audit.Auditor finds what is locked and was not handed out, and what was handed out and is not locked. Make one
// with NewLedger and give to the tests what Keep returns. It is safe for concurrent use. A call with an unknown outcome
// leaves it wrong.
type Ledger struct {
	now func() time.Time

	mu     sync.Mutex
	held   map[semantics.LockToken]heldOut
	closed map[semantics.LockToken]bool // sessions, from which an answer may still be on its way
}

// heldOut is one message that was handed out.
type heldOut struct {
	side    side
	number  int64
	failed  int // deliveries that failed before this one
	until   time.Time
	session semantics.LockToken // zero: of no session
}

// side is a folded path and, of the sides that it has, the prefix of the keys of one.
type side struct{ path, prefix string }

// NewLedger makes an empty Ledger with the stores' clock.
func NewLedger(now func() time.Time) *Ledger {
	return &Ledger{now: now, held: map[semantics.LockToken]heldOut{}, closed: map[semantics.LockToken]bool{}}
}

func sideOf(source semantics.Source) side {
	switch source.SubQueue {
	case semantics.DeadLetterQueue:
		return side{semantics.Fold(source.Path), "dead_"}
	case semantics.TransferDeadLetterQueue:
		return side{semantics.Fold(source.Path + audit.TransfersSuffix), "dead_"}
	default:
		return side{semantics.Fold(source.Path), ""}
	}
}

// Keep returns the store with everything noted that it hands out. Several stores over the same data may share a Ledger.
func (l *Ledger) Keep(store partitioned.Below) Kept { return Kept{store, l} }

// Kept is a Store whose hand-outs are noted.
type Kept struct {
	partitioned.Below

	ledger *Ledger
}

func (l *Ledger) enter(source semantics.Source, messages []*semantics.Received) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed[source.SessionLock] {
		return
	}
	for _, m := range messages {
		h := heldOut{
			side: sideOf(source), number: m.SequenceNumber, failed: m.DeliveryCount - 1, until: m.LockedUntil, session: source.SessionLock,
		}
		if h.side.prefix != "" {
			h.failed = m.DeadLetterDeliveryCount
		}
		l.held[m.LockToken] = h
	}
}

// settled takes out what a settlement has ended, or found lost.
func (l *Ledger) settled(tokens []semantics.LockToken, codes []semantics.Code) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, code := range codes {
		if code == "" {
			delete(l.held, tokens[i])
		}
	}
}

func (l *Ledger) forget(of func(h heldOut) bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	maps.DeleteFunc(l.held, func(_ semantics.LockToken, h heldOut) bool { return of(h) })
}

// Receive implements semantics.Receiver.
func (k Kept) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	batch, err := k.Below.Receive(ctx, source, limit, register)
	k.ledger.enter(source, batch.Messages)
	return batch, err
}

// CompleteAndReceive implements semantics.Receiver.
func (k Kept) CompleteAndReceive(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register) (semantics.NextBatch, error) {
	next, err := k.Below.CompleteAndReceive(ctx, source, tokens, limit, register)
	k.ledger.settled(tokens, next.Codes)
	k.ledger.enter(source, next.Batch.Messages)
	return next, err
}

// ReceiveByNumber implements semantics.Receiver.
func (k Kept) ReceiveByNumber(ctx context.Context, source semantics.Source, state semantics.State, numbers []int64) ([]*semantics.Received, error) {
	messages, err := k.Below.ReceiveByNumber(ctx, source, state, numbers)
	k.ledger.enter(source, messages)
	return messages, err
}

// Complete implements semantics.Settler.
func (k Kept) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	codes, err := k.Below.Complete(ctx, source, tokens)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Abandon implements semantics.Settler.
func (k Kept) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions) ([]semantics.Code, error) {
	codes, err := k.Below.Abandon(ctx, source, tokens, options)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Defer implements semantics.Settler.
func (k Kept) Defer(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value) ([]semantics.Code, error) {
	codes, err := k.Below.Defer(ctx, source, tokens, properties)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Release implements semantics.Settler.
func (k Kept) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	codes, err := k.Below.Release(ctx, source, tokens)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// DeadLetter implements semantics.Settler.
func (k Kept) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, texts semantics.DeadLetterTexts, properties map[string]semantics.Value) ([]semantics.Code, error) {
	codes, err := k.Below.DeadLetter(ctx, source, tokens, texts, properties)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Transact implements semantics.Transactor.
func (k Kept) Transact(ctx context.Context, once *semantics.Once, operations []semantics.Operation) semantics.TransactionOutcome {
	outcome := k.Below.Transact(ctx, once, operations)
	for _, o := range operations {
		if outcome.Err == nil {
			k.ledger.settled(o.Tokens, make([]semantics.Code, len(o.Tokens)))
		}
	}
	return outcome
}

// RenewLocks implements semantics.Settler.
func (k Kept) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	renewals, err := k.Below.RenewLocks(ctx, source, tokens)
	k.ledger.mu.Lock()
	defer k.ledger.mu.Unlock()
	for i, r := range renewals {
		if h, ok := k.ledger.held[tokens[i]]; ok && r.Code == "" {
			h.until = r.LockedUntil
			k.ledger.held[tokens[i]] = h
		}
	}
	return renewals, err
}

// RenewSessionLock implements semantics.Sessions.
func (k Kept) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	until, err := k.Below.RenewSessionLock(ctx, source)
	k.ledger.mu.Lock()
	defer k.ledger.mu.Unlock()
	for token, h := range k.ledger.held {
		if err == nil && h.session == source.SessionLock && !h.session.IsZero() {
			h.until = until
			k.ledger.held[token] = h
		}
	}
	return until, err
}

// Turn implements semantics.Sessions.
func (k Kept) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	outcomes := k.Below.Turn(ctx, path, turns)
	for i, o := range outcomes {
		if o.Err == nil {
			k.ledger.settled(turns[i].Complete, o.Codes)
		}
		k.ledger.enter(semantics.Source{Path: path, SessionLock: turns[i].Session}, o.Batch.Messages)
	}
	return outcomes
}

// CloseSession implements semantics.Sessions.
func (k Kept) CloseSession(ctx context.Context, source semantics.Source) error {
	err := k.Below.CloseSession(ctx, source)
	if err == nil {
		k.ledger.mu.Lock()
		k.ledger.closed[source.SessionLock] = true
		k.ledger.mu.Unlock()
		k.ledger.forget(func(h heldOut) bool { return h.session == source.SessionLock })
	}
	return err
}

// DeleteEntity implements semantics.Entities.
func (k Kept) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	err := k.Below.DeleteEntity(ctx, kind, path)
	if err == nil {
		folded := semantics.Fold(path)
		k.ledger.forget(func(h heldOut) bool { return h.side.path == folded || strings.HasPrefix(h.side.path, folded+"/") })
	}
	return err
}

// Held implements audit.Witness.
func (l *Ledger) Held(path, prefix string) (held map[int64]audit.Held, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	held, now = map[int64]audit.Held{}, l.now()
	for _, h := range l.held {
		if h.side == (side{semantics.Fold(path), prefix}) && h.until.After(now) {
			held[h.number] = audit.Held{Failed: h.failed, Until: h.until}
		}
	}
	return held, now
}
