package partitioned

import (
	"context"
	"maps"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// Purge implements semantics.Remover. A step works on one partition, and the steps go from one to the next. A session
// has one.
func (s *Store) Purge(
	ctx context.Context, source semantics.Source, purge semantics.Purge,
) (purged semantics.Purged, err error) {
	err = s.on(ctx, source.Path, func() error {
		purged, err = s.Store.Purge(ctx, source, purge)
		return err
	}, func(w *whole) error {
		if p, ok := w.sessionOf(source); ok {
			step := purge
			step.After = within(p, purge.After)
			purged, err = s.Store.Purge(ctx, w.in(p, source), step)
			purged.Last = semantics.InPartition(purged.Last, p)
			return inPartition(err, p)
		}
		own, p := w.at(purge.After)
		step := purge
		step.After = own
		purged, err = s.Store.Purge(ctx, w.in(p, source), step)
		switch {
		case err != nil:
		case purged.More:
			purged.Last = semantics.InPartition(purged.Last, p)
		case p+1 < len(w.paths):
			purged.Last, purged.More = semantics.InPartition(0, p+1), true
		default:
			purged.Last = max(semantics.InPartition(purged.Last, p), purge.After)
		}
		return inPartition(err, p)
	})
	return purged, err
}

// DeleteByNumber implements semantics.Remover.
func (s *Store) DeleteByNumber(
	ctx context.Context, source semantics.Source, numbers []int64,
) (codes []semantics.Code, err error) {
	err = s.on(ctx, source.Path, func() error {
		codes, err = s.Store.DeleteByNumber(ctx, source, numbers)
		return err
	}, func(w *whole) error {
		codes, err = s.deleteByNumber(ctx, w, source, numbers)
		return err
	})
	return codes, err
}

func (s *Store) deleteByNumber(
	ctx context.Context, w *whole, source semantics.Source, numbers []int64,
) ([]semantics.Code, error) {
	codes := slices.Repeat([]semantics.Code{semantics.MessageNotFound}, len(numbers))
	own, places := map[int][]int64{}, map[int][]int{} // by partition
	for i, number := range numbers {
		if n, p, ok := w.ofNumber(source, number); ok {
			own[p], places[p] = append(own[p], n), append(places[p], i)
		}
	}
	if p, _ := w.sessionOf(source); len(own) == 0 {
		own[p] = []int64{semantics.EndOfPartition} // which may refuse the call for another cause
	}
	for done, p := range slices.Sorted(maps.Keys(own)) {
		var some []semantics.Code
		err := s.inOne(ctx, w, func() (err error) {
			some, err = s.Store.DeleteByNumber(ctx, w.in(p, source), own[p])
			return err
		})
		if err != nil && done > 0 {
			err = mayHaveRun(err) // in other partitions it did
		}
		if err != nil {
			return nil, inPartition(err, p)
		}
		for i, place := range places[p] {
			codes[place] = some[i]
		}
	}
	return codes, nil
}
