package memstore

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// maxRecheck is the longest a waiting receive sleeps without looking again.
const maxRecheck = 10 * time.Second

// Receive implements semantics.Receiver.
func (s *Store) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	q, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err != nil {
		return semantics.Batch{}, err
	}
	if !q.options.Status.CanReceive() {
		return semantics.Batch{}, disabled(q, "receives")
	}
	q.accessedAt = now
	main, dead := q.sweep(now)

	box := q.box(source.SubQueue)
	batch := semantics.Batch{Messages: q.take(box, limit, now), RecheckAfter: q.recheckAfter(box, now)}
	if register == semantics.RegisterAlways || register == semantics.RegisterIfEmpty && len(batch.Messages) == 0 {
		s.waiting[source.Fold()] = true
	}
	// What the sweep brought and this call did not take is news to others.
	s.wake(semantics.Source{Path: source.Path}, min(main, q.main.available()))
	s.wake(semantics.Source{Path: source.Path, SubQueue: semantics.DeadLetterQueue}, min(dead, q.dead.available()))
	return batch, nil
}

// take locks up to limit available messages in order.
func (q *queue) take(from *box, limit int, now time.Time) []*semantics.Received {
	var taken []*semantics.Received
	for _, m := range from.messages {
		if len(taken) == limit {
			break
		}
		if m.locked() {
			continue
		}
		from.lock(m, q.lockEnd(now))
		q.expect(m.lockedUntil)
		r := m.view()
		r.DeliveryCount, r.LockToken, r.LockedUntil = m.count+1, m.token, m.lockedUntil
		taken = append(taken, r)
	}
	return taken
}

// lockEnd is when a lock that is taken or renewed now ends (LOCK-1, LOCK-3).
func (q *queue) lockEnd(now time.Time) time.Time {
	return now.Add(q.options.LockDuration).Truncate(time.Millisecond)
}

func (q *queue) recheckAfter(b *box, now time.Time) time.Duration {
	after := min(maxRecheck, q.options.LockDuration)
	for _, m := range b.locks {
		after = min(after, m.lockedUntil.Sub(now))
	}
	return max(after, time.Millisecond)
}

// Peek implements semantics.Receiver.
func (s *Store) Peek(ctx context.Context, source semantics.Source, from int64, limit int) ([]*semantics.Received, error) {
	q, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err != nil {
		return nil, err
	}
	if !q.options.Status.CanReceive() {
		return nil, disabled(q, "peeks")
	}
	q.accessedAt = now
	main, dead := q.sweep(now)
	s.wake(semantics.Source{Path: source.Path}, main)
	s.wake(semantics.Source{Path: source.Path, SubQueue: semantics.DeadLetterQueue}, dead)

	rows := slices.Clone(q.box(source.SubQueue).messages)
	slices.SortFunc(rows, func(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) })
	var seen []*semantics.Received
	for _, m := range rows {
		if m.sequence < from {
			continue
		}
		if len(seen) == limit {
			break
		}
		r := m.view()
		r.Locked = m.locked()
		r.Expired = source.SubQueue == semantics.MainQueue && m.expired(now) // no lifetime counts among dead letters (TTL-19)
		seen = append(seen, r)
	}
	return seen, nil
}
