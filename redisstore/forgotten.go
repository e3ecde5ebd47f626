package redisstore

import (
	"context"
	"strconv"
	"strings"
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

// deletionKey returns the key that notes the deletion of an entity with partitions, or of a subscription of such a
// topic. It lies beside the record, so that a Redis that comes back older has both as they were.
func (s *Store) deletionKey(path string, incarnation int64) string {
	return tagOf(s.namespace, path) + "deleted/" + strconv.FormatInt(incarnation, 36)
}

// NoteDeletion implements partitioned.Places. A Redis that is full does not keep the note, and lets the deletion go on:
// then what it leaves when it fails stays.
func (s *Store) NoteDeletion(ctx context.Context, path string, incarnation int64) error {
	key := s.deletionKey(path, incarnation)
	note := redis.NewStatusCmd(ctx, "set", key, "", "ex", int64(keepDeletions/time.Second))
	if err := s.redis(ctx).Process(ctx, note); err != nil && !redis.HasErrorPrefix(err, "OOM") {
		return storeError(err, false) // the note alone changes nothing
	}
	return nil
}

// IsDeletionNoted implements partitioned.Places.
func (s *Store) IsDeletionNoted(ctx context.Context, path string, incarnation int64) (bool, error) {
	noted := redis.NewIntCmd(ctx, "exists", s.deletionKey(path, incarnation))
	if err := s.redis(ctx).Process(ctx, noted); err != nil {
		return false, storeError(err, false)
	}
	return noted.Val() > 0, nil
}

// forgetOrphan deletes a partition, or a definition, whose entity was deleted, and reports whether it has none. The
// record of an entity is created before its partitions and deleted before them, and no other one has its incarnation.
func (s *Store) forgetOrphan(ctx context.Context, kind semantics.Kind, name string) (isOrphan bool, err error) {
	of, incarnation, _ := semantics.SplitPartition(name)
	entity, err := s.anyEntity(ctx, of)
	switch {
	case err == nil && entity.Incarnation == incarnation:
		return false, nil
	case err != nil && semantics.CodeOf(err) != semantics.EntityNotFound:
		return false, err
	}
	isDeleted, err := s.IsDeletionNoted(ctx, of, incarnation)
	switch {
	case err != nil:
		return true, err
	case !isDeleted:
		return true, semantics.Errorf(
			semantics.Internal, "Redis has forgotten %s %q, but not this partition, which stays; "+
				"create the %s again with the same options", kind, of, kind,
		)
	}
	err = s.deleteEntity(ctx, kind, name, asked)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		err = nil
	}
	return true, err
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
	prefix := semantics.Fold(path) + "#"
	for after := prefix; ; {
		names, err := s.listNames(ctx, after, semantics.MaxPageSize)
		if err != nil {
			return 0, err
		}
		for _, name := range names {
			_, incarnation, is := semantics.SplitPartition(name)
			if !is || !strings.HasPrefix(name, prefix) {
				return newMark(), nil
			}
			slot, of := s.Slot(name)
			if slot*int(partitions)/of != semantics.PartitionIn(name) {
				continue // it had another number of partitions
			}
			isDeleted, err := s.IsDeletionNoted(ctx, path, incarnation)
			if err != nil {
				return 0, err
			}
			if part, err := s.anyEntity(ctx, name); err == nil && part.Kind == kind && !isDeleted {
				return incarnation, nil
			} else if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
				return 0, err
			}
		}
		if len(names) < semantics.MaxPageSize {
			return newMark(), nil
		}
		after = names[len(names)-1]
	}
}
