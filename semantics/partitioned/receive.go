package partitioned

import (
	"context"
	"errors"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

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
// none waits for others that always have messages (PART-4). A session has one.
func (s *Store) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (batch semantics.Batch, err error) {
	err = s.on(ctx, source.Path, func() error {
		batch, err = s.Store.Receive(ctx, source, limit, register)
		return err
	}, func(w *whole) error {
		receive := func(p, limit int) ([]*semantics.Received, time.Duration, error) {
			b, err := s.Store.Receive(ctx, w.in(p, source), limit, register)
			return received(b.Messages, p), b.RecheckAfter, err
		}
		if p, ok := w.sessionOf(source); ok {
			batch.Messages, batch.RecheckAfter, err = receive(p, limit)
			return inPartition(err, p)
		}
		r := newReception(s, w, source, limit, register, receive, further)
		batch.Messages, batch.RecheckAfter, err = r.run(ctx)
		batch.Messages = s.oneAnswer(ctx, source, batch.Messages)
		return err
	})
	return batch, err
}

// further returns how many more messages of the size of those that were found fit into an answer.
func further(found []*semantics.Received) int {
	if len(found) == 0 {
		return semantics.MaxReceiveMessages
	}
	size := semantics.AnswerSize(found)
	return int((semantics.MaxAnswerBytes - size) * int64(len(found)) / size)
}

// giveBackWithin is how long a receive may take to give back what does not fit.
const giveBackWithin = 5 * time.Second

// oneAnswer returns those of messages of several partitions, each of which had a whole answer to fill, that are one
// answer together. The others are given back, uncounted.
func (s *Store) oneAnswer(
	ctx context.Context, source semantics.Source, messages []*semantics.Received,
) []*semantics.Received {
	fitting := semantics.Fitting(messages, semantics.MaxAnswerBytes, (*semantics.Received).AnswerSize)
	if fitting == len(messages) {
		return messages
	}
	var tokens []semantics.LockToken
	for _, m := range messages[fitting:] {
		tokens = append(tokens, m.LockToken)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackWithin)
	defer cancel()
	_, _ = s.Release(ctx, source, tokens) // what cannot be given back comes again when its lock ends
	return messages[:fitting]
}

// ReceiveByNumber implements semantics.Receiver. All or none of the numbers is a promise of one partition.
func (s *Store) ReceiveByNumber(
	ctx context.Context, source semantics.Source, state semantics.State, numbers []int64,
) (messages []*semantics.Received, err error) {
	err = s.on(ctx, source.Path, func() error {
		messages, err = s.Store.ReceiveByNumber(ctx, source, state, numbers)
		return err
	}, func(w *whole) error {
		return w.withNumbers(source, numbers, state, func(p int, own []int64) error {
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
		return w.withNumbers(source, numbers, semantics.Deferred, func(p int, own []int64) error {
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
	if p, ok := w.sessionOf(source); ok {
		return named(inPartition(s.Store.PassOn(ctx, w.in(p, source)), p))
	}
	failed := atOnce(s.present(ctx, w, w.all()), func(_, p int) error {
		return inPartition(s.Store.PassOn(ctx, w.in(p, source)), p)
	})
	return named(errors.Join(failed...))
}
