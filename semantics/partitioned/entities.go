package partitioned

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// CreateEntity implements semantics.Entities. The record comes first: it decides which of several creations counts, and
// what the paths of the partitions are. A creation that ends before the last partition is there is completed by the
// next one, or by the first call that misses a partition.
func (s *Store) CreateEntity(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options,
) (semantics.Entity, bool, error) {
	if kind == semantics.QueueKind {
		if err := options.CheckPartitions(path); err != nil {
			return semantics.Entity{}, false, err
		}
	}
	entity, created, err := s.Store.CreateEntity(ctx, kind, path, options)
	if err != nil || !isSpread(entity) {
		return entity, created, err
	}
	return entity, created, s.complete(ctx, entity, s.remember(ctx, entity))
}

func isSpread(entity semantics.Entity) bool {
	return entity.Kind == semantics.QueueKind && entity.Options.Partitions > 1
}

// complete creates those partitions of a queue that are missing. If the options change meanwhile they get the new ones.
// If the queue was deleted meanwhile they go again, so that nothing is put into what no one can find: ENTITY_NOT_FOUND.
func (s *Store) complete(ctx context.Context, entity semantics.Entity, w *whole) error {
	options := shareOf(entity.Options)
	err := w.withEach(func(p int) error {
		_, _, err := s.Store.CreateEntity(ctx, semantics.QueueKind, w.paths[p], options)
		return err
	})
	if err != nil {
		return mayHaveRun(named(err))
	}
	present, err := s.Store.GetEntity(ctx, semantics.QueueKind, entity.Name)
	if err == nil && present.Incarnation == w.incarnation {
		_, err = s.updatePartitions(ctx, present, w, changedShare(options, present.Options))
		return err
	}
	if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
		return mayHaveRun(err)
	}
	s.forget(ctx, entity.Name)
	if err := s.deletePartitions(ctx, w); err != nil {
		return err
	}
	return semantics.NotFound(entity.Name)
}

// mayHaveRun is the failure of a change of which a part has taken effect.
func mayHaveRun(err error) error {
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		return err
	}
	return semantics.AsError(err).With(semantics.DetailOutcome, semantics.OutcomeUnknown)
}

// shareOf returns the options of each partition of a queue. Bounds of what it may hold are divided among them. With
// duplicate detection the key is part of what a partition remembers (DUP-2).
func shareOf(options semantics.Options) semantics.Options {
	n := options.Partitions
	options.Partitions, options.EnablePartitioning, options.UserMetadata = 1, options.RequiresDuplicateDetection, ""
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
	if err := s.checkUpdate(ctx, kind, path, options, names); err != nil {
		return semantics.Entity{}, err
	}
	entity, err := s.Store.UpdateEntity(ctx, kind, path, options, names)
	if err != nil || !isSpread(entity) {
		return entity, err
	}
	return s.updatePartitions(ctx, entity, s.remember(ctx, entity), names)
}

// updatePartitions changes the options with these names in the partitions of a queue. It looks at the record
// again behind that: of updates at the same time, the one that is last there counts in all partitions.
func (s *Store) updatePartitions(
	ctx context.Context, entity semantics.Entity, w *whole, names []string,
) (semantics.Entity, error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return name == "userMetadata" || semantics.Immutable(name)
	})
	for share := shareOf(entity.Options); len(names) > 0; {
		err := w.withEach(func(p int) error {
			_, err := s.Store.UpdateEntity(ctx, semantics.QueueKind, w.paths[p], share, names)
			if semantics.CodeOf(err) == semantics.EntityNotFound {
				return nil // it gets the present options when it is created
			}
			return err
		})
		if err != nil {
			return entity, mayHaveRun(named(err))
		}
		present, err := s.Store.GetEntity(ctx, semantics.QueueKind, entity.Name)
		if semantics.CodeOf(err) == semantics.EntityNotFound || err == nil && present.Incarnation != w.incarnation {
			break // it is gone, after the update
		}
		if err != nil {
			return entity, mayHaveRun(err)
		}
		names = changedShare(share, present.Options)
		share = shareOf(present.Options)
	}
	return entity, nil
}

// changedShare returns the names of the options of partitions that are no longer those of their queue.
func changedShare(had, present semantics.Options) (names []string) {
	share := shareOf(present)
	for _, d := range had.Differences(share, semantics.OptionNames(semantics.QueueKind)) {
		names = append(names, d.Option)
	}
	return names
}

// checkUpdate refuses options that a queue with several partitions cannot have.
func (s *Store) checkUpdate(
	ctx context.Context, kind semantics.Kind, path string, options semantics.Options, names []string,
) error {
	if kind != semantics.QueueKind {
		return nil
	}
	wanted, err := semantics.DefaultOptions().Merge(options, names)
	if err != nil {
		return err
	}
	wanted.Partitions = semantics.MaxPartitions
	if wanted.CheckPartitions(path) == nil {
		return nil
	}
	present, err := s.Store.GetEntity(ctx, kind, path)
	if err != nil {
		return err
	}
	wanted.Partitions = present.Options.Partitions
	return wanted.CheckPartitions(path)
}

// DeleteEntity implements semantics.Entities. The record goes first, so that no other sidecar finds the queue from then
// on. What is left when it fails halfway is deleted by the store below, which knows from their paths that the
// partitions belong to no queue.
func (s *Store) DeleteEntity(ctx context.Context, kind semantics.Kind, path string) error {
	var entity semantics.Entity
	if kind == semantics.QueueKind {
		var err error
		entity, err = s.Store.GetEntity(ctx, kind, path)
		if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
			return err
		}
	}
	if s.noting != nil && isSpread(entity) {
		if err := s.noting.NoteDeletion(ctx, entity); err != nil {
			return err
		}
	}
	if err := s.Store.DeleteEntity(ctx, kind, path); err != nil || !isSpread(entity) {
		return err
	}
	s.forget(ctx, path)
	return s.deletePartitions(ctx, s.wholeOf(entity))
}

func (s *Store) deletePartitions(ctx context.Context, w *whole) error {
	ctx = context.WithoutCancel(ctx)
	return mayHaveRun(named(w.withEach(func(p int) error {
		err := s.Store.DeleteEntity(ctx, semantics.QueueKind, w.paths[p])
		if semantics.CodeOf(err) == semantics.EntityNotFound {
			return nil
		}
		return err
	})))
}

// Runtime implements semantics.Entities. Counts are sums over the partitions (PART-5).
func (s *Store) Runtime(
	ctx context.Context, kind semantics.Kind, path string,
) (sum semantics.Runtime, err error) {
	err = s.on(ctx, path, func() error {
		sum, err = s.Store.Runtime(ctx, kind, path)
		return err
	}, func(w *whole) error {
		entity, err := s.Store.GetEntity(ctx, kind, path)
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
		return err
	})
	return sum, err
}
