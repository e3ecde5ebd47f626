package broker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of one Forward.
const (
	mostTransfers   = 20
	transferSize    = 100
	patientTransfer = 10 // messages of a transfer that may have to wait: its destination takes all of it or none
)

// forwarding is what a Broker knows of the messages it forwards.
type forwarding struct {
	retry            time.Duration
	arrived, refused atomic.Int64
}

// WithForwardRetry lets messages that their destination does not take wait for so long before they become transfer dead
// letters (FWD-8). What follows them waits too. Without it they do not wait.
func WithForwardRetry(d time.Duration) Option {
	return func(b *Broker) { b.forwarding.retry = d }
}

// Forwarded returns how many messages this Broker has brought to their destinations, one for each hop (FWD-12), and how
// many became dead letters because they could not be brought there. What two Brokers forward together both count.
func (b *Broker) Forwarded() (forwarded, refused int64) {
	return b.forwarding.arrived.Load(), b.forwarding.refused.Load()
}

// Forward implements Upkeep. It ends when there is nothing left to forward, after some thousand messages, or when the
// destination does not take them and there is time to wait, which is an error.
func (b *Broker) Forward(ctx context.Context, source semantics.Source) error {
	for range mostTransfers {
		more, err := b.forwardSome(ctx, source)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// forwardSome runs one transfer, the one that is under way if there is one.
func (b *Broker) forwardSome(ctx context.Context, source semantics.Source) (more bool, err error) {
	err = b.store.Unbroken(ctx, func(ctx context.Context) (err error) {
		more, err = b.forwardOnce(ctx, source)
		return err
	})
	return more, err
}

func (b *Broker) forwardOnce(ctx context.Context, source semantics.Source) (more bool, err error) {
	entity, err := b.getSource(ctx, source.Path)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	to, err := b.destinationOf(ctx, entity, source.SubQueue)
	if err != nil {
		return false, err
	}
	limit := transferSize
	if b.forwarding.retry > 0 {
		limit = patientTransfer
	}
	if to.Kind == semantics.TopicKind && to.Incarnation != 0 {
		if limit, err = b.transferLimit(ctx, to.Path, limit); err != nil {
			return false, err
		}
	}
	transfer, err := b.store.BeginTransfer(ctx, source, to, limit)
	switch {
	case errors.Is(err, semantics.ErrForwardingChanged):
		return to.Path != "", nil // elsewhere by now; or nowhere, and no transfer was under way
	case semantics.CodeOf(err) == semantics.EntityNotFound:
		return false, nil
	case err != nil, transfer.ID == "":
		return false, err
	}
	if err := b.finishTransfer(ctx, entity.Name, transfer); !errors.Is(err, semantics.ErrOvertaken) {
		return true, err
	}
	return true, nil // the next look finds what is under way by now
}

// transferLimit bounds the messages of a transfer by the copies that a topic would make of them, all of which one step
// stores.
func (b *Broker) transferLimit(ctx context.Context, topic string, limit int) (int, error) {
	r, err := b.fanout.routes(ctx, topic, nil)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return limit, nil // as the store will say
	}
	if err != nil {
		return 0, err
	}
	return max(1, min(limit, semantics.MaxCopies/r.mostCopies())), nil
}

// destinationOf returns where one side of an entity forwards to; without a path when that is nowhere.
func (b *Broker) destinationOf(
	ctx context.Context, entity semantics.Entity, side semantics.SubQueue,
) (semantics.Destination, error) {
	path := entity.Options.ForwardTo
	switch side {
	case semantics.DeadLetterQueue:
		path = entity.Options.ForwardDeadLetteredMessagesTo
	case semantics.TransferDeadLetterQueue: // which only resubmissions leave
		path = ""
	default: // the main queue
	}
	if path == "" {
		return semantics.Destination{}, nil
	}
	to, err := b.store.Destination(ctx, path)
	to.Path = path
	return to, err
}

// finishTransfer runs the steps that are left of a transfer, whichever sidecar began it. name is that of its source.
func (b *Broker) finishTransfer(ctx context.Context, name string, transfer semantics.Transfer) error {
	if transfer.Resubmits != nil {
		_, err := b.finishResubmission(ctx, transfer)
		return err
	}
	fates := make([]semantics.Fate, len(transfer.Messages))
	var going []semantics.Publication
	var places []int // of those that go, among all
	for i, m := range transfer.Messages {
		if lacksKey(m) { // the transfer stays open, for a sidecar that has the key
			return keyMissing(transfer.Source, m)
		}
		if m.Unreadable != nil {
			fates[i] = unreadableFate(name, transfer, m)
			continue
		}
		if hopsOf(&m.Message) >= semantics.MaxForwardHops {
			fates[i] = tooManyHops(name, transfer)
			continue
		}
		going, places = append(going, onward(m, name, transfer.Source.SubQueue)), append(places, i)
	}
	if len(going) < len(transfer.Messages) {
		transfer.Carried = places
	}
	arrivals, err := b.arrive(ctx, transfer, going)
	if err != nil {
		return err
	}
	forwarded, staying := len(arrivals), 0
	for i, a := range arrivals {
		switch {
		case a.Refused == semantics.Internal: // the next transfer has it
			fates[places[i]].Stays = true
			forwarded, staying = forwarded-1, staying+1
		case a.Refused != "":
			fates[places[i]] = notTaken(transfer, transfer.Messages[places[i]], a.Refused)
			forwarded--
		}
	}
	if err := b.store.EndTransfer(ctx, transfer, fates); err != nil {
		return err
	}
	b.forwarding.arrived.Add(int64(forwarded))
	b.forwarding.refused.Add(int64(len(fates) - staying - forwarded))
	return nil
}

func hopsOf(m *semantics.Message) int {
	if m.Forwarded == nil {
		return 0
	}
	return m.Forwarded.Hops
}

// onward returns a message of a source as it goes on (FWD-4, FWD-9).
func onward(m *semantics.Received, source string, side semantics.SubQueue) semantics.Publication {
	message, from := m.Message, semantics.Forwarded{}
	if m.Forwarded != nil {
		from = *m.Forwarded
	}
	from.Hops++
	from.EnqueuedSequenceNumber = m.EnqueuedSequenceNumber
	message.Forwarded = &from
	p := semantics.Publication{Message: &message, ExpiresAt: m.ExpiresAt}
	if side.IsDeadLetters() {
		from.DeadLetterSource, from.DeadLetterTexts = source, m.DeadLetterTexts()
		// it may be past, and did not count any more (TTL-19): a new life begins, as in TTL-25
		p.ExpiresAt = time.Time{}
	}
	if m.TimeToLive != nil && *m.TimeToLive <= 0 { // its life was over when it came
		message.TimeToLive = nil
	}
	return p
}

// arrive lets messages of a transfer arrive at its destination, by the rules of this instant if that is a topic.
func (b *Broker) arrive(
	ctx context.Context, transfer semantics.Transfer, messages []semantics.Publication,
) ([]semantics.Arrival, error) {
	if len(messages) == 0 {
		return nil, nil
	}
	isLast := transfer.Age >= b.forwarding.retry || transfer.Resubmits != nil // then a caller waits for the answer
	arrivals, err := b.tryToArrive(ctx, transfer, messages, isLast)
	if !errors.Is(err, semantics.ErrNotYet) {
		return arrivals, err
	}
	// What is there now may be another entity of the name. This transfer will never reach it, and others should not
	// have to wait.
	if to, found := b.store.Destination(ctx, transfer.To.Path); found == nil && to.Incarnation != 0 &&
		to.Incarnation != transfer.To.Incarnation {
		return b.tryToArrive(ctx, transfer, messages, true)
	}
	from := transfer.Source
	from.Path = semantics.WholePath(from.Path)
	if isLast {
		err = fmt.Errorf("the store has forgotten it, but not its partitions; create it again with the same options: %w", err)
	}
	return nil, fmt.Errorf("forwarding from %s to %q: %w", from, transfer.To.Path, err)
}

func (b *Broker) tryToArrive(
	ctx context.Context, transfer semantics.Transfer, messages []semantics.Publication, isLast bool,
) (arrivals []semantics.Arrival, err error) {
	if transfer.To.Kind == semantics.TopicKind {
		err = b.fanout.try(ctx, transfer.To.Path, func(r *router) error {
			for i, p := range messages {
				messages[i].Copies = r.copies(p.Message)
			}
			arrivals, err = b.store.Arrive(ctx, transfer, r.version, messages, isLast)
			return err
		})
		if semantics.CodeOf(err) != semantics.EntityNotFound {
			return arrivals, err
		}
	}
	return b.store.Arrive(ctx, transfer, 0, messages, isLast) // which says so if the topic is gone
}
