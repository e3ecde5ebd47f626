package partitioned

import (
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// Resubmit implements semantics.Remover. Within a queue with several partitions a letter stays in its partition, which
// is one step. Any other way is for a transfer: ErrApart, before anything is done.
func (s *Store) Resubmit(
	ctx context.Context, source semantics.Source, target string, letters []semantics.Resubmission,
	bypassDuplicates bool,
) (moved []semantics.Resubmitted, err error) {
	err = s.on(ctx, source.Path, func() error {
		return s.on(ctx, target, func() error {
			moved, err = s.Store.Resubmit(ctx, source, target, letters, bypassDuplicates)
			return err
		}, func(*whole) error { return semantics.ErrApart })
	}, func(w *whole) error {
		if semantics.Fold(source.Path) != semantics.Fold(target) {
			return semantics.ErrApart
		}
		moved, err = s.resubmitWithin(ctx, w, source, letters, bypassDuplicates)
		return err
	})
	return moved, err
}

func (s *Store) resubmitWithin(
	ctx context.Context, w *whole, source semantics.Source, letters []semantics.Resubmission, bypassDuplicates bool,
) ([]semantics.Resubmitted, error) {
	moved, places := make([]semantics.Resubmitted, len(letters)), make([][]int, len(w.paths))
	for i, letter := range letters {
		if w.detects && letter.NewID && letter.PartitionKey == "" {
			return nil, semantics.ErrApart // the new id chooses the partition
		}
		if _, p := semantics.PartitionOf(letter.SequenceNumber); p >= 0 && p < len(w.paths) {
			places[p] = append(places[p], i)
		} else {
			moved[i].Code = semantics.MessageNotFound
		}
	}
	if !slices.ContainsFunc(places, func(own []int) bool { return len(own) > 0 }) {
		// The entity may have other partitions by now than are remembered.
		_, err := s.Store.GetEntity(ctx, semantics.QueueKind, w.paths[0])
		return moved, err
	}
	hasMoved := false
	for p, own := range places {
		if len(own) == 0 {
			continue
		}
		part := slices.Clone(pick(letters, own))
		for i := range part {
			part[i].SequenceNumber, _ = semantics.PartitionOf(part[i].SequenceNumber)
		}
		var some []semantics.Resubmitted
		err := s.inOne(ctx, w, func() (err error) {
			some, err = s.Store.Resubmit(ctx, w.in(p, source), w.paths[p], part, bypassDuplicates)
			return err
		})
		if err != nil && hasMoved {
			err = mayHaveRun(err)
		}
		if err != nil {
			return nil, inPartition(err, p)
		}
		hasMoved = true
		for i, m := range some {
			if m.SequenceNumber != 0 {
				m.SequenceNumber = semantics.InPartition(m.SequenceNumber, p)
			}
			moved[own[i]] = m
		}
	}
	return moved, nil
}
