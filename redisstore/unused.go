package redisstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// removalGrace is how long a sweeper removes nothing after its start and after an outage. In that time every sidecar
// that waits for messages has stamped its use again (semantics.NoteEvery). Otherwise an entity that could not be used
// would count as idle.
const removalGrace = semantics.NoteEvery + 10*time.Second

// inUse is the error of a removal of an entity that was used meanwhile.
type inUse struct {
	until int64 // when to look again (ms), 0 = when sweep says so
}

func (inUse) Error() string { return "the entity is in use" }

// stillInUse reads the answer of a script that did not delete because the entity is in use.
func stillInUse(r *reply) error {
	used := inUse{until: r.number()}
	if err := r.failure(); err != nil {
		return err
	}
	return used
}

// NoteUse implements semantics.Receiver. An entity without AutoDeleteOnIdle needs no stamp, which saves most queues a
// script.
func (s *Store) NoteUse(ctx context.Context, uses []semantics.Use) error {
	temporary, err := s.temporaryOf(ctx, uses)
	if err != nil {
		return err
	}
	for _, use := range temporary {
		if _, err := s.run(ctx, "note_use", s.keys(use.Path), s.now(), use.Ago.Milliseconds()); err != nil {
			return err
		}
	}
	return nil
}

// temporaryOf returns those of the entities that are deleted when idle, or whose topic is.
func (s *Store) temporaryOf(ctx context.Context, uses []semantics.Use) ([]semantics.Use, error) {
	reads := make([][]*redis.StringCmd, len(uses))
	_, err := s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, use := range uses {
			keys := s.keys(use.Path)
			reads[i] = append(reads[i], p.HGet(ctx, keys.key("entity"), "idle_ms"))
			if keys.owner != keys.tag {
				reads[i] = append(reads[i], p.HGet(ctx, keys.key("owner"), "idle_ms"))
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, storeError(err, false)
	}
	var temporary []semantics.Use
	for i, use := range uses {
		for _, read := range reads[i] {
			if ms, err := strconv.ParseInt(read.Val(), 10, 64); err == nil && ms >= 0 {
				temporary = append(temporary, use)
				break
			}
		}
	}
	return temporary, nil
}

// alarmUnused sets the alarm of an entity that was created or updated to when it may be deleted as idle.
func (s *Store) alarmUnused(ctx context.Context, e semantics.Entity) {
	if span := e.Options.AutoDeleteOnIdle; span != semantics.Never {
		s.setAlarms(ctx, alarm{name: semantics.Fold(e.Name), at: e.AccessedAt.UnixMilli() + span.Milliseconds()})
	}
}

// mayRemove reports whether the sweeper has run for long enough to remove idle entities.
func (s *Store) mayRemove() bool { return time.Now().UnixNano() >= s.removesFrom.Load() }

// holdRemovals keeps the sweeper from removing anything for the grace period.
func (s *Store) holdRemovals() {
	s.removesFrom.Store(time.Now().Add(or(s.options.RemovalGrace, removalGrace)).UnixNano())
}

// removeUnused deletes an entity that a sweep found idle. If it was used meanwhile, next is when to look again (ms);
// again reports that another sweep must find out.
func (s *Store) removeUnused(ctx context.Context, name string, isTopic bool) (next int64, again bool, err error) {
	kind := semantics.QueueKind
	if isTopic {
		kind = semantics.TopicKind
	}
	err = s.deleteEntity(ctx, kindOf(kind, name), name, unused)
	var used inUse
	switch {
	case errors.As(err, &used):
		return used.until, used.until == 0, nil
	case semantics.CodeOf(err) == semantics.EntityNotFound: // another call has deleted it
		return 0, false, nil
	default:
		return 0, false, err
	}
}

// removeUnusedWhole deletes an entity with several partitions that is idle as far as its record knows.
func (w *sweeper) removeUnusedWhole(ctx context.Context, name string) (sweptEntity, error) {
	if !w.mayRemove() {
		return sweptEntity{found: true, rest: sweepPause}, nil
	}
	wait, err := w.upkeep.RemoveUnused(ctx, name)
	return sweptEntity{found: true, rest: wait}, err
}

// reportRemoved calls Options.Removed for an entity that was deleted when idle.
func (s *Store) reportRemoved(kind semantics.Kind, path string, why deletion) {
	if why == unused && s.options.Removed != nil {
		s.options.Removed(kind, path)
	}
}
