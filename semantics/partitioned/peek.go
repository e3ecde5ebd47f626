package partitioned

import (
	"cmp"
	"context"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// Peek implements semantics.Receiver. From 0 on it returns the oldest messages of all partitions, in order of their
// time; from another number on those that follow by their numbers, partition by partition (PART-5). A session has one.
func (s *Store) Peek(
	ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show,
) (messages []*semantics.Received, err error) {
	err = s.on(ctx, source.Path, func() error {
		messages, err = s.Store.Peek(ctx, source, from, limit, show)
		return err
	}, func(w *whole) (err error) {
		p, ofSession := w.sessionOf(source)
		switch {
		case ofSession:
			messages, err = s.Store.Peek(ctx, w.in(p, source), within(p, from), limit, show)
			messages, err = received(messages, p), inPartition(err, p)
		case from > 0:
			messages, err = s.peekOn(ctx, w, source, from, limit, show)
		default:
			messages, err = s.peekOldest(ctx, w, source, limit, show)
		}
		return err
	})
	return messages, err
}

// within returns the first own number of a partition that is not below a number of the queue.
func within(partition int, from int64) int64 {
	own, p := semantics.PartitionOf(from)
	switch {
	case p < partition:
		return 0
	case p > partition:
		return semantics.EndOfPartition
	default:
		return own
	}
}

func (s *Store) peekOldest(
	ctx context.Context, w *whole, source semantics.Source, limit int, show semantics.Show,
) ([]*semantics.Received, error) {
	found := make([][]*semantics.Received, len(w.paths))
	err := w.withEach(func(p int) error {
		some, err := s.Store.Peek(ctx, w.in(p, source), 0, limit, show)
		found[p] = received(some, p)
		return err
	})
	if err != nil {
		return nil, err
	}
	messages := slices.Concat(found...)
	slices.SortStableFunc(messages, func(a, b *semantics.Received) int {
		return cmp.Or(a.EnqueuedAt.Compare(b.EnqueuedAt), cmp.Compare(a.SequenceNumber, b.SequenceNumber))
	})
	messages = messages[:min(limit, len(messages))]
	return messages[:semantics.Fitting(messages, semantics.MaxAnswerBytes, (*semantics.Received).AnswerSize)], nil
}

func (s *Store) peekOn(
	ctx context.Context, w *whole, source semantics.Source, from int64, limit int, show semantics.Show,
) ([]*semantics.Received, error) {
	var messages []*semantics.Received
	own, p := w.at(from)
	for p < len(w.paths) && len(messages) < limit && semantics.AnswerSize(messages) < semantics.MaxAnswerBytes {
		some, err := s.Store.Peek(ctx, w.in(p, source), own, limit-len(messages), show)
		if err != nil {
			return nil, inPartition(err, p)
		}
		if len(some) == 0 {
			own, p = 0, p+1
			continue
		}
		own = some[len(some)-1].SequenceNumber + 1 // it may have left out some for their size
		messages = append(messages, received(some, p)...)
	}
	return messages[:semantics.Fitting(messages, semantics.MaxAnswerBytes, (*semantics.Received).AnswerSize)], nil
}
