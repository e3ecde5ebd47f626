package storetest

import (
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

func tokensOf(messages ...*semantics.Received) []semantics.LockToken {
	tokens := make([]semantics.LockToken, len(messages))
	for i, m := range messages {
		tokens[i] = m.LockToken
	}
	return tokens
}

func (h *fixture) complete(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.Complete(h.t.Context(), source, tokensOf(messages...))
	h.settled(codes, err)
}

func (h *fixture) abandon(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.Abandon(h.t.Context(), source, tokensOf(messages...), semantics.AbandonOptions{})
	h.settled(codes, err)
}

// abandonFor abandons messages with a delay.
func (h *fixture) abandonFor(delay time.Duration, source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.Abandon(h.t.Context(), source, tokensOf(messages...), semantics.AbandonOptions{Delay: &delay})
	h.settled(codes, err)
}

// setAside defers messages.
func (h *fixture) setAside(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.Defer(h.t.Context(), source, tokensOf(messages...), nil)
	h.settled(codes, err)
}

func (h *fixture) release(source semantics.Source, messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.Release(h.t.Context(), source, tokensOf(messages...))
	h.settled(codes, err)
}

// deadLetter dead-letters messages of orders.
func (h *fixture) deadLetter(messages ...*semantics.Received) {
	h.t.Helper()
	codes, err := h.broker.DeadLetter(h.t.Context(), orders, tokensOf(messages...), why("poison", "cannot be read"))
	h.settled(codes, err)
}

func (h *fixture) settled(codes []semantics.Code, err error) {
	h.t.Helper()
	h.ok(err)
	for i, code := range codes {
		if code != "" {
			h.t.Fatalf("token %d: got %s, want success", i, code)
		}
	}
}

// why are the texts of a dead letter.
func why(reason, description string) broker.DeadLetterOptions {
	return broker.DeadLetterOptions{Reason: &reason, Description: &description}
}

// renew renews one lock of source.
func (h *fixture) renew(source semantics.Source, message *semantics.Received) semantics.Renewal {
	h.t.Helper()
	renewals, err := h.broker.RenewLocks(h.t.Context(), source, tokensOf(message))
	h.ok(err)
	return renewals[0]
}

// lost checks that every settle verb and renew loses with this message's token, and that nothing changes by it.
func (h *fixture) lost(source semantics.Source, message *semantics.Received) {
	h.t.Helper()
	before := h.snapshot()
	tokens, ctx := tokensOf(message), h.t.Context()
	codes, err := h.broker.Complete(ctx, source, tokens)
	h.wantCodes(codes, err, semantics.MessageLockLost)
	codes, err = h.broker.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
	h.wantCodes(codes, err, semantics.MessageLockLost)
	codes, err = h.broker.Release(ctx, source, tokens)
	h.wantCodes(codes, err, semantics.MessageLockLost)
	codes, err = h.broker.Defer(ctx, source, tokens, nil)
	h.wantCodes(codes, err, semantics.MessageLockLost)
	if source.SubQueue == semantics.MainQueue {
		codes, err = h.broker.DeadLetter(ctx, source, tokens, why("late", ""))
		h.wantCodes(codes, err, semantics.MessageLockLost)
	}
	h.same(h.renew(source, message), semantics.Renewal{Code: semantics.MessageLockLost})
	if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
		h.t.Fatalf("a lost token changed something (-before +after):\n%s", diff)
	}
}
