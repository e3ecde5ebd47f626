package partitioned

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// CreateEntity implements semantics.Entities. The record comes first: it decides which of several creations counts, and
// what the paths of the partitions are. A creation that ends before the last partition is there is completed by the
// next one, or by the first call that misses a partition.
func (s *Store) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	if err := options.CheckPartitions(kind, path); err != nil {
		return semantics.Entity{}, false, err
	}
	for look := 1; ; look++ {
		entity, created, err := s.Store.CreateEntity(ctx, kind, path, options)
		if err == nil && isSpread(entity) {
			found := s.wholeOf(entity)
			s.remember(ctx, found)
			err = s.complete(ctx, found)
		}
		if semantics.CodeOf(err) != semantics.EntityNotFound || look == mostLooks { // it was deleted meanwhile
			return entity, created, err
		}
	}
}

func isSpread(entity semantics.Entity) bool { return entity.Options.Partitions > 1 }

// complete creates those partitions of an entity that are missing. If the options change meanwhile they get the new
// ones. If the entity was deleted meanwhile they go again, so that nothing is put into what no one can find:
// ENTITY_NOT_FOUND.
func (s *Store) complete(ctx context.Context, found *whole) error {
	if found.kind == semantics.SubscriptionKind {
		if err := s.complete(ctx, found.topic); err != nil {
			return err
		}
		return s.levelAll(ctx, found.topic)
	}
	share := found.shareOf(found.options)
	err := s.withHidden(found, func(path string) error { return s.createPartition(ctx, found, path, share) })
	if errors.Is(err, errRemoved) {
		return semantics.NotFound(found.name)
	}
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		// Its deletion has come as far as here. If Redis has forgotten since that the record is gone, it goes again.
		if err := unlessGone(s.deleteRecord(ctx, found)); err != nil {
			return err
		}
		return s.deleteRest(ctx, found)
	}
	if err != nil {
		return mayHaveRun(named(err))
	}
	present, err := s.recordOf(ctx, found)
	if err == nil && present.Incarnation == found.incarnation {
		wanted := found.shareOf(present.Options)
		err := s.updatePartitions(ctx, found, found.all(), wanted, found.changed(share, present.Options))
		if err != nil {
			return err
		}
		return mayHaveRun(named(s.withHidden(found, func(path string) error { return s.below.Compare(ctx, path) })))
	}
	if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
		return mayHaveRun(err)
	}
	return s.deleteRest(ctx, found)
}

// deleteRest completes the deletion of an entity whose record is gone. ENTITY_NOT_FOUND when it has.
func (s *Store) deleteRest(ctx context.Context, w *whole) error {
	if err := s.deletePartitions(ctx, w); err != nil {
		return err
	}
	return semantics.NotFound(w.name)
}

// withHidden does something with the definition of an entity, if it has one, and then with all partitions at once.
func (s *Store) withHidden(w *whole, do func(path string) error) error {
	if w.definition != "" {
		if err := do(w.definition); err != nil {
			return err
		}
	}
	return w.withEach(func(p int) error { return do(w.paths[p]) })
}

// mayHaveRun is the failure of a change of which a part has taken effect.
func mayHaveRun(err error) error {
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		return err
	}
	return semantics.AsError(err).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
}

// shareOf returns the options of each partition of an entity. Bounds of what it may hold are divided among them. With
// duplicate detection the key is part of what a partition remembers (DUP-2). AutoDeleteOnIdle is of the whole.
func shareOf(options semantics.Options) semantics.Options {
	n := options.Partitions
	options.Partitions, options.EnablePartitioning, options.UserMetadata = 1, options.RequiresDuplicateDetection, ""
	options.AutoDeleteOnIdle, options.AutoDeleteKeepsDeadLetters = semantics.Never, false
	for _, bound := range []*int64{
		&options.MaxSizeInMegabytes, &options.MaxMessageCount, &options.DuplicateHistoryMaxEntries,
	} {
		*bound = *bound/n + min(*bound%n, 1)
	}
	return options
}

// UpdateEntity implements semantics.Entities. The record comes first, so that an update that fails halfway is completed
// by its repeat.
func (s *Store) UpdateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) (semantics.Entity, error) {
	if _, _, is := semantics.SplitSubscription(path); is {
		return s.updateSubscription(ctx, path, options, names)
	}
	if err := s.checkUpdate(ctx, kind, path, options, names); err != nil {
		return semantics.Entity{}, err
	}
	entity, err := s.Store.UpdateEntity(ctx, kind, path, options, names)
	if err != nil || !isSpread(entity) {
		return entity, err
	}
	w := s.remember(ctx, s.wholeOf(entity))
	return entity, s.updatePartitions(ctx, w, w.all(), w.shareOf(entity.Options), names)
}

// recordOf reads an entity again, as its record has it, or a subscription as the definition of its topic has it.
func (s *Store) recordOf(ctx context.Context, w *whole) (semantics.Entity, error) {
	path := w.name
	if w.topic != nil {
		_, name, _ := semantics.SplitSubscription(w.name)
		path = w.topic.defined(name)
	}
	return s.Store.GetEntity(ctx, w.kind, path)
}

