package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// levelOptions completes updates that did not reach a partition of an entity, or that its server has forgotten. What
// was read of the partition comes before what was read of the record: an update that ends in between is not taken back.
func (s *Store) levelOptions(ctx context.Context, w *whole, p int) error {
	part, missing := s.Store.GetEntity(ctx, w.kind, w.paths[p])
	if err := unlessGone(missing); err != nil {
		return err
	}
	present, err := s.recordOf(ctx, w)
	if err != nil || present.Incarnation != w.incarnation {
		return unlessGone(err)
	}
	if missing != nil && w.kind == semantics.QueueKind { // a removal suspended it
		return unlessGone(s.complete(ctx, s.wholeOf(present)))
	}
	if missing != nil {
		return nil
	}
	names := w.changed(part.Options, present.Options)
	return s.updatePartitions(ctx, w, []int{p}, w.shareOf(present.Options), names)
}

// levelOptionsOfAll is levelOptions for all subscriptions of a topic.
func (s *Store) levelOptionsOfAll(ctx context.Context, w *whole, p int) error {
	wanted, err := s.allSubscriptions(ctx, w.definition)
	if err != nil {
		return err
	}
	present, err := s.allSubscriptions(ctx, w.paths[p])
	if err != nil {
		return err
	}
	has := map[string]semantics.Options{}
	for _, one := range present {
		has[semantics.Fold(one.Name)] = one.Options
	}
	for _, entity := range wanted {
		sub := w.subscription(entity)
		options, isThere := has[semantics.Fold(sub.paths[p])]
		if !isThere || len(sub.changed(options, entity.Options)) == 0 {
			continue
		}
		if err := s.levelOptions(ctx, sub, p); err != nil {
			return err
		}
	}
	return nil
}

// allSubscriptions lists the subscriptions of a topic of the store below.
func (s *Store) allSubscriptions(ctx context.Context, topic string) ([]semantics.Entity, error) {
	var all []semantics.Entity
	after := ""
	for {
		some, more, err := s.Store.ListEntities(ctx, semantics.SubscriptionKind, topic, after, semantics.MaxPageSize)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if !more || len(some) == 0 {
			return all, nil
		}
		after = semantics.Fold(some[len(some)-1].OwnName())
	}
}
