package redisstore

import (
	"context"
	"iter"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// A sidecar that knows the partitions of an entity uses them without a look at the record. So a deletion of the entity
// that was acknowledged leaves no partition, and no other sidecar creates one after it: the path of each is barred. A
// deletion that failed halfway is completed by the next creation or deletion of the name, before that is acknowledged.

// forGood is above all tickets: it bars a path from ever having an entity, as long as a caller can be under way that
// would create it (lib/entity/bar_ticket.lua).
const forGood = 1<<53 - 1

// DeleteRecord implements partitioned.Records.
func (s *Store) DeleteRecord(ctx context.Context, kind semantics.Kind, path string, incarnation int64) error {
	if kind == semantics.SubscriptionKind {
		return s.Unbroken(anyHistory(ctx), func(ctx context.Context) error {
			return s.deleteSubscription(ctx, path, asked, incarnation)
		})
	}
	return s.Unbroken(ctx, func(ctx context.Context) error {
		return s.deleteQueue(ctx, kind, path, asked, recordKind(kind), incarnation, "")
	})
}

// DeleteForGood implements partitioned.Records.
func (s *Store) DeleteForGood(ctx context.Context, kind semantics.Kind, path string) error {
	return s.Unbroken(anyHistory(ctx), func(ctx context.Context) error {
		for {
			err := s.deleteEntity(ctx, kind, path, asked)
			if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
				return err
			}
			r, err := s.run(ctx, "bar_name", s.keys(path), forGood)
			if err != nil {
				return mayHaveRun(err)
			}
			if r.status == "OK" {
				return nil
			} // else another caller has created it in between
		}
	})
}

// deleteLeftPartitions deletes the partitions that deletions of a name have left which failed halfway, before a
// creation or another deletion is acknowledged. present is the incarnation of the entity that is there now, 0 for none
// with partitions.
func (s *Store) deleteLeftPartitions(ctx context.Context, path string, present int64) error {
	if semantics.IsPartition(path) {
		return nil
	}
	ctx = anyHistory(ctx)
	for name, err := range s.hiddenOf(ctx, path) {
		if err != nil {
			return err
		}
		if _, incarnation, _ := semantics.SplitPartition(name); incarnation == present {
			continue
		}
		_, isDeleted, err := s.isOrphan(ctx, name)
		if err == nil && isDeleted { // else Redis has forgotten the record
			err = s.deleteLeftPartition(ctx, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) deleteLeftPartition(ctx context.Context, name string) error {
	kind := semantics.QueueKind // if nothing is there, any will do
	switch entity, _, err := s.anyPartition(ctx, name); {
	case err == nil:
		kind = entity.Kind
	case semantics.CodeOf(err) != semantics.EntityNotFound:
		return err
	}
	return s.DeleteForGood(ctx, kind, name)
}

// hiddenOf yields the names of the partitions and definitions that a name has or had, in order.
func (s *Store) hiddenOf(ctx context.Context, path string) iter.Seq2[string, error] {
	prefix := semantics.Fold(path) + semantics.PartitionMark
	return func(yield func(string, error) bool) {
		for after := prefix; ; {
			names, err := s.listNames(ctx, after, semantics.MaxPageSize)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range names {
				if !strings.HasPrefix(name, prefix) || !yield(name, nil) {
					return
				}
			}
			if len(names) < semantics.MaxPageSize {
				return
			}
			after = names[len(names)-1]
		}
	}
}
