package redisstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// The record of an entity and its partitions lie on several servers, and one of them can forget. A partition without
// its record is left of a deletion only if there is a note of that; else Redis has forgotten the record, and the
// messages stay for the record that is created next.

// keepDeletions is how long a note of a deletion is kept. What it left goes with the next look at all entities, or when
// its server is back.
const keepDeletions = 30 * 24 * time.Hour

// notedDeletion are the keys of the note of a deletion, of an entity with partitions or of a subscription of such a
// topic. It lies beside the record, or the definition, so that a Redis that comes back older has both as they were.
type notedDeletion struct {
	tag         string
	incarnation int64
}

func (k notedDeletion) parts(name string) (prefix, rest string) {
	if name != "deletion" {
		return "", ""
	}
	return k.tag, "deleted/" + strconv.FormatInt(k.incarnation, 36)
}

func (s *Store) notedDeletion(path string, incarnation int64) notedDeletion {
	return notedDeletion{tagOf(s.namespace, path), incarnation}
}

// NoteDeletion implements partitioned.Records.
func (s *Store) NoteDeletion(ctx context.Context, path string, incarnation int64) error {
	_, err := s.run(
		anyHistory(ctx), "note_deletion", s.notedDeletion(path, incarnation), keepDeletions.Milliseconds(),
	)
	return err
}

// IsDeletionNoted implements partitioned.Records.
func (s *Store) IsDeletionNoted(ctx context.Context, path string, incarnation int64) (bool, error) {
	prefix, rest := s.notedDeletion(path, incarnation).parts("deletion")
	noted := redis.NewIntCmd(ctx, "exists", prefix+rest)
	if err := s.redis(ctx).Process(ctx, noted); err != nil {
		return false, storeError(err, false)
	}
	return noted.Val() > 0, nil
}

// IsForgotten implements partitioned.Records.
func (s *Store) IsForgotten(ctx context.Context, path string, incarnation int64) (bool, error) {
	ctx = anyHistory(ctx)
	switch _, err := s.anyEntity(ctx, path); {
	case err == nil: // it was deleted, and another one created
		return false, nil
	case semantics.CodeOf(err) != semantics.EntityNotFound:
		return false, err
	}
	if isDeleted, err := s.IsDeletionNoted(ctx, path, incarnation); err != nil || isDeleted {
		return false, err
	}
	for name, err := range s.hiddenOf(ctx, path) {
		if err != nil {
			return false, err
		}
		if _, of, _ := semantics.SplitPartition(name); of != incarnation {
			continue
		}
		if _, _, err := s.anyPartition(ctx, name); semantics.CodeOf(err) != semantics.EntityNotFound {
			return err == nil, err
		}
	}
	return false, nil
}

// forgetOrphan deletes a partition, or a definition, whose entity was deleted, and reports whether it has none.
func (s *Store) forgetOrphan(ctx context.Context, kind semantics.Kind, name string) (isOrphan bool, err error) {
	isOrphan, isDeleted, err := s.isOrphan(ctx, name)
	switch {
	case err != nil || !isOrphan:
		return isOrphan, err
	case !isDeleted:
		return true, semantics.Errorf(
			semantics.Internal, "Redis has forgotten %s %q, but not this partition, which stays; "+
				"create the %s again with the same options", kind, semantics.WholePath(name), kind,
		)
	default:
		return true, s.DeleteForGood(ctx, kind, name)
	}
}

// isOrphan reports whether a partition or a definition has no entity, and whether that was deleted; else Redis has
// forgotten its record. The record of an entity is created before its partitions and deleted before them, and no other
// one has its incarnation.
func (s *Store) isOrphan(ctx context.Context, name string) (isOrphan, isDeleted bool, err error) {
	of, incarnation, _ := semantics.SplitPartition(name)
	entity, err := s.anyEntity(ctx, of)
	switch {
	case err == nil && entity.Incarnation == incarnation:
		return false, false, nil
	case err != nil && semantics.CodeOf(err) != semantics.EntityNotFound:
		return false, false, err
	}
	isDeleted, err = s.IsDeletionNoted(ctx, of, incarnation)
	return err == nil, isDeleted, err
}

// incarnationOf returns the incarnation with which an entity is created: a new one, or that of its partitions if Redis
// has forgotten its record, so that it has its messages again.
func (s *Store) incarnationOf(
	ctx context.Context, kind semantics.Kind, path string, partitions int64,
) (int64, error) {
	if partitions <= 1 {
		return newMark(), nil
	}
	if entity, err := s.anyEntity(ctx, path); err == nil {
		return entity.Incarnation, nil // the script finds it too
	}
	names, err := s.partitionsLike(ctx, path, int(partitions))
	if err != nil {
		return 0, err
	}
	for _, name := range names {
		_, incarnation, _ := semantics.SplitPartition(name)
		isDeleted, err := s.IsDeletionNoted(ctx, path, incarnation)
		if err != nil {
			return 0, err
		}
		if part, _, err := s.anyPartition(ctx, name); err == nil && part.Kind == kind && !isDeleted {
			return incarnation, nil
		} else if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
			return 0, err
		}
	}
	return newMark(), nil
}

// partitionsLike returns the names of partitions that a name has or had, without those of an incarnation with another
// number of partitions: of that some partition lies elsewhere.
func (s *Store) partitionsLike(ctx context.Context, path string, partitions int) ([]string, error) {
	var names []string
	isOther := map[int64]bool{}
	for name, err := range s.hiddenOf(ctx, path) {
		if err != nil {
			return nil, err
		}
		_, incarnation, _ := semantics.SplitPartition(name)
		switch slot, of := s.Slot(name); semantics.PartitionIn(name) {
		case -1: // a definition
		case slot * partitions / of:
			names = append(names, name)
		default:
			isOther[incarnation] = true
		}
	}
	return slices.DeleteFunc(names, func(name string) bool {
		_, incarnation, _ := semantics.SplitPartition(name)
		return isOther[incarnation]
	}), nil
}