// updatePartitions changes the options with these names in some partitions of an entity to those of its share. It looks
// at the record again behind that: of updates at the same time, the one that is last there counts in all partitions. So
// it does not end with its caller, nor when a partition cannot be reached: another one may have got what is old by now.
func (s *Store) updatePartitions(
	ctx context.Context, w *whole, partitions []int, share semantics.Options, names []string,
) error {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == "userMetadata" || semantics.Immutable(name)
	})
	ctx = context.WithoutCancel(ctx)
	var failed error
	for len(names) > 0 {
		err := worst(atOnce(partitions, func(_, p int) error {
			return inPartition(s.updatePartition(ctx, w, w.paths[p], share, names), p)
		}))
		if err == nil && w.definition != "" { // last: what is decided by it finds partitions that can keep it
			_, err = s.Store.UpdateEntity(ctx, w.kind, w.definition, share, names)
			err = unlessGone(err)
		}
		failed = cmp.Or(failed, err)
		present, err := s.recordOf(ctx, w)
		if semantics.CodeOf(err) == semantics.EntityNotFound || err == nil && present.Incarnation != w.incarnation {
			return nil // it is gone, after the update
		}
		if err != nil {
			return mayHaveRun(named(cmp.Or(failed, err)))
		}
		names = w.changed(share, present.Options)
		share = w.shareOf(present.Options)
	}
	return mayHaveRun(named(failed))
}

// updatePartition changes options of a partition. One that a removal has suspended is resumed for it, since nothing
// would tell a later call that it missed the update. One that is missing gets the present options when it is created.
func (s *Store) updatePartition(
	ctx context.Context, w *whole, path string, share semantics.Options, names []string,
) error {
	for {
		_, err := s.Store.UpdateEntity(ctx, w.kind, path, share, names)
		if semantics.CodeOf(err) != semantics.EntityNotFound || w.kind != semantics.QueueKind {
			return unlessGone(err)
		}
		err = s.createPartition(ctx, w, path, share)
		if errors.Is(err, errRemoved) || semantics.CodeOf(err) == semantics.EntityNotFound {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// changed returns the names of the options of partitions that are no longer those of their entity.
func (w *whole) changed(had, present semantics.Options) (names []string) {
	for _, d := range had.Differences(w.shareOf(present), semantics.OptionNames(w.kind)) {
		names = append(names, d.Option)
	}
	return names
}

// checkUpdate refuses options that an entity with several partitions cannot have.
func (s *Store) checkUpdate(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) error {
	wanted, err := semantics.DefaultOptions().Merge(options, names)
	if err != nil {
		return err
	}
	wanted.Partitions = semantics.MaxPartitions
	if wanted.CheckPartitions(kind, path) == nil {
		return nil
	}
	present, err := s.Store.GetEntity(ctx, kind, path)
	if err != nil {
		return err
	}
	wanted.Partitions = present.Options.Partitions
	return wanted.CheckPartitions(kind, path)
}

// DeleteEntity implements semantics.Entities. The record goes first, so that no other sidecar finds the entity from
// then on. Then what it has goes for good: a sidecar that still sends there, or would create it again, finds that it is
// gone, so nothing is acknowledged there after the deletion was. What is left when the deletion fails halfway is
// deleted by the store below, which knows from their paths that the partitions belong to no entity. An entity that was
// deleted and created again meanwhile is another one, and stays.
func (s *Store) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	if _, _, is := semantics.SplitSubscription(path); is {
		return s.deleteSubscription(ctx, path)
	}
	entity, err := s.Store.GetEntity(ctx, kind, path)
	if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
		return err
	}
	if !isSpread(entity) {
		return s.Store.DeleteEntity(ctx, kind, path)
	}
	w := s.wholeOf(entity)
	if err := s.deleteRecord(ctx, w); err != nil {
		return err
	}
	return s.deletePartitions(ctx, w)
}

// deleteRecord deletes the record of an entity, if it is still this one.
func (s *Store) deleteRecord(ctx context.Context, w *whole) error {
	if err := s.below.NoteDeletion(ctx, w.name, w.incarnation); err != nil {
		return err
	}
	return s.below.DeleteRecord(ctx, w.kind, w.name, w.incarnation)
}

// deletePartitions deletes what an entity has whose record is gone.
func (s *Store) deletePartitions(ctx context.Context, w *whole) error {
	s.forget(ctx, w.name)
	ctx = context.WithoutCancel(ctx)
	return mayHaveRun(named(s.withHidden(w, func(path string) error {
		return s.below.DeleteForGood(ctx, w.kind, path)
	})))
}

// unlessGone is the failure of a deletion of what may be deleted already.
func unlessGone(err error) error {
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return nil
	}
	return err
}

// Runtime implements semantics.Entities. Counts are sums over the partitions (PART-5).
func (s *Store) Runtime(
	ctx context.Context, kind semantics.Kind, path string,
) (sum semantics.Runtime, err error) {
	err = s.on(ctx, path, func() error {
		sum, err = s.Store.Runtime(ctx, kind, path)
		return err
	}, func(w *whole) error {
		if w.kind != semantics.SubscriptionKind && w.kind != kind {
			return semantics.NotFound(path)
		}
		entity, err := s.GetEntity(ctx, w.kind, w.name)
		if err != nil {
			return err
		}
		counts := make([]semantics.Runtime, len(w.paths))
		err = w.withEach(func(p int) (err error) {
			counts[p], err = s.Store.Runtime(ctx, kind, w.paths[p])
			return err
		})
		sum = semantics.SumOf(counts)
		sum.CreatedAt, sum.UpdatedAt = entity.CreatedAt, entity.UpdatedAt
		if entity.AccessedAt.After(sum.AccessedAt) { // by a wait
			sum.AccessedAt = entity.AccessedAt
		}
		if err == nil && w.definition != "" {
			var of semantics.Runtime
			of, err = s.Store.Runtime(ctx, w.kind, w.definition)
			sum.Subscriptions = of.Subscriptions
		}
		return err
	})
	return sum, err
}
