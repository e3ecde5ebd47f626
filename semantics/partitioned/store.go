// Package partitioned spreads queues and topics over partitions (PART-1). It is a semantics.Store over another one: of
// an entity with several partitions the one below keeps a record with its options, and each partition as a queue or
// topic of its own, under a path that no client can name. Which partition a call goes to, and how the answers of
// several become one, is decided here; every promise is kept by the store below, in one partition. Other entities are
// passed on as they are.
//
// What a Store knows of an entity, its partitions, never changes as long as the entity exists, and their paths never
// come back after it. So a call needs no look at the record, and one that goes to an entity that was deleted finds
// nothing there: then the record is read again.
//
// A topic with several partitions also has a definition: a topic without messages that has its subscriptions and rules.
// See topics.go, and docs/decisions/0042 and 0048.
package partitioned

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// Store is a semantics.Store with partitioned queues and topics. It is safe for concurrent use. Make one with New;
// there is nothing to close.
type Store struct {
	semantics.Store // for all that does not concern entities with several partitions

	below Below // the same, with what is needed for those
	away  away

	mu      sync.Mutex
	known   map[string]*whole             // by folded path
	watches map[semantics.Source][]*watch // open ones, of folded sources
}

// Below is a Store whose entities can be the partitions of others. What wraps such a Store embeds it as one. Calls that
// are not those of Places or Records do not find a record, except GetEntity, UpdateEntity and ListEntities; it only
// takes the name.
type Below interface {
	semantics.Store
	Places
	Records
	Removals
	Histories
}

// Places is what a Store knows of where it keeps entities.
type Places interface {
	// Slot returns the slot of the entity with that path, below of. Several servers share the slots; of is 1 if there
	// is one place only. It never changes.
	Slot(path string) (slot, of int)
	// Server returns the server that has the entity with that path now, or something equal for all whose server is not
	// known. It may be compared.
	Server(ctx context.Context, path string) any
}

// Records are those of entities with several partitions. A Store may lose one while it has the partitions.
type Records interface {
	// NoteDeletion notes that an entity with several partitions, or a subscription of such a topic, is about to be
	// deleted: the name of the entity, or the path of the topic's definition, and the incarnation of what goes.
	NoteDeletion(ctx context.Context, name string, incarnation int64) error
	// IsDeletionNoted reports whether something without a record was deleted. If not, its record may have been lost,
	// and what it holds stays.
	IsDeletionNoted(ctx context.Context, name string, incarnation int64) (bool, error)
	// IsForgotten reports whether the record of an entity was lost: partitions are there, but nothing has the name, and
	// no deletion is noted.
	IsForgotten(ctx context.Context, name string, incarnation int64) (bool, error)
	// DeleteRecord deletes the record of an entity, or a subscription in the definition of its topic, if it is still
	// the one of that incarnation. ENTITY_NOT_FOUND if not: then it completes what earlier deletions of the name have
	// left, as DeleteEntity does.
	DeleteRecord(ctx context.Context, kind semantics.Kind, path string, incarnation int64) error
	// DeleteForGood deletes a partition or a definition if it exists, and lets none be created under its path any more:
	// that is ENTITY_NOT_FOUND. A creation that was under way when the entity was deleted leaves nothing behind.
	DeleteForGood(ctx context.Context, kind semantics.Kind, path string) error
}

// Histories are those of the places that forget each for itself, such as the servers of a cluster: one may forget a
// change that another one, with the record, remembers. What such a place has done since it last may have forgotten
// something is its history.
type Histories interface {
	// ComparedBy passes what compares a partition or a definition with its record. From then on the Store calls it
	// before a call does anything in one that was not compared in the present history, and fails the call as it fails.
	ComparedBy(compare func(ctx context.Context, path string) error)
	// Compare does so now, if it was not done in the present history.
	Compare(ctx context.Context, path string) error
	// History returns what the present history of a partition or definition is called, and whether it was compared in
	// it. ENTITY_NOT_FOUND.
	History(ctx context.Context, path string) (name string, isCompared bool, err error)
	// NoteCompared notes that it was compared with what was read since this was the present history, and reports
	// whether it still is: else nothing was done. ENTITY_NOT_FOUND.
	NoteCompared(ctx context.Context, path, history string) (isPresent bool, err error)
}

var _ semantics.Store = (*Store)(nil)

// mostKnown bounds the queues, topics and subscriptions that a Store remembers. One that it has dropped is looked up
// again.
const mostKnown = 10_000

// New makes a Store over another one.
func New(below Below) *Store {
	s := &Store{
		Store: below, below: below, away: away{servers: map[any]*absence{}},
		known: map[string]*whole{}, watches: map[semantics.Source][]*watch{},
	}
	below.ComparedBy(s.compare)
	return s
}

// mostLooks bounds how often a call looks again at an entity that changes all the time.
const mostLooks = 4

// on runs a call on the entity of a path: with one partition, or with several. If it finds nothing, which means that it
// has done nothing, or is refused by what is remembered, it is run again by what the entity is now.
func (s *Store) on(ctx context.Context, path string, one func() error, several func(*whole) error) error {
	w := s.remembered(path)
	completed := false
	for look := 1; ; look++ {
		var err error
		if w == nil {
			err = one()
		} else {
			err = several(w)
		}
		refusal, isSupposed := supposedIn(err)
		if isSupposed {
			err = refusal
		}
		err = named(err)
		if !isSupposed && semantics.CodeOf(err) != semantics.EntityNotFound || look == mostLooks {
			return err
		}
		if isSupposed {
			now, isOther, failed := s.lookIfOther(ctx, path, w)
			if failed != nil || !isOther {
				return cmp.Or(failed, err)
			}
			w = now
			continue
		}
		now, changed, failed := s.look(ctx, path, w)
		if failed != nil {
			return failed
		}
		if !changed || completed {
			return err
		}
		completed = now != nil && now == w
		w = now
	}
}

