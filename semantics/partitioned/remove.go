package partitioned

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

// Purge implements semantics.Remover. A step works on one partition, and the steps go from one to the next.
func (s *Store) Purge(
	ctx context.Context, source semantics.Source, purge semantics.Purge,
) (purged semantics.Purged, err error) {
	err = s.on(ctx, source.Path, func() error {
		purged, err = s.Store.Purge(ctx, source, purge)
		return err
	}, func(w *whole) error {
		own, p := semantics.PartitionOf(purge.After)
		if p >= len(w.paths) {
			purged = semantics.Purged{Before: purge.Before, Last: purge.After}
			return nil
		}
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
			purged.Last = semantics.InPartition(purged.Last, p)
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
		outcome := map[int64]semantics.Code{}
		own, _ := w.byPartition(numbers)
		for p := range w.paths {
			if len(own[p]) == 0 {
				continue
			}
			some, err := s.Store.DeleteByNumber(ctx, w.in(p, source), own[p])
			if err != nil && len(outcome) > 0 {
				err = mayHaveRun(err) // in other partitions it did
			}
			if err != nil {
				return inPartition(err, p)
			}
			for i, code := range some {
				number := semantics.InPartition(own[p][i], p)
				if before, is := outcome[number]; !is || before != "" { // named twice
					outcome[number] = code
				}
			}
		}
		codes = make([]semantics.Code, len(numbers))
		for i, number := range numbers {
			code, is := outcome[number]
			if !is {
				code = semantics.MessageNotFound
			}
			codes[i] = code
		}
		return nil
	})
	return codes, err
}
