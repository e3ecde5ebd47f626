package redisstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// removalGrace is for how long a sweeper removes nothing after its start, and after an outage: in that time every
// sidecar that waits for messages has told again that it does (semantics.NoteEvery). Else what nobody could use would
// be taken for what nobody wants.
const removalGrace = semantics.NoteEvery + 10*time.Second

// inUse is why an entity is not removed although it looked unused.
type inUse struct {
	until int64 // when to look again (ms), 0 = when sweep says so
}

func (inUse) Error() string { return "the entity is in use" }

// stillInUse reads the answer of a script that was to delete what is unused.
func stillInUse(r *reply) error {
	used := inUse{until: r.number()}
	if err := r.failure(); err != nil {
		return err
	}
	return used
}

// NoteUse implements semantics.Receiver. Who is not temporary needs no stamp, which spares most queues one more script.
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

// temporaryOf leaves those entities that are removed when nobody uses them, or whose topic is.
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

// alarmUnused sees to it that a sweeper comes to an entity that was made or updated when it may be removed as unused.
func (s *Store) alarmUnused(ctx context.Context, e semantics.Entity) {
	if span := e.Options.AutoDeleteOnIdle; span != semantics.Never {
		s.setAlarms(ctx, alarm{name: semantics.Fold(e.Name), at: e.AccessedAt.UnixMilli() + span.Milliseconds()})
	}
}

// mayRemove says whether the sweeper has been at work for long enough to remove what is unused.
func (s *Store) mayRemove() bool { return time.Now().UnixNano() >= s.removesFrom.Load() }

// holdRemovals lets the sweeper remove nothing for a while.
func (s *Store) holdRemovals() {
	s.removesFrom.Store(time.Now().Add(or(s.options.RemovalGrace, removalGrace)).UnixNano())
}

// removeUnused removes an entity that a sweep found unused. If somebody uses it after all, next is when to look again,
// or again says that the sweep will tell.
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
	case semantics.CodeOf(err) == semantics.EntityNotFound: // somebody was faster
		return 0, false, nil
	default:
		return 0, false, err
	}
}

// tellRemoved tells of an entity that was removed because nobody used it.
func (s *Store) tellRemoved(kind semantics.Kind, path string, why deletion) {
	if why == unused && s.options.Removed != nil {
		s.options.Removed(kind, path)
	}
}
