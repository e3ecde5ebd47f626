package partitioned

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Runtimes implements semantics.Counter. What has several partitions is counted alone, and what seems not to be there
// is looked for alone, because it may have some by now.
func (s *Store) Runtimes(ctx context.Context, paths []string) ([]*semantics.Runtime, error) {
	all := make([]*semantics.Runtime, len(paths))
	if counter, ok := s.below.(semantics.Counter); ok {
		if err := s.countSingle(ctx, counter, paths, all); err != nil {
			return nil, err
		}
	}
	for i, path := range paths {
		if all[i] != nil {
			continue
		}
		counts, err := s.Runtime(ctx, semantics.QueueKind, path)
		if err != nil && semantics.CodeOf(err) != semantics.EntityNotFound {
			return nil, err
		}
		if err == nil {
			all[i] = &counts
		}
	}
	return all, nil
}

// countSingle counts those that have one partition, as far as is known.
func (s *Store) countSingle(
	ctx context.Context, counter semantics.Counter, paths []string, all []*semantics.Runtime,
) error {
	var single []string
	var places []int
	for i, path := range paths {
		if s.remembered(path) == nil {
			single, places = append(single, path), append(places, i)
		}
	}
	counts, err := counter.Runtimes(ctx, single)
	for i := range counts {
		all[places[i]] = counts[i]
	}
	return err
}

// Receivers implements semantics.Observed. A sidecar waits since it does on one partition.
func (s *Store) Receivers(ctx context.Context, path string, limit int) (who semantics.Receivers, err error) {
	err = s.on(ctx, path, func() error {
		who, err = s.Store.Receivers(ctx, path, limit)
		return err
	}, func(w *whole) error {
		all := make([]semantics.Receivers, len(w.paths))
		err := w.withEach(func(p int) (err error) {
			all[p], err = s.Store.Receivers(ctx, w.paths[p], limit)
			return err
		})
		who = together(all).First(limit)
		return err
	})
	return who, err
}

// together joins what the partitions of an entity have.
func together(all []semantics.Receivers) (who semantics.Receivers) {
	since := map[string]time.Time{}
	for _, one := range all {
		for _, waiting := range one.Waiting {
			if first, isKnown := since[waiting.Sidecar]; !isKnown || waiting.Since.Before(first) {
				since[waiting.Sidecar] = waiting.Since
			}
		}
		who.Held, who.Ready = append(who.Held, one.Held...), append(who.Ready, one.Ready...)
		if !one.FirstLock.IsZero() && (who.FirstLock.IsZero() || one.FirstLock.Before(who.FirstLock)) {
			who.FirstLock = one.FirstLock
		}
		if one.LastLock.After(who.LastLock) {
			who.LastLock = one.LastLock
		}
	}
	for sidecar, at := range since {
		who.Waiting = append(who.Waiting, semantics.WaitingSidecar{Sidecar: sidecar, Since: at})
	}
	return who
}
