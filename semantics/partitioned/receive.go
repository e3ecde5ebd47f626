package partitioned

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// recheckAway is after what time a receive that found nothing looks again at a partition that could not be reached.
const recheckAway = time.Second

// received returns messages of a partition as those of its queue.
func received(messages []*semantics.Received, partition int) []*semantics.Received {
	for _, m := range messages {
		inWhole(m, partition)
		if !m.LockToken.IsZero() {
			m.LockToken = m.LockToken.InPartition(partition)
		}
	}
	return messages
}

// inWhole changes what a message says of where it is to what its queue says of it.
func inWhole(m *semantics.Received, partition int) {
	if m.Forwarded == nil {
		m.EnqueuedSequenceNumber = semantics.InPartition(m.EnqueuedSequenceNumber, partition)
	}
	m.SequenceNumber = semantics.InPartition(m.SequenceNumber, partition)
	m.DeadLetterSource = semantics.WholePath(m.DeadLetterSource)
}

// Receive implements semantics.Receiver. It asks the partitions in turn, beginning with another one each time, so that
// none waits for others that always have messages (PART-4).
func (s *Store) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (batch semantics.Batch, err error) {
	err = s.on(ctx, source.Path, func() error {
		batch, err = s.Store.Receive(ctx, source, limit, register)
		return err
	}, func(w *whole) error {
		if !source.SessionLock.IsZero() {
			return semantics.SessionFailure(semantics.SessionNotSupported, w.name)
		}
		r := &reception{store: s, whole: w, source: source, left: limit, register: register, watch: s.watchOf(source)}
		batch, err = r.run(ctx)
		return err
	})
	return batch, err
}

// reception is one receive from all partitions.
type reception struct {
	store    *Store
	whole    *whole
	source   semantics.Source
	register semantics.Register
	watch    *watch // nil: none is open

	left     int // how many more messages it may have
	messages []*semantics.Received
	recheck  time.Duration // the shortest one, below 0 as long as no partition has been asked
	failed   error
	answered bool // some partition has
}

func (r *reception) run(ctx context.Context) (semantics.Batch, error) {
	turn := r.whole.inTurn(&r.whole.received[r.source.SubQueue])
	r.recheck = -1
	present := r.store.present(ctx, r.whole, turn)
	active, quiet, until := r.divide(present)
	r.ask(ctx, active)
	if len(r.messages) == 0 {
		r.ask(ctx, quiet)
	} else {
		r.recheckAfter(until)
	}
	switch {
	case len(r.messages) > 0:
	case r.failed != nil && (!r.answered || semantics.CodeOf(r.failed) != semantics.StoreUnavailable):
		return semantics.Batch{}, r.failed
	case r.failed != nil || len(present) < len(turn): // the others are there (PART-7)
		r.recheckAfter(recheckAway)
	}
	return semantics.Batch{Messages: r.messages, RecheckAfter: max(r.recheck, 0)}, nil
}

// divide returns which partitions may have something and which have nothing, as far as this sidecar knows: they were
// asked, would wake it, and have not, for at most as long as they may be left alone.
func (r *reception) divide(turn []int) (active, quiet []int, until time.Duration) {
	if r.register == semantics.RegisterNever || r.watch == nil {
		return turn, nil, 0
	}
	return r.watch.divide(r.whole, turn)
}

// ask takes messages from partitions until it has enough. Those that may have more are asked again behind the others.
func (r *reception) ask(ctx context.Context, partitions []int) {
	for r.left > 0 && len(partitions) > 0 {
		some := partitions[:min(r.left, len(partitions))]
		partitions = partitions[len(some):]
		share, extra := r.left/len(some), r.left%len(some)
		batches, asked := make([]semantics.Batch, len(some)), make([]int, len(some))
		failed := atOnce(some, func(place, p int) (err error) {
			asked[place] = share
			if place < extra {
				asked[place]++
			}
			batches[place], err = r.askOne(ctx, p, asked[place])
			return err
		})
		for place, p := range some {
			if err := inPartition(failed[place], p); err != nil {
				r.failed = cmp.Or(r.failed, err)
				continue
			}
			got := len(batches[place].Messages)
			r.answered, r.left = true, r.left-got
			r.messages = append(r.messages, received(batches[place].Messages, p)...)
			if got == asked[place] {
				partitions = append(partitions, p)
			}
			r.recheckAfter(batches[place].RecheckAfter)
		}
	}
}

func (r *reception) askOne(ctx context.Context, p, limit int) (semantics.Batch, error) {
	before := r.watch.wakeUps(p)
	batch, err := r.store.Store.Receive(ctx, r.whole.in(p, r.source), limit, r.register)
	r.store.note(ctx, r.whole.paths[p], err)
	if err == nil && r.register != semantics.RegisterNever && len(batch.Messages) == 0 {
		r.watch.noteQuiet(r.whole, p, before, batch.RecheckAfter)
	}
	return batch, err
}

func (r *reception) recheckAfter(d time.Duration) {
	if r.recheck < 0 || d < r.recheck {
		r.recheck = d
	}
}

// ReceiveByNumber implements semantics.Receiver. All or none of the numbers is a promise of one partition.
func (s *Store) ReceiveByNumber(
	ctx context.Context, source semantics.Source, state semantics.State, numbers []int64,
) (messages []*semantics.Received, err error) {
	err = s.on(ctx, source.Path, func() error {
		messages, err = s.Store.ReceiveByNumber(ctx, source, state, numbers)
		return err
	}, func(w *whole) error {
		return w.withNumbers(numbers, state, func(p int, own []int64) error {
			found, err := s.Store.ReceiveByNumber(ctx, w.in(p, source), state, own)
			messages = received(found, p)
			return err
		})
	})
	return messages, err
}

// Reactivate implements semantics.Receiver. All or none of the numbers is a promise of one partition.
func (s *Store) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	return s.on(ctx, source.Path, func() error {
		return s.Store.Reactivate(ctx, source, numbers)
	}, func(w *whole) error {
		return w.withNumbers(numbers, semantics.Deferred, func(p int, own []int64) error {
			return s.Store.Reactivate(ctx, w.in(p, source), own)
		})
	})
}

// PassOn implements semantics.Receiver.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	w := s.remembered(source.Path)
	if w == nil {
		return s.Store.PassOn(ctx, source)
	}
	failed := atOnce(s.present(ctx, w, w.all()), func(_, p int) error {
		return inPartition(s.Store.PassOn(ctx, w.in(p, source)), p)
	})
	return named(errors.Join(failed...))
}

// Peek implements semantics.Receiver. From 0 on it returns the oldest messages of all partitions, in order of their
// time; from another number on those that follow by their numbers, partition by partition (PART-5).
func (s *Store) Peek(
	ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show,
) (messages []*semantics.Received, err error) {
	err = s.on(ctx, source.Path, func() error {
		messages, err = s.Store.Peek(ctx, source, from, limit, show)
		return err
	}, func(w *whole) (err error) {
		if from > 0 {
			messages, err = s.peekOn(ctx, w, source, from, limit, show)
		} else {
			messages, err = s.peekOldest(ctx, w, source, limit, show)
		}
		return err
	})
	return messages, err
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
	own, p := semantics.PartitionOf(from)
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
