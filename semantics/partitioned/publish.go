package partitioned

import (
	"context"
	"errors"
	"slices"

	"github.com/sidebus/sidebus/semantics"
)

// Publish implements semantics.Topics. A call whose partition does not follow the routes by which it was decided
// returns ErrRoutesChanged, and so do calls that found the topic changed: they are decided again. What other partitions
// have stored stays, because each call goes to one.
func (s *Store) Publish(
	ctx context.Context, topic string, version int64, calls [][]semantics.Publication,
) []semantics.SendOutcome {
	w := s.remembered(topic)
	if w == nil {
		return s.changedMeanwhile(ctx, topic, w, s.Store.Publish(ctx, topic, version, calls))
	}
	messages := make([][]*semantics.Message, len(calls))
	for i, call := range calls {
		messages[i] = messagesOf(call)
	}
	outcomes := s.spread(ctx, w, messages, func(p int, places []int) []semantics.SendOutcome {
		return s.publishIn(ctx, w, p, version, pick(calls, places))
	})
	return s.changedMeanwhile(ctx, topic, w, outcomes)
}

func messagesOf(call []semantics.Publication) []*semantics.Message {
	messages := make([]*semantics.Message, len(call))
	for i, p := range call {
		messages[i] = p.Message
	}
	return messages
}

// publishIn publishes to a partition. If it does not follow the routes, it is made to, and what it refused for that is
// published again.
func (s *Store) publishIn(
	ctx context.Context, w *whole, p int, version int64, calls [][]semantics.Publication,
) []semantics.SendOutcome {
	outcomes := s.Store.Publish(ctx, w.paths[p], version, calls)
	at := slices.IndexFunc(outcomes, func(o semantics.SendOutcome) bool {
		return errors.Is(o.Err, semantics.ErrRoutesChanged) // and so do all that follow
	})
	if at < 0 {
		return outcomes
	}
	if err := s.level(ctx, w, p); err != nil {
		for i := range outcomes[at:] {
			outcomes[at+i].Err = err
		}
		return outcomes
	}
	copy(outcomes[at:], s.Store.Publish(ctx, w.paths[p], version, calls[at:]))
	return outcomes
}

// changedMeanwhile lets calls that found nothing, or were refused by what is remembered, be decided again, if the topic
// is there.
func (s *Store) changedMeanwhile(
	ctx context.Context, topic string, had *whole, outcomes []semantics.SendOutcome,
) []semantics.SendOutcome {
	isMissed := func(o semantics.SendOutcome) bool { return semantics.CodeOf(o.Err) == semantics.EntityNotFound }
	isSupposed := func(o semantics.SendOutcome) bool {
		_, is := supposedIn(o.Err)
		return is
	}
	look := s.lookIfOther
	switch {
	case slices.ContainsFunc(outcomes, isMissed):
		look = s.look
	case !slices.ContainsFunc(outcomes, isSupposed):
		return outcomes
	}
	_, changed, err := look(ctx, topic, had)
	if err == nil && changed {
		err = semantics.ErrRoutesChanged
	}
	for i := range outcomes {
		refusal, is := supposedIn(outcomes[i].Err)
		switch {
		case err != nil && (is || isMissed(outcomes[i])):
			outcomes[i].Err = err
		case is:
			outcomes[i].Err = refusal
		}
	}
	return outcomes
}

// PublishOnce implements semantics.Topics. A batch without a key goes to the partition of its request id, as in
// SendOnce.
func (s *Store) PublishOnce(
	ctx context.Context, topic string, version int64, once semantics.Once, call []semantics.Publication,
) semantics.SendOutcome {
	w := s.remembered(topic)
	if w == nil {
		outcome := s.Store.PublishOnce(ctx, topic, version, once, call)
		return s.changedMeanwhile(ctx, topic, w, []semantics.SendOutcome{outcome})[0]
	}
	p, err := w.ofRequest(once, messagesOf(call))
	if err != nil {
		return s.changedMeanwhile(ctx, topic, w, []semantics.SendOutcome{{Err: err}})[0]
	}
	outcome := s.Store.PublishOnce(ctx, w.paths[p], version, once, call)
	if errors.Is(outcome.Err, semantics.ErrRoutesChanged) {
		if outcome.Err = s.level(ctx, w, p); outcome.Err == nil {
			outcome = s.Store.PublishOnce(ctx, w.paths[p], version, once, call)
		}
	}
	s.note(ctx, w.paths[p], outcome.Err)
	outcome.Stored, outcome.Err = numbered(outcome.Stored, p), named(inPartition(outcome.Err, p))
	return s.changedMeanwhile(ctx, topic, w, []semantics.SendOutcome{outcome})[0]
}

// Due implements semantics.Topics. The path may also be that of a partition, which the store below sweeps.
func (s *Store) Due(ctx context.Context, topic string, limit int) (due []*semantics.Received, err error) {
	err = s.on(ctx, topic, func() error {
		due, err = s.Store.Due(ctx, topic, limit)
		return err
	}, func(w *whole) error {
		found := make([][]*semantics.Received, len(w.paths))
		err := w.withEach(func(p int) error {
			some, err := s.Store.Due(ctx, w.paths[p], limit)
			found[p] = received(some, p)
			return err
		})
		due = slices.Concat(found...)
		due = due[:min(limit, len(due))]
		return err
	})
	return due, err
}

// Activate implements semantics.Topics. The path may also be that of a partition, which has other numbers. What some
// partitions have done when another one refuses stays: those messages are not scheduled any more.
func (s *Store) Activate(ctx context.Context, topic string, version int64, activations []semantics.Activation) error {
	if semantics.IsPartition(topic) {
		return s.onPartition(ctx, topic, func(w *whole, p int) error {
			return s.activateIn(ctx, w, p, version, activations)
		})
	}
	return s.on(ctx, topic, func() error {
		return s.Store.Activate(ctx, topic, version, activations)
	}, func(w *whole) error {
		own := make([][]semantics.Activation, len(w.paths))
		for _, a := range activations {
			number, p := semantics.PartitionOf(a.SequenceNumber)
			if p >= len(own) { // of a topic of the name that is gone
				continue
			}
			a.SequenceNumber = number
			own[p] = append(own[p], a)
		}
		return w.withEach(func(p int) error {
			if len(own[p]) == 0 {
				return nil
			}
			return s.activateIn(ctx, w, p, version, own[p])
		})
	})
}

func (s *Store) activateIn(
	ctx context.Context, w *whole, p int, version int64, activations []semantics.Activation,
) error {
	err := s.Store.Activate(ctx, w.paths[p], version, activations)
	if !errors.Is(err, semantics.ErrRoutesChanged) {
		return err
	}
	if err := s.level(ctx, w, p); err != nil {
		return err
	}
	return s.Store.Activate(ctx, w.paths[p], version, activations)
}
