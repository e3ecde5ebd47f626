package memstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// openRecord finds the record of an entity with several partitions.
func (s *Store) openRecord(ctx context.Context, path string, incarnation int64) (*queue, time.Time, func(), error) {
	q, now, unlock, err := s.openAny(ctx, path)
	if err == nil && (q.options.Partitions <= 1 || q.incarnation != incarnation) {
		return nil, now, unlock, semantics.NotFound(path)
	}
	return q, now, unlock, err
}

// BeginRemoval implements partitioned.Removals.
func (s *Store) BeginRemoval(
	ctx context.Context, _ semantics.Kind, path string, incarnation int64,
) (removal int64, wait time.Duration, err error) {
	record, now, unlock, err := s.openRecord(ctx, path, incarnation)
	defer unlock()
	if err != nil {
		return 0, 0, err
	}
	record.removal = 0
	at := record.unusedAt(now)
	if !reached(at, now) {
		return 0, max(at.Sub(now), 0), nil
	}
	s.lastRemoval++
	record.removal = s.lastRemoval
	return record.removal, 0, nil
}

// CancelRemoval implements partitioned.Removals.
func (s *Store) CancelRemoval(ctx context.Context, path string, incarnation, removal int64) error {
	record, _, unlock, err := s.openRecord(ctx, path, incarnation)
	defer unlock()
	if err == nil && (removal == 0 || record.removal == removal) {
		record.removal = 0
	}
	return err
}

// CompleteRemoval implements partitioned.Removals.
func (s *Store) CompleteRemoval(
	ctx context.Context, _ semantics.Kind, path string, incarnation, removal int64,
) (isCompleted bool, err error) {
	record, now, unlock, err := s.openRecord(ctx, path, incarnation)
	defer unlock()
	if err != nil || record.removal != removal || !reached(record.unusedAt(now), now) {
		return false, err
	}
	s.delete(record)
	if s.removed != nil {
		s.removed(record.kind, record.name)
	}
	return true, nil
}

// suspended is a partition that a removal has suspended: no call finds it.
type suspended struct {
	queue   *queue
	removal int64
}

// Suspend implements partitioned.Removals.
func (s *Store) Suspend(
	ctx context.Context, path string, removal int64, span time.Duration, keepsDeadLetters bool,
) (wait time.Duration, err error) {
	if err := refuseIfOver(ctx); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name, now := semantics.Fold(path), s.now()
	q, on := s.queues[name], s.suspended[name]
	if on != nil {
		q = on.queue
	}
	if q == nil {
		return 0, semantics.NotFound(path)
	}
	s.look(q, now)
	at := q.lastUse(now).Add(span.Truncate(time.Millisecond))
	switch {
	case !reached(at, now):
		return at.Sub(now), nil
	case keepsDeadLetters && len(q.dead.messages)+len(q.undelivered.messages) > 0:
		return keptRecheck, nil
	case removal != 0 && on != nil && on.removal != removal:
		return 0, &semantics.SuspendedError{Removal: on.removal}
	case removal != 0 && on == nil:
		delete(s.queues, name)
		s.suspended[name] = &suspended{q, removal}
	}
	return 0, nil
}

// Resume implements partitioned.Removals.
func (s *Store) Resume(ctx context.Context, path string, removal int64) error {
	if err := refuseIfOver(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if on := s.suspended[semantics.Fold(path)]; on != nil && on.removal == removal {
		s.resume(path)
	}
	return nil
}

// resume ends the suspension of a partition, if it is suspended.
func (s *Store) resume(path string) {
	name := semantics.Fold(path)
	if on := s.suspended[name]; on != nil {
		delete(s.suspended, name)
		s.queues[name] = on.queue
	}
}

// RemoveUnused implements semantics.Topics: what partitions belong to, the Store above knows.
func (*Store) RemoveUnused(context.Context, string) (time.Duration, error) { return 0, nil }
