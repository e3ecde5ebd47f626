package partitioned

import (
	"context"
	"errors"

	"github.com/sidebus/sidebus/semantics"
)

// levelAll lets all partitions of a topic follow its definition.
func (s *Store) levelAll(ctx context.Context, w *whole) error {
	return w.withEach(func(p int) error { return s.level(ctx, w, p) })
}

// level lets a partition of a topic follow its definition: it creates the subscriptions that it misses, deletes those
// that it has left, and then takes the version of the definition, in this order. So copies that were decided by that
// version find the subscriptions that they are for, and copies that were decided by another one are refused.
//
// Any number of sidecars may level a partition at once, and be late or killed. What was read of the partition comes
// before what was read of the definition, and the version is set only if the partition is still as it was read. So a
// version that the definition does not have any more never comes back, and all that a sidecar creates or deletes in a
// partition makes the others look again. ENTITY_NOT_FOUND if the partition or the definition is not there.
func (s *Store) level(ctx context.Context, w *whole, p int) error {
	for {
		has, err := s.Store.Roster(ctx, w.paths[p])
		if err != nil {
			return err
		}
		wants, err := s.Store.Roster(ctx, w.definition)
		if err != nil || wants.Version == has.Version {
			return err
		}
		isLevel, err := s.levelSubscriptions(ctx, w, p, has, wants)
		if err != nil {
			return err
		}
		if !isLevel {
			continue // what it has now is to be read before what it is to have
		}
		err = s.Store.SetVersion(ctx, w.paths[p], has.Version, wants.Version)
		if !errors.Is(err, semantics.ErrRoutesChanged) {
			return err
		}
	}
}

// levelSubscriptions deletes and creates subscriptions of a partition, and reports whether there was nothing to do.
func (s *Store) levelSubscriptions(
	ctx context.Context, w *whole, p int, has, wants semantics.Routes,
) (isLevel bool, err error) {
	present, wanted := map[string]bool{}, map[string]bool{}
	for _, route := range has.Subscriptions {
		present[route.Subscription] = true
	}
	for i := range wants.Subscriptions {
		route := &wants.Subscriptions[i]
		route.Subscription = semantics.NameInPartition(route.Subscription, route.Incarnation)
		wanted[route.Subscription] = true
	}
	isLevel = true
	if wants.KeepsUnmatched && !has.KeepsUnmatched { // it may have forgotten that
		isLevel = false
		if err := s.keepUnmatched(ctx, w, p); err != nil {
			return false, err
		}
	}
	for _, route := range has.Subscriptions {
		if wanted[route.Subscription] {
			continue
		}
		if isDeleted, err := s.isDeleted(ctx, w, route.Subscription); err != nil {
			return false, err
		} else if !isDeleted {
			continue // the definition has forgotten it: what it holds stays
		}
		isLevel = false
		path := semantics.SubscriptionPath(w.paths[p], route.Subscription)
		if err := unlessGone(s.Store.DeleteEntity(ctx, semantics.SubscriptionKind, path)); err != nil {
			return false, err
		}
	}
	for _, route := range wants.Subscriptions {
		if present[route.Subscription] {
			continue
		}
		isLevel = false
		if err := s.createInPartition(ctx, w, p, route); err != nil {
			return false, err
		}
	}
	return isLevel, nil
}

// keepUnmatched lets a partition keep what no subscription gets, as the definition does.
func (s *Store) keepUnmatched(ctx context.Context, w *whole, p int) error {
	entity, err := s.Store.GetEntity(ctx, semantics.TopicKind, w.definition)
	if err != nil {
		return err
	}
	_, err = s.Store.UpdateEntity(ctx, semantics.TopicKind, w.paths[p], entity.Options, []string{"unmatchedTo"})
	return err
}

// isDeleted reports whether a subscription that a partition has and the definition has not was deleted.
func (s *Store) isDeleted(ctx context.Context, w *whole, inPartition string) (bool, error) {
	_, incarnation, _ := semantics.SplitPartition(inPartition)
	return s.below.IsDeletionNoted(ctx, w.definition, incarnation)
}

// createInPartition creates a subscription of the definition in a partition, unless the definition has it no more. If
// its options change meanwhile it gets the new ones.
func (s *Store) createInPartition(ctx context.Context, w *whole, p int, route semantics.Route) error {
	name := semantics.WholePath(route.Subscription)
	entity, err := s.Store.GetEntity(ctx, semantics.SubscriptionKind, w.defined(name))
	if semantics.CodeOf(err) == semantics.EntityNotFound || err == nil && entity.Incarnation != route.Incarnation {
		return nil
	}
	if err != nil {
		return err
	}
	sub := w.subscription(entity)
	share := sub.shareOf(entity.Options)
	if _, _, err := s.Store.CreateSubscription(ctx, sub.paths[p], share, nil); err != nil {
		return err
	}
	present, err := s.recordOf(ctx, sub)
	if err != nil {
		return unlessGone(err)
	}
	return s.updatePartitions(ctx, sub, []int{p}, sub.shareOf(present.Options), sub.changed(share, present.Options))
}

// Level implements semantics.Upkeep. The path of a partition that its entity has no more, or of a definition, has
// nothing to do.
func (s *Store) Level(ctx context.Context, partition string) error {
	return s.onPartition(ctx, partition, func(w *whole, p int) error { return s.levelAllOf(ctx, w, p) })
}

// levelAllOf completes all changes of an entity that did not reach a partition, or that its server has forgotten.
func (s *Store) levelAllOf(ctx context.Context, w *whole, p int) error {
	if err := s.levelOptions(ctx, w, p); err != nil || w.definition == "" {
		return err
	}
	if err := s.level(ctx, w, p); err != nil {
		return err
	}
	return s.levelOptionsOfAll(ctx, w, p)
}

// onPartition runs a call on the partition of an entity that has a path. Without such a partition it does nothing.
func (s *Store) onPartition(ctx context.Context, path string, do func(w *whole, p int) error) error {
	topic := semantics.WholePath(path)
	w := s.remembered(topic)
	if w.placeOf(path) < 0 {
		found, err := s.find(ctx, topic)
		if err != nil || found.placeOf(path) < 0 {
			return err
		}
		w = s.remember(ctx, found)
	}
	p := w.placeOf(path)
	return named(inPartition(do(w, p), p))
}
