package redistest

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Ledger notes which messages stores have handed out under lock and who has settled them, by their answers alone. With
// it an Auditor finds what is locked and was not handed out, and what was handed out and is not locked. Make one with
// NewLedger and give to the tests what Keep returns. It is safe for concurrent use. A call with an unknown outcome
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
		return side{semantics.Fold(source.Path + transfersSuffix), "dead_"}
	default:
		return side{semantics.Fold(source.Path), ""}
	}
}

// Keep returns the store with everything noted that it hands out. Several stores over the same data may share a Ledger.
func (l *Ledger) Keep(store semantics.Store) Kept { return Kept{store, l} }

// Kept is a Store whose hand-outs are noted.
type Kept struct {
	semantics.Store

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
	batch, err := k.Store.Receive(ctx, source, limit, register)
	k.ledger.enter(source, batch.Messages)
	return batch, err
}

// ReceiveByNumber implements semantics.Receiver.
func (k Kept) ReceiveByNumber(ctx context.Context, source semantics.Source, state semantics.State, numbers []int64) ([]*semantics.Received, error) {
	messages, err := k.Store.ReceiveByNumber(ctx, source, state, numbers)
	k.ledger.enter(source, messages)
	return messages, err
}

// Complete implements semantics.Settler.
func (k Kept) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	codes, err := k.Store.Complete(ctx, source, tokens)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Abandon implements semantics.Settler.
func (k Kept) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions) ([]semantics.Code, error) {
	codes, err := k.Store.Abandon(ctx, source, tokens, options)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Defer implements semantics.Settler.
func (k Kept) Defer(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value) ([]semantics.Code, error) {
	codes, err := k.Store.Defer(ctx, source, tokens, properties)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// Release implements semantics.Settler.
func (k Kept) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	codes, err := k.Store.Release(ctx, source, tokens)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// DeadLetter implements semantics.Settler.
func (k Kept) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, texts semantics.DeadLetterTexts, properties map[string]semantics.Value) ([]semantics.Code, error) {
	codes, err := k.Store.DeadLetter(ctx, source, tokens, texts, properties)
	k.ledger.settled(tokens, codes)
	return codes, err
}

// RenewLocks implements semantics.Settler.
func (k Kept) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	renewals, err := k.Store.RenewLocks(ctx, source, tokens)
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
	until, err := k.Store.RenewSessionLock(ctx, source)
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
	outcomes := k.Store.Turn(ctx, path, turns)
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
	err := k.Store.CloseSession(ctx, source)
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
	err := k.Store.DeleteEntity(ctx, kind, path)
	if err == nil {
		folded := semantics.Fold(path)
		k.ledger.forget(func(h heldOut) bool { return h.side.path == folded || strings.HasPrefix(h.side.path, folded+"/") })
	}
	return err
}

// checkLedger checks that what is locked on one side of an entity is what was handed out there and neither settled nor
// past its end, as often as it should.
func (a *Auditor) checkLedger(path, prefix string, q *audit) {
	if a.ledger == nil {
		return
	}
	a.ledger.mu.Lock()
	defer a.ledger.mu.Unlock()
	now := a.ledger.now()
	out := map[int64]heldOut{}
	for _, h := range a.ledger.held {
		if h.side == (side{semantics.Fold(path), prefix}) && h.until.After(now) {
			out[h.number] = h
		}
	}
	for lock, end := range q.singleLocks(prefix) {
		position, _, _ := strings.Cut(lock, ":")
		if m := sessionLock.FindStringSubmatch(lock); m != nil {
			position, end = unpadded(m[2]), q.zsets["session_locks"][m[1]]
		}
		if int64(end) <= now.UnixMilli() || end == noEnd {
			continue
		}
		number, _ := strconv.ParseInt(cmp.Or(q.logs[prefix+"log"][position].fields["n"], position), 10, 64)
		h, isOut := out[number]
		if !isOut {
			q.fault("%slocks has %d until %d, which was not handed out", prefix, number, int64(end))
			continue
		}
		delete(out, number)
		if got := q.hashes[prefix+"deliveries"][position]; cmp.Or(got, "0") != strconv.Itoa(h.failed) {
			q.fault("%d has failed %s times, it was handed out with %d", number, got, h.failed)
		}
		if h.until.UnixMilli() != int64(end) {
			q.fault("%d is locked until %d, it was said until %d", number, int64(end), h.until.UnixMilli())
		}
	}
	for _, number := range slices.Sorted(maps.Keys(out)) {
		q.fault("%d of %slog was handed out until %s and is not locked", number, prefix, out[number].until)
	}
}
