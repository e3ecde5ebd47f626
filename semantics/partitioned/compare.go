package partitioned

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// The place of a partition may forget a change that was acknowledged, while that of the record remembers it: that the
// entity was deleted, or its rules, subscriptions or options. What a sidecar knows from before then fits to what the
// partition has, and neither shows that both are wrong. So the store below has a partition compared with its record
// before anything is done in another history of its place than that of the last comparison (DUR-4, decision 0054).

// compare compares a partition or a definition with its record, and completes what it lacks. ENTITY_NOT_FOUND if it is
// not one of an entity any more.
//
// The name of the history is read before the record, and noted only if it is still the same. Every change is made in
// the record before it reaches the partition. So a change that the partition forgot before this history began is in
// what was read, and one that was not yet made then reaches the partition in this history.
func (s *Store) compare(ctx context.Context, path string) error {
	err := s.compareUntilPresent(ctx, path)
	switch place := uncompared(semantics.Fold(path)); semantics.CodeOf(err) { //nolint:exhaustive // what was found
	case semantics.StoreUnavailable:
		s.away.add(place)
	case semantics.Cancelled:
	default:
		s.away.remove(place)
	}
	return err
}

func (s *Store) compareUntilPresent(ctx context.Context, path string) error {
	for look := 1; ; look++ {
		history, isCompared, err := s.below.History(ctx, path)
		if err != nil || isCompared {
			return err
		}
		if err := s.compareNow(ctx, path); err != nil {
			return err
		}
		isPresent, err := s.below.NoteCompared(ctx, path, history)
		if err != nil || isPresent {
			return err
		}
		if look == mostLooks {
			return semantics.Errorf(
				semantics.StoreUnavailable, "the server of a partition changes all the time; nothing was changed",
			)
		}
	}
}

func (s *Store) compareNow(ctx context.Context, path string) error {
	name := semantics.WholePath(path)
	found, err := s.findForComparison(ctx, name)
	if err != nil {
		return err
	}
	p := found.placeOf(path)
	switch {
	case p >= 0:
		// It may have forgotten that a removal has suspended it.
		if err := s.below.CancelRemoval(ctx, found.name, found.incarnation, anyRemoval); err != nil {
			return err
		}
		return s.levelAllOf(ctx, found, p)
	case found != nil && semantics.Fold(found.definition) == semantics.Fold(path):
		return nil
	default:
		return semantics.NotFound(name)
	}
}

// lookPatience is how long a comparison waits for a look at a server that did not answer the last one.
const lookPatience = 500 * time.Millisecond

var errRecordAway = &semantics.Error{
	Code: semantics.StoreUnavailable, RetryAfter: lookEvery, Message: "a partition is to be compared with its record, " +
		"whose server does not answer; nothing was changed",
}

// findForComparison is find. If the server of the record does not answer, only the comparison that finds out waits for
// it. From then on it is looked at once a second, and comparisons fail at once: all partitions of an entity may have to
// be compared.
func (s *Store) findForComparison(ctx context.Context, name string) (*whole, error) {
	isAway, isDue := s.away.has(s.below.Server(ctx, name))
	switch {
	case !isAway:
		return s.findRecord(ctx, name)
	case !isDue:
		return nil, errRecordAway
	}
	var found *whole
	var err error
	looked := make(chan struct{})
	go func() {
		defer close(looked)
		found, err = s.findRecord(context.WithoutCancel(ctx), name)
		s.away.looked(s.below.Server(ctx, name))
	}()
	late := time.NewTimer(lookPatience)
	defer late.Stop()
	select {
	case <-looked:
		return found, err
	case <-late.C:
		return nil, errRecordAway
	}
}

// findRecord is find, and notes whether the server of the record answered.
func (s *Store) findRecord(ctx context.Context, name string) (*whole, error) {
	found, err := s.find(ctx, name)
	s.note(ctx, name, err)
	return found, err
}