// onEach runs several calls on the entity of a path. run gets their places, and nil for an entity with one partition.
// Those that found nothing, or were refused by what is remembered, are run again, as by on.
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
			_, isSupposed := supposedIn(failed)
			if isMissed || isSupposed && err == nil {
				err = failed
			}
			return !isMissed && !isSupposed
		})
		return err
	}
	failed := s.on(ctx, path, func() error { return missed(nil) }, missed)
	for _, i := range left {
		refusal, isSupposed := supposedIn(*failure(i))
		if isSupposed && semantics.CodeOf(failed) != semantics.StoreUnavailable {
			*failure(i) = refusal
		} else {
			*failure(i) = failed
		}
	}
}

// inOne runs the part of a call that concerns one partition of an entity. If the partition is missing it is created,
// and the part is run again. So the call fails with ENTITY_NOT_FOUND only if the queue is gone, and is not run again in
// partitions in which it had an effect.
func (s *Store) inOne(ctx context.Context, w *whole, do func() error) error {
	for look := 1; ; look++ {
		err := do()
		if semantics.CodeOf(err) != semantics.EntityNotFound || look == mostLooks {
			return err
		}
		found, err := s.find(unpinned{ctx}, w.name)
		if err == nil && (found == nil || found.incarnation != w.incarnation) {
			err = semantics.NotFound(w.name)
		}
		if err == nil {
			err = s.complete(unpinned{ctx}, found)
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
	found, err := s.find(ctx, path)
	switch {
	case semantics.CodeOf(err) == semantics.EntityNotFound, err == nil && found == nil:
		s.forget(ctx, path)
		return nil, had != nil, nil
	case err != nil:
		return nil, false, err
	case had != nil && had.incarnation == found.incarnation: // it is being created, or its creation did not end
		err := s.complete(ctx, found)
		if semantics.CodeOf(err) == semantics.EntityNotFound { // it was deleted meanwhile: what is there now?
			return nil, true, nil
		}
		return had, true, err
	default:
		return s.remember(ctx, found), true, nil
	}
}

// find reads what is known of an entity with several partitions, nil if it has one. ENTITY_NOT_FOUND.
func (s *Store) find(ctx context.Context, path string) (*whole, error) {
	if topic, name, is := semantics.SplitSubscription(path); is {
		of, err := s.find(ctx, topic)
		if err != nil || of == nil || of.definition == "" {
			return nil, err
		}
		entity, err := s.Store.GetEntity(ctx, semantics.SubscriptionKind, of.defined(name))
		if err != nil {
			return nil, named(err)
		}
		return of.subscription(entity), nil
	}
	entity, err := s.Store.GetEntity(ctx, semantics.QueueKind, path)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		entity, err = s.Store.GetEntity(ctx, semantics.TopicKind, path)
	}
	if err != nil || !isSpread(entity) {
		return nil, err
	}
	return s.wholeOf(entity), nil
}

// remember notes what is known of an entity, and lets those that wait on it wait on its present partitions.
func (s *Store) remember(ctx context.Context, found *whole) *whole {
	folded := semantics.Fold(found.name)
	s.mu.Lock()
	w := s.known[folded]
	if w == nil || w.incarnation != found.incarnation {
		w = found
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

// supposed is a refusal that follows from what is remembered of an entity, and of which the entity was not asked. The
// entity may have been deleted and created again otherwise since.
type supposed struct{ refusal error }

func (s supposed) Error() string { return s.refusal.Error() }

func (s supposed) Unwrap() error { return s.refusal }

// supposedIn returns the refusal of a supposed one. If err is another error, is is false.
func supposedIn(err error) (refusal error, is bool) {
	one, is := err.(supposed) //nolint:errorlint // it is never wrapped
	return one.refusal, is
}

// lookIfOther reads what an entity is, after a call was refused by what was known of it. If it is the same, isOther is
// false.
func (s *Store) lookIfOther(ctx context.Context, path string, had *whole) (now *whole, isOther bool, err error) {
	ctx = unpinned{ctx}
	found, err := s.find(ctx, path)
	switch {
	case err != nil && semantics.CodeOf(err) != semantics.EntityNotFound:
		return nil, false, err
	case found == nil:
		s.forget(ctx, path)
		return nil, had != nil, nil
	case had != nil && had.incarnation == found.incarnation:
		return had, false, nil
	default:
		return s.remember(ctx, found), true, nil
	}
}

// Path returns the path under which the store below keeps a partition of an entity that this Store has used, "" if it
// knows no such entity. For tests.
func (s *Store) Path(entity string, partition int) string {
	if w := s.remembered(entity); w != nil && partition < len(w.paths) {
		return w.paths[partition]
	}
	return ""
}

// Definition returns the path under which the store below keeps the definition of a topic that this Store has used, ""
// if it knows no such topic. For tests.
func (s *Store) Definition(topic string) string {
	if w := s.remembered(topic); w != nil {
		return w.definition
	}
	return ""
}
