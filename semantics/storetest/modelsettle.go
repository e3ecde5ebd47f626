package storetest

import (
	"context"
	"maps"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// draw chooses some deliveries of one source: live ones, old ones, the same one twice, or one of the other source.
func (m *model) draw(rt *rapid.T) (from origin, chosen []received) {
	if len(m.deliveries) == 0 {
		rt.Skip("nothing was delivered yet")
	}
	chosen = rapid.SliceOfN(rapid.SampledFrom(m.deliveries), 1, 3).Draw(rt, "deliveries")
	m.preferHeld(rt, chosen)
	return m.stray(rt, chosen[0].from), chosen
}

func (m *model) tokens(s semantics.Store, chosen []received) []semantics.LockToken {
	tokens := make([]semantics.LockToken, len(chosen))
	for i, d := range chosen {
		tokens[i] = d.reference
		if s == m.Subject {
			tokens[i] = d.subject
		}
	}
	return tokens
}

type settleVerb = func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error)

func (m *model) settle(rt *rapid.T, what string, from origin, chosen []received, verb settleVerb) {
	codes, ok := agree(rt, m, what, func(s semantics.Store) ([]semantics.Code, error) {
		return verb(s, m.ctx, m.on(s, from), m.tokens(s, chosen))
	})
	if ok {
		m.settled(rt, what, from, chosen, codes)
	}
	m.otherChanged = m.otherChanged || from == m.other
}

func (m *model) complete(rt *rapid.T) {
	from, chosen := m.draw(rt)
	m.settle(rt, "complete", from, chosen, semantics.Settler.Complete)
}

func (m *model) release(rt *rapid.T) {
	from, chosen := m.draw(rt)
	m.settle(rt, "release", from, chosen, semantics.Settler.Release)
}

// drawChanges returns modified properties, most often none.
func drawChanges(rt *rapid.T) map[string]semantics.Value {
	if rapid.IntRange(1, 3).Draw(rt, "modify") > 1 {
		return nil
	}
	return drawProperties(rt)
}

func (m *model) abandon(rt *rapid.T) {
	from, chosen := m.draw(rt)
	changes := drawChanges(rt)
	var delay *time.Duration
	if rapid.Bool().Draw(rt, "has delay") {
		d := units(0, 1, 2, 6).Draw(rt, "delay")
		delay = &d
	}
	skip := m.options.RequiresSession && rapid.Bool().Draw(rt, "skip order")
	m.settle(rt, "abandon", from, chosen, func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.Abandon(ctx, source, tokens, semantics.AbandonOptions{Delay: delay, SkipOrder: skip, Properties: maps.Clone(changes)})
	})
}

func (m *model) deferSome(rt *rapid.T) {
	from, chosen := m.draw(rt)
	changes := drawChanges(rt)
	m.settle(rt, "defer", from, chosen, func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.Defer(ctx, source, tokens, maps.Clone(changes))
	})
}

func ptr[T any](v T) *T { return &v }

func (m *model) deadLetter(rt *rapid.T) {
	from, chosen := m.draw(rt)
	from.Source = m.main.Source
	changes := drawChanges(rt)
	texts := semantics.DeadLetterTexts{Reason: ptr("by hand"), Description: ptr("")}
	if rapid.IntRange(1, 6).Draw(rt, "reason is not a text") == 1 { // SETTLE-7
		texts.Reason = nil
		changes = maps.Clone(changes)
		if changes == nil {
			changes = map[string]semantics.Value{}
		}
		changes[semantics.PropertyDeadLetterReason] = semantics.Int64(7)
	}
	m.settle(rt, "dead-letter", from, chosen, func(s semantics.Settler, ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
		return s.DeadLetter(ctx, source, tokens, texts, maps.Clone(changes))
	})
}

func (m *model) renew(rt *rapid.T) {
	from, chosen := m.draw(rt)
	agree(rt, m, "renew", func(s semantics.Store) ([]semantics.Renewal, error) {
		return s.RenewLocks(m.ctx, m.on(s, from), m.tokens(s, chosen))
	})
}

// completeAndReceive completes some deliveries and receives the next messages of their source in one step.
func (m *model) completeAndReceive(rt *rapid.T) {
	from, chosen := m.draw(rt)
	limit := few(rt, mostModelReceive, "limit")
	reference, subject, ok := both(rt, m, "complete and receive", func(s semantics.Store) (turned, error) {
		source := m.on(s, from)
		next, err := s.CompleteAndReceive(m.ctx, source, m.tokens(s, chosen), limit, semantics.RegisterNever)
		batch, failure := next.Batch, next.Failure
		for err == nil && failure == nil && len(batch.Messages) == 0 && batch.RecheckAfter == 0 {
			batch, failure = s.Receive(m.ctx, source, limit, semantics.RegisterNever)
		}
		return turned{next.Codes, batch.Messages, Refusal(failure)}, err
	})
	if ok {
		m.turned(rt, from, chosen, reference, subject)
	}
}

// turned compares what became of a step that completed and received.
func (m *model) turned(rt *rapid.T, from origin, chosen []received, reference, subject turned) {
	same(rt, "completed", reference.codes, subject.codes)
	same(rt, "receive after a completion", reference.failure, subject.failure)
	m.settled(rt, "complete", from, chosen, reference.codes)
	m.took(rt, from, reference.messages, subject.messages, true)
	moved := m.moved
	m.looked(reference.failure == "")
	if from == m.other {
		m.otherChanged, m.moved = true, moved // of main nothing was seen
	}
}

// turned is what became of a turn, without the tokens of the messages.
type turned struct {
	codes    []semantics.Code
	messages []*semantics.Received
	failure  string
}

// turn completes some deliveries of a session and receives the next messages in one step.
func (m *model) turn(rt *rapid.T) {
	from, chosen := m.draw(rt)
	if from.hold == nil {
		rt.Skip("it is not of a held session")
	}
	limit := few(rt, mostModelReceive, "limit")
	reference, subject, ok := both(rt, m, "turn", func(s semantics.Store) (turned, error) {
		source := m.on(s, from)
		turn := semantics.Turn{Session: source.SessionLock, Complete: m.tokens(s, chosen), Receive: limit}
		o := s.Turn(m.ctx, source.Path, []semantics.Turn{turn})[0]
		codes := o.Codes
		for turn.Complete = nil; o.Err == nil && o.Failure == nil && len(o.Batch.Messages) == 0 && o.Batch.RecheckAfter == 0; {
			o = s.Turn(m.ctx, source.Path, []semantics.Turn{turn})[0]
		}
		return turned{codes, o.Batch.Messages, Refusal(o.Failure)}, o.Err
	})
	if ok {
		m.turned(rt, from, chosen, reference, subject)
	}
}
