package apptest

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// store records the outcomes of a store for an app. Its calls wait while the record is compared with the store.
type store struct {
	redistest.Kept

	app *App
}

// calling holds off audits while a call runs that may change the queue.
func (s store) calling() (over func()) {
	s.app.gate.RLock()
	return s.app.gate.RUnlock
}

// Send implements semantics.Sender.
func (s store) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	defer s.calling()()
	return s.Kept.Send(ctx, path, messages)
}

// SendEach implements semantics.Sender.
func (s store) SendEach(ctx context.Context, path string, calls [][]*semantics.Message) []semantics.SendOutcome {
	defer s.calling()()
	return s.Kept.SendEach(ctx, path, calls)
}

// Receive implements semantics.Receiver.
func (s store) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	defer s.calling()()
	batch, err := s.Kept.Receive(ctx, source, limit, register)
	s.app.handedOut(batch.Messages)
	return batch, err
}

// Complete implements semantics.Settler.
func (s store) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(tokens, Complete, isDone, func() ([]semantics.Code, error) { return s.Kept.Complete(ctx, source, tokens) })
}

// Abandon implements semantics.Settler.
func (s store) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions) ([]semantics.Code, error) {
	return s.settle(tokens, Abandon, "", func() ([]semantics.Code, error) { return s.Kept.Abandon(ctx, source, tokens, options) })
}

// Defer implements semantics.Settler.
func (s store) Defer(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, properties map[string]semantics.Value) ([]semantics.Code, error) {
	return s.settle(tokens, Defer, isDeferred, func() ([]semantics.Code, error) { return s.Kept.Defer(ctx, source, tokens, properties) })
}

// DeadLetter implements semantics.Settler.
func (s store) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, texts semantics.DeadLetterTexts, properties map[string]semantics.Value) ([]semantics.Code, error) {
	return s.settle(tokens, DeadLetter, isDead, func() ([]semantics.Code, error) { return s.Kept.DeadLetter(ctx, source, tokens, texts, properties) })
}

// Release implements semantics.Settler.
func (s store) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	defer s.calling()()
	return s.Kept.Release(ctx, source, tokens)
}

// RenewLocks implements semantics.Settler.
func (s store) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	defer s.calling()()
	return s.Kept.RenewLocks(ctx, source, tokens)
}

// AcceptNextSession implements semantics.Sessions.
func (s store) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	defer s.calling()()
	return s.Kept.AcceptNextSession(ctx, path, register)
}

// RenewSessionLock implements semantics.Sessions.
func (s store) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	defer s.calling()()
	return s.Kept.RenewSessionLock(ctx, source)
}

// CloseSession implements semantics.Sessions.
func (s store) CloseSession(ctx context.Context, source semantics.Source) error {
	defer s.calling()()
	return s.Kept.CloseSession(ctx, source)
}

// settle records where messages end. to is "" for messages whose settlement has failed; some of these are dead letters
// then.
func (s store) settle(tokens []semantics.LockToken, verb Verb, to string, do func() ([]semantics.Code, error)) ([]semantics.Code, error) {
	defer s.calling()()
	s.app.settling(tokens, verb, to)
	codes, err := do()
	s.app.settled(tokens, to, codes, err)
	return codes, err
}

// audit compares the messages in the queue with those that were delivered. All calls wait meanwhile.
func (a *App) audit() {
	a.gate.Lock()
	defer a.gate.Unlock()
	ctx := context.WithoutCancel(a.t.Context())
	if err := a.auditor.Audit(ctx, queue); err != nil {
		a.t.Error(err)
	}
	counts, err := a.raw.Runtime(ctx, semantics.QueueKind, queue)
	if err != nil || counts.Locked > int64(a.atATime) {
		a.t.Errorf("%d messages are locked for an app that takes %d, %v", counts.Locked, a.atATime, err)
	}
}

// checkBooks checks at the end that each message is where its answer put it.
func (a *App) checkBooks() {
	a.t.Helper()
	where := map[int]string{}
	find := func(side semantics.SubQueue, name string) {
		for from := int64(0); ; {
			rows, err := a.raw.Peek(a.t.Context(), semantics.Source{Path: queue, SubQueue: side}, from, broker.MaxPeekMessages, semantics.ShowAll)
			if err != nil {
				a.t.Fatal(err)
			}
			if len(rows) == 0 {
				return
			}
			for _, row := range rows {
				m := a.find(row.MessageID)
				if m == nil || where[m.number] != "" {
					a.t.Fatalf("%s is there twice, or was never sent", row.MessageID)
				}
				where[m.number] = name
			}
			from = rows[len(rows)-1].SequenceNumber + 1
		}
	}
	find(semantics.MainQueue, isDeferred)
	find(semantics.DeadLetterQueue, isDead)
	counts := map[string]int{}
	for _, m := range a.messages {
		counts[m.ended]++
		if got := where[m.number]; got != m.ended && (m.ended != isDone || got != "") {
			a.t.Errorf("message %d was %s, it is among the %q", m.number, m.ended, got)
		}
	}
	a.t.Logf("%d messages: %v; the app took %d", len(a.messages), counts, a.takes)
}

// Turn is by Complete and Receive, with what they do here.
func (s store) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
