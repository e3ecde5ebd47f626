// Package partitioned spreads queues over partitions (PART-1). It is a semantics.Store over another one: of a queue
// with several partitions the one below keeps a record with its options, and each partition as a queue of its own,
// under a path that no client can name. Which partition a call goes to, and how the answers of several become one, is
// decided here; every promise is kept by the store below, in one partition. Other entities are passed on as they are.
//
// What a Store knows of a queue, its partitions, never changes as long as the queue exists, and their paths never come
// back after it. So a call needs no look at the record, and one that goes to a queue that was deleted finds nothing
// there: then the record is read again. See docs/decisions/0042.
package partitioned

import (
	"context"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// Store is a semantics.Store with partitioned queues. It is safe for concurrent use. Make one with New; there is
// nothing to close.
type Store struct {
	semantics.Store // for all that does not concern queues with several partitions

	placing placer // nil: partitions may lie anywhere
	noting  noter  // nil: no part is forgotten
	away    away

	mu      sync.Mutex
	known   map[string]*whole             // by folded path
	watches map[semantics.Source][]*watch // open ones, of folded sources
}

// placer is a Store that lays entities into slots, which several servers share.
type placer interface {
	// Slot returns the slot of the entity with that path, below of. It never changes.
	Slot(path string) (slot, of int)
	// Server returns the server that has the entity with that path now, or something equal for all whose server is not
	// known. It may be compared.
	Server(ctx context.Context, path string) any
}

// noter is a Store in which a record can be forgotten while the partitions are not. What a deletion leaves it deletes
// only if the deletion was noted.
type noter interface {
	NoteDeletion(ctx context.Context, entity semantics.Entity) error
}

// NoteDeletion notes that a queue with partitions is about to be deleted, in the store below if that keeps such notes,
// so that a Store over this one can.
func (s *Store) NoteDeletion(ctx context.Context, entity semantics.Entity) error {
	if s.noting == nil {
		return nil
	}
	return s.noting.NoteDeletion(ctx, entity)
}

var _ semantics.Store = (*Store)(nil)

// mostKnown bounds the queues that a Store remembers. One that it has dropped is looked up again.
const mostKnown = 10_000

// New makes a Store over another one.
func New(below semantics.Store) *Store {
	s := &Store{
		Store: below, away: away{servers: map[any]*absence{}},
		known: map[string]*whole{}, watches: map[semantics.Source][]*watch{},
	}
	s.placing, _ = below.(placer)
	s.noting, _ = below.(noter)
	return s
}

// mostLooks bounds how often a call looks again at an entity that changes all the time.
const mostLooks = 4

// on runs a call on the entity of a path: with one partition, or with several. If it finds nothing, which means that it
// has done nothing, it is run again by what the entity is now.
func (s *Store) on(ctx context.Context, path string, one func() error, several func(*whole) error) error {
	w := s.remembered(path)
	for look := 1; ; look++ {
		var err error
		if w == nil {
			err = one()
		} else {
			err = named(several(w))
		}
		if semantics.CodeOf(err) != semantics.EntityNotFound || look == mostLooks {
			return err
		}
		now, changed, failed := s.look(ctx, path, w)
		if failed != nil {
			return failed
		}
		if !changed {
			return err
		}
		w = now
	}
}

// onEach runs several calls on the entity of a path. run gets their places, and nil for an entity with one partition.
// Those that failed because they found nothing are run again, as by on.
func (s *Store) onEach(
	ctx context.Context, path string, calls int, run func(w *whole, places []int), failure func(place int) *error,
) {
	left := make([]int, calls)
	for i := range left {
		left[i] = i
	}
	missed := func(w *whole) (err error) {
		run(w, left)
		left = slices.DeleteFunc(left, func(i int) bool {
			failed := *failure(i)
			isMissed := semantics.CodeOf(failed) == semantics.EntityNotFound
			if isMissed {
				err = failed
			}
			return !isMissed
		})
		return err
	}
	failed := s.on(ctx, path, func() error { return missed(nil) }, missed)
	for _, i := range left {
		*failure(i) = failed
	}
}

// inOne runs the part of a call that concerns one partition of a queue. If the partition is missing it is created, and
// the part is run again. So the call fails with ENTITY_NOT_FOUND only if the queue is gone, and is not run again in
// partitions in which it had an effect.
func (s *Store) inOne(ctx context.Context, w *whole, do func() error) error {
	for look := 1; ; look++ {
		err := do()
		if semantics.CodeOf(err) != semantics.EntityNotFound || look == mostLooks {
			return err
		}
		entity, err := s.Store.GetEntity(ctx, semantics.QueueKind, w.name)
		if err == nil && entity.Incarnation != w.incarnation {
			err = semantics.NotFound(w.name)
		}
		if err == nil {
			err = s.complete(unpinned{ctx}, entity, w)
		}
		if err != nil {
			return err
		}
	}
}

func (s *Store) remembered(path string) *whole {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known[semantics.Fold(path)]
}

// look reads what an entity is, after a call found nothing by what was known of it. changed reports whether the call is
// worth another try.
func (s *Store) look(ctx context.Context, path string, had *whole) (now *whole, changed bool, err error) {
	ctx = unpinned{ctx}
	entity, err := s.Store.GetEntity(ctx, semantics.QueueKind, path)
	switch {
	case semantics.CodeOf(err) == semantics.EntityNotFound, err == nil && entity.Options.Partitions <= 1:
		s.forget(ctx, path)
		return nil, had != nil, nil
	case err != nil:
		return nil, false, err
	case had != nil && had.incarnation == entity.Incarnation: // it is being created, or its creation did not end
		return had, true, s.complete(ctx, entity, had)
	default:
		return s.remember(ctx, entity), true, nil
	}
}

// remember notes what is known of a queue, and lets those that wait on it wait on its present partitions.
func (s *Store) remember(ctx context.Context, entity semantics.Entity) *whole {
	folded := semantics.Fold(entity.Name)
	s.mu.Lock()
	w := s.known[folded]
	if w == nil || w.incarnation != entity.Incarnation {
		w = s.wholeOf(entity)
		if _, has := s.known[folded]; !has && len(s.known) >= mostKnown {
			for other := range s.known {
				delete(s.known, other)
				break
			}
		}
		s.known[folded] = w
	}
	s.mu.Unlock()
	s.watchAgain(ctx, folded, w)
	return w
}

func (s *Store) forget(ctx context.Context, path string) {
	folded := semantics.Fold(path)
	s.mu.Lock()
	_, had := s.known[folded]
	delete(s.known, folded)
	s.mu.Unlock()
	if had {
		s.watchAgain(ctx, folded, nil)
	}
}

// Path returns the path under which the store below keeps a partition of a queue that this Store has used, "" if it knows
// no such queue. For tests.
func (s *Store) Path(queue string, partition int) string {
	if w := s.remembered(queue); w != nil && partition < len(w.paths) {
		return w.paths[partition]
	}
	return ""
}
