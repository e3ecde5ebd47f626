package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Complete implements semantics.Settler.
func (s *Store) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, nil, func(q *queue, m *message, _ time.Time) {
		q.box(source.SubQueue).remove(m)
	})
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	delay *time.Duration, properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, properties, func(q *queue, m *message, now time.Time) {
		visibleAt := now
		switch {
		case delay != nil:
			visibleAt = now.Add(delay.Truncate(time.Millisecond))
		case source.SubQueue == semantics.MainQueue:
			visibleAt = now.Add(q.options.RedeliveryDelay.Truncate(time.Millisecond))
		}
		q.giveBack(m, now, true, visibleAt)
	})
}

// Defer implements semantics.Settler.
func (s *Store) Defer(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, properties, func(q *queue, m *message, _ time.Time) {
		q.box(source.SubQueue).unlock(m)
		q.setAside(m)
	})
}

// Release implements semantics.Settler.
func (s *Store) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, nil, func(q *queue, m *message, now time.Time) {
		q.giveBack(m, now, false, now)
	})
}

// DeadLetter implements semantics.Settler.
func (s *Store) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	texts semantics.DeadLetterTexts, properties map[string]semantics.Value,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, properties, func(q *queue, m *message, now time.Time) {
		q.main.remove(m)
		q.bury(m, now, copyOf(texts))
	})
}

func copyOf(texts semantics.DeadLetterTexts) semantics.DeadLetterTexts {
	for _, text := range []**string{&texts.Reason, &texts.Description} {
		if *text != nil {
			own := **text
			*text = &own
		}
	}
	return texts
}

// settle merges properties into every message whose token holds and lets verb act on it, in order of sequence number, so
// that messages that become dead letters together are in that order there (DLQ-16). A token that is given twice holds
// only once. A message that cannot take the properties keeps its lock (SETTLE-5).
func (s *Store) settle(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	properties map[string]semantics.Value, verb func(q *queue, m *message, now time.Time),
) ([]semantics.Code, error) {
	q, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err != nil {
		return nil, err
	}
	q.accessedAt = now
	box := q.box(source.SubQueue)

	codes := make([]semantics.Code, len(tokens))
	var held []*message
	for i, token := range tokens {
		m := box.locks[token]
		if m == nil || !m.holds(now) || slices.Contains(held, m) {
			codes[i] = semantics.MessageLockLost
			continue
		}
		if len(properties) > 0 {
			merged, code := m.sent.MergeProperties(properties)
			if code != "" {
				codes[i] = code
				continue
			}
			box.change(m, merged)
		}
		held = append(held, m)
	}
	slices.SortFunc(held, byNumber)
	s.wakingFor(q, func() {
		for _, m := range held {
			verb(q, m, now)
		}
	})
	return codes, nil
}

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	q, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err != nil {
		return nil, err
	}
	q.accessedAt = now
	box := q.box(source.SubQueue)
	renewals := make([]semantics.Renewal, len(tokens))
	for i, token := range tokens {
		m := box.locks[token]
		if m == nil || !m.holds(now) {
			renewals[i].Code = semantics.MessageLockLost
			continue
		}
		m.lockedUntil = q.lockEnd(now)
		q.expect(m.due()) // earlier than before when LockDuration was shortened
		renewals[i].LockedUntil = m.lockedUntil
		renewals[i].ExpiredInHand = m.expired(now)
	}
	return renewals, nil
}
