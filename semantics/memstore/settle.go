package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Complete implements semantics.Settler.
func (s *Store) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, func(q *queue, m *message, _ time.Time) {
		q.box(source.SubQueue).remove(m)
	})
}

// Abandon implements semantics.Settler.
func (s *Store) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, func(q *queue, m *message, now time.Time) {
		q.box(source.SubQueue).unlock(m)
		if source.SubQueue == semantics.MainQueue {
			m.count++
			q.freed(m, now, true)
		}
	})
}

// Release implements semantics.Settler.
func (s *Store) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, func(q *queue, m *message, now time.Time) {
		q.box(source.SubQueue).unlock(m)
		if source.SubQueue == semantics.MainQueue {
			q.freed(m, now, false)
		}
	})
}

// DeadLetter implements semantics.Settler.
func (s *Store) DeadLetter(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, reason, description string) ([]semantics.Code, error) {
	return s.settle(ctx, source, tokens, func(q *queue, m *message, now time.Time) {
		q.main.remove(m)
		q.bury(m, now, reason, description)
	})
}

// settle lets verb act on every message whose token holds, in order of sequence number, so that messages that become
// dead letters together are in that order there (DLQ-16). A token that is given twice holds only once.
func (s *Store) settle(ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
	verb func(q *queue, m *message, now time.Time),
) ([]semantics.Code, error) {
	q, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err != nil {
		return nil, err
	}
	q.accessedAt = now
	box := q.box(source.SubQueue)
	available, dead := q.main.available(), q.dead.available()

	codes := make([]semantics.Code, len(tokens))
	var held []*message
	for i, token := range tokens {
		m := box.locks[token]
		if m == nil || !m.holds(now) || slices.Contains(held, m) {
			codes[i] = semantics.MessageLockLost
			continue
		}
		held = append(held, m)
	}
	slices.SortFunc(held, func(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) })
	for _, m := range held {
		verb(q, m, now)
	}
	s.wake(semantics.Source{Path: source.Path}, q.main.available()-available)
	s.wake(semantics.Source{Path: source.Path, SubQueue: semantics.DeadLetterQueue}, q.dead.available()-dead)
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
		q.expect(m.lockedUntil) // earlier than before when LockDuration was shortened
		renewals[i].LockedUntil = m.lockedUntil
		renewals[i].ExpiredInHand = source.SubQueue == semantics.MainQueue && m.expired(now)
	}
	return renewals, nil
}
