package memstore

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Slot implements partitioned.Places: memory is one place.
func (*Store) Slot(string) (slot, of int) { return 0, 1 }

// Server implements partitioned.Places: memory answers as a whole.
func (*Store) Server(context.Context, string) any { return nil }

// NoteDeletion implements partitioned.Records. Memory loses no records, so there is nothing to note.
func (*Store) NoteDeletion(context.Context, string, int64) error { return nil }

// IsDeletionNoted implements partitioned.Records: what has no record was deleted.
func (*Store) IsDeletionNoted(context.Context, string, int64) (bool, error) { return true, nil }

// IsForgotten implements partitioned.Records.
func (*Store) IsForgotten(context.Context, string, int64) (bool, error) { return false, nil }

// DeleteRecord implements partitioned.Records.
func (s *Store) DeleteRecord(ctx context.Context, kind semantics.Kind, path string, incarnation int64) error {
	return s.deleteIf(ctx, kind, path, func(q *queue) bool {
		return (q.options.Partitions > 1 || kind == semantics.SubscriptionKind) && q.incarnation == incarnation
	})
}

// barredFor is how long a path is barred: longer than a call that would create something there can be under way.
const barredFor = time.Hour

// DeleteForGood implements partitioned.Records.
func (s *Store) DeleteForGood(ctx context.Context, _ semantics.Kind, path string) error {
	if err := refuseIfOver(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deleteForGood(path)
	return nil
}

func (s *Store) deleteForGood(path string) {
	now := s.now()
	maps.DeleteFunc(s.barred, func(_ string, since time.Time) bool { return now.Sub(since) > barredFor })
	s.barred[semantics.Fold(path)] = now
	s.resume(path)
	if q := s.queues[semantics.Fold(path)]; q != nil {
		s.delete(q)
	}
}

// deleteLeftPartitions deletes the partitions that deletions of a name have left which failed halfway. There is no
// entity of that name.
func (s *Store) deleteLeftPartitions(path string) {
	prefix := semantics.Fold(path) + semantics.PartitionMark
	for name := range s.suspended {
		if strings.HasPrefix(name, prefix) {
			s.deleteForGood(name)
		}
	}
	for name, q := range s.queues {
		if strings.HasPrefix(name, prefix) && q.kind != semantics.SubscriptionKind { // which goes with its topic
			s.deleteForGood(name)
		}
	}
}

// ComparedBy implements partitioned.Histories. All entities are in one memory, which forgets nothing.
func (*Store) ComparedBy(func(ctx context.Context, path string) error) {}

// Compare implements partitioned.Histories.
func (*Store) Compare(context.Context, string) error { return nil }

// History implements partitioned.Histories.
func (*Store) History(context.Context, string) (name string, isCompared bool, err error) {
	return "", true, nil
}

// NoteCompared implements partitioned.Histories.
func (*Store) NoteCompared(context.Context, string, string) (isPresent bool, err error) {
	return true, nil
}
