package broker

import (
	"context"
	"errors"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// publishEach is SendEach of a topic: it decides which subscriptions get copies and lets the store carry that out. A
// store that knows other rules by then sends calls back to decide again, so that a change of rules is exact (TOPIC-4).
// Those are the last ones, or the last ones of some partitions, so that the order of the calls stays.
func (b *Broker) publishEach(ctx context.Context, topic string, calls [][]*semantics.Message) []semantics.SendOutcome {
	outcomes := make([]semantics.SendOutcome, len(calls))
	left := make([]int, len(calls)) // places of the calls that are to be made
	for i := range left {
		left[i] = i
	}
	err := b.fanout.try(ctx, topic, func(r *router) error {
		publications := make([][]semantics.Publication, len(left))
		for i, at := range left {
			publications[i] = r.publications(calls[at])
		}
		var last error
		var again []int
		for i, o := range b.store.Publish(ctx, topic, r.version, publications) {
			last = o.Err
			if errors.Is(o.Err, semantics.ErrRoutesChanged) {
				again = append(again, left[i])
				continue
			}
			outcomes[left[i]] = o
		}
		if left = again; len(left) > 0 {
			return semantics.ErrRoutesChanged
		}
		return last
	})
	for _, at := range left { // the routes could not be read
		outcomes[at].Err = err
	}
	return outcomes
}

// publishOnce is SendOnce of a topic.
func (b *Broker) publishOnce(
	ctx context.Context, topic string, once semantics.Once, messages []*semantics.Message,
) (outcome semantics.SendOutcome) {
	err := b.fanout.try(ctx, topic, func(r *router) error {
		outcome = b.store.PublishOnce(ctx, topic, r.version, once, r.publications(messages))
		return outcome.Err
	})
	outcome.Err = err
	return outcome
}

// activateStep is how many scheduled messages of a topic are enqueued at a time.
const activateStep = 50

// ActivateDue enqueues the scheduled messages of a topic, or of a partition of one, whose time has come, by the rules
// of this instant (SCHED-7). Sweepers of the store call it when some are due; any number may do so at once. It blocks
// until none is left, or something fails. ENTITY_NOT_FOUND.
func (b *Broker) ActivateDue(ctx context.Context, topic string) error {
	for {
		more, err := b.activateSome(ctx, topic)
		if err != nil || !more {
			return err
		}
	}
}

// activateSome does one step of ActivateDue, and reports whether there may be more to do.
func (b *Broker) activateSome(ctx context.Context, topic string) (more bool, err error) {
	err = b.fanout.try(ctx, semantics.WholePath(topic), func(r *router) error {
		more = false
		due, err := b.store.Due(ctx, topic, activateStep)
		if err != nil || len(due) == 0 {
			return err
		}
		if due, err = dueReadable(due); len(due) == 0 {
			return err
		}
		more = true
		activations := make([]semantics.Activation, len(due))
		for i, m := range due {
			message := m.Message
			message.ScheduledAt = m.ScheduledAt // what it was scheduled for stays on it
			activations[i] = semantics.Activation{
				SequenceNumber: m.SequenceNumber, EnqueuedAt: m.EnqueuedAt,
				Publication: semantics.Publication{Message: &message, Copies: r.copies(&message)},
			}
		}
		return b.store.Activate(ctx, topic, r.version, activations)
	})
	return more, err
}

// Level implements Upkeep.
func (b *Broker) Level(ctx context.Context, partition string) error {
	return b.store.Level(ctx, partition)
}

// RemoveUnused implements Upkeep.
func (b *Broker) RemoveUnused(ctx context.Context, path string) (time.Duration, error) {
	return b.store.RemoveUnused(ctx, path)
}
