package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Complete implements semantics.Settler.
func (s *Store) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, nil, func(q *queue, m *message, _ time.Time) {
		q.box(source.SubQueue).remove(m)
	})
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	options semantics.AbandonOptions,
) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, options.Properties, func(q *queue, m *message, now time.Time) {
		q.abandon(source, m, options, now)
	})
}

// abandon returns a locked message with one delivery more.
func (q *queue) abandon(source semantics.Source, m *message, options semantics.AbandonOptions, now time.Time) {
	visibleAt := now
	switch {
	case options.Delay != nil:
		visibleAt = now.Add(options.Delay.Truncate(time.Millisecond))
	case source.SubQueue == semantics.MainQueue:
		visibleAt = now.Add(q.options.RedeliveryDelay.Truncate(time.Millisecond))
	}
	m.skipsOrder = options.SkipOrder
	q.giveBack(m, now, true, visibleAt)
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
func (s *Store) Release(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
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
		q.deadLetter(m, now, copyOf(texts))
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

// openToSettle opens a queue for a verb that goes on under a lock whatever the status is (STAT-2). It stamps the
// activity, but processes nothing that is due. lost is SESSION_LOCK_LOST when the source is a session whose lock does
// not hold.
func (s *Store) openToSettle(ctx context.Context, source semantics.Source, fits kind) (
	q *queue, in scope, now time.Time, unlock func(), lost, err error,
) {
	q, now, unlock, err = s.open(ctx, source.Path)
	if err == nil {
		err = fits(q, source)
	}
	if err != nil {
		return nil, scope{}, now, unlock, nil, err
	}
	q.accessedAt = now
	in, lost = q.scopeOf(source, now)
	return q, in, now, unlock, lost, nil
}

// settle merges properties into every message whose token holds and lets verb act on it, in order of sequence number,
// so that messages that become dead letters together are in that order there (DLQ-16). A token that is given twice
// holds only once. A message that cannot take the properties keeps its lock (SETTLE-5). When the lock of the session
// does not hold, no token does (SETTLE-2).
func (s *Store) settle(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	properties map[string]semantics.Value, verb func(q *queue, m *message, now time.Time),
) ([]semantics.Code, error) {
	q, in, now, unlock, lost, err := s.openToSettle(ctx, source, forMessages)
	defer unlock()
	if err != nil {
		return nil, err
	}
	if lost != nil {
		return slices.Repeat([]semantics.Code{semantics.CodeOf(lost)}, len(tokens)), nil
	}
	box, codes := q.box(source.SubQueue), make([]semantics.Code, len(tokens))
	var held []*message
	for i, token := range tokens {
		m := box.locks[token]
		if m == nil || !in.has(m) || !m.holds(now) || slices.Contains(held, m) {
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
	s.wakingFor(q, now, func() {
		for _, m := range held {
			verb(q, m, now)
		}
	})
	return codes, nil
}

// RenewLocks implements semantics.Settler.
func (s *Store) RenewLocks(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Renewal, error) {
	q, _, now, unlock, _, err := s.openToSettle(ctx, source, forPlain)
	defer unlock()
	if err != nil {
		return nil, err
	}
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
