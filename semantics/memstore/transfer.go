package memstore

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// transfer is a transfer under way. Its messages still lie where they were, under locks whose tokens no client has.
type transfer struct {
	number   int64 // no other one of this store has it, and later ones have higher ones
	to       semantics.Destination
	begunAt  time.Time
	messages []*message
	how      *semantics.Resubmitting
}

// noEnd is when a lock ends that is not to end.
var noEnd = time.Date(lastYear, 12, 31, 23, 59, 59, 0, time.UTC)

func (t *transfer) id() string { return strconv.FormatInt(t.number, 10) }

// all returns the messages; no transfer has none.
func (t *transfer) all() []*message {
	if t == nil {
		return nil
	}
	return t.messages
}

// forwardsTo is where a side of the queue forwards to, "" for nowhere (FWD-1, FWD-9).
func (q *queue) forwardsTo(side semantics.SubQueue) string {
	switch side {
	case semantics.MainQueue:
		return q.options.ForwardTo
	case semantics.DeadLetterQueue:
		return q.options.ForwardDeadLetteredMessagesTo
	default:
		return ""
	}
}

func (q *queue) forwards() bool {
	return q.forwardsTo(semantics.MainQueue) != "" || q.forwardsTo(semantics.DeadLetterQueue) != ""
}

// toForward returns the sides for which Forward has something to do.
func (q *queue) toForward() (sides []semantics.SubQueue) {
	for _, side := range []semantics.SubQueue{semantics.MainQueue, semantics.DeadLetterQueue} {
		if q.transfers[side] != nil || q.forwardsTo(side) != "" && q.box(side).available() > 0 {
			sides = append(sides, side)
		}
	}
	if q.transfers[semantics.TransferDeadLetterQueue] != nil {
		sides = append(sides, semantics.TransferDeadLetterQueue)
	}
	return sides
}

// Destination implements semantics.Transfers.
func (s *Store) Destination(ctx context.Context, path string) (semantics.Destination, error) {
	q, _, unlock, err := s.open(ctx, path)
	defer unlock()
	switch {
	case semantics.CodeOf(err) == semantics.EntityNotFound, err == nil && q.kind == semantics.SubscriptionKind:
		return semantics.Destination{Path: path}, nil
	case err != nil:
		return semantics.Destination{}, err
	default:
		return semantics.Destination{Path: q.name, Kind: q.kind, Incarnation: q.incarnation}, nil
	}
}

// BeginTransfer implements semantics.Transfers.
func (s *Store) BeginTransfer(
	ctx context.Context, source semantics.Source, to semantics.Destination, limit int,
) (semantics.Transfer, error) {
	q, now, unlock, err := s.open(ctx, source.Path)
	defer unlock()
	if err == nil && q.kind == semantics.TopicKind {
		err = semantics.NotFound(source.Path)
	}
	if err != nil {
		return semantics.Transfer{}, err
	}
	under := q.transfers[source.SubQueue]
	if under == nil {
		s.look(q, now)
		if to.Path == "" || semantics.Fold(to.Path) != semantics.Fold(q.forwardsTo(source.SubQueue)) {
			return semantics.Transfer{}, semantics.ErrForwardingChanged
		}
		under = s.begin(q, source.SubQueue, to, limit, now)
		if len(under.messages) == 0 {
			return semantics.Transfer{}, nil
		}
	}
	return under.view(source, now), nil
}

func (t *transfer) view(source semantics.Source, now time.Time) semantics.Transfer {
	view := semantics.Transfer{
		Source: source, ID: t.id(), Seed: t.id(), To: t.to, Age: now.Sub(t.begunAt), Resubmits: t.how,
	}
	for _, m := range t.messages {
		view.Messages = append(view.Messages, m.view())
	}
	return view
}

// BeginResubmission implements semantics.Transfers.
func (s *Store) BeginResubmission(
	ctx context.Context, source semantics.Source, to semantics.Destination, numbers []int64, how semantics.Resubmitting,
) (begun semantics.BegunResubmission, err error) {
	q, _, now, unlock, err := s.openToReceive(ctx, source, forAny)
	defer unlock()
	if err != nil {
		return begun, err
	}
	begun.Looked = len(numbers)
	under := q.transfers[source.SubQueue]
	if under == nil {
		var chosen []*message
		for _, m := range q.box(source.SubQueue).messages {
			if slices.Contains(numbers, m.sequence) && !m.locked() {
				chosen = append(chosen, m)
			}
		}
		begun.IsNew, under = true, s.set(q, source.SubQueue, to, chosen, now)
		under.how = &how
	}
	begun.Transfer = under.view(source, now)
	return begun, nil
}

// begin sets messages aside.
func (s *Store) begin(q *queue, side semantics.SubQueue, to semantics.Destination, limit int, now time.Time) *transfer {
	chosen := q.receivable(side, scope{})
	return s.set(q, side, to, chosen[:min(len(chosen), limit)], now)
}

// set sets messages aside. Without any there is no transfer.
func (s *Store) set(
	q *queue, side semantics.SubQueue, to semantics.Destination, chosen []*message, now time.Time,
) *transfer {
	begun := &transfer{to: to, begunAt: now, messages: chosen}
	if len(chosen) == 0 {
		return begun
	}
	for _, m := range chosen {
		m.visibleAt, m.skipsOrder = time.Time{}, false // as whenever a message is taken
		m.in.lock(m, noEnd)
	}
	s.lastTransfer++
	begun.number = s.lastTransfer
	q.transfers[side] = begun
	return begun
}

// EndTransfer implements semantics.Transfers.
func (s *Store) EndTransfer(ctx context.Context, over semantics.Transfer, fates []semantics.Fate) error {
	q, now, unlock, err := s.open(ctx, over.Source.Path)
	defer unlock()
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return nil
	}
	if err != nil {
		return err
	}
	side := over.Source.SubQueue
	under := q.transfers[side]
	if under == nil || under.id() != over.ID {
		return nil
	}
	if err := q.checkUndelivered(under, fates); err != nil {
		return err
	}
	delete(q.transfers, side)
	s.wakingFor(q, now, func() {
		for i, m := range under.messages {
			if fates[i].Stays {
				q.free(m, now, false, time.Time{})
				continue
			}
			m.in.remove(m)
			switch fate := fates[i]; {
			case fate.DeadLetter == nil:
			case fate.KeepsQueue:
				q.deadLetter(m, now, copyOf(*fate.DeadLetter))
			default:
				q.deadLetterIn(&q.undelivered, m, now, copyOf(*fate.DeadLetter))
			}
		}
	})
	return nil
}

// checkUndelivered checks that the transfer dead-letter queue can take what goes there: it may hold as much as the
// queue itself.
func (q *queue) checkUndelivered(under *transfer, fates []semantics.Fate) error {
	bytes := int64(0)
	for i, m := range under.messages {
		if fates[i].DeadLetter != nil && !fates[i].KeepsQueue {
			bytes += m.size
		}
	}
	if limit, actual := q.bounded().options.MaxBytes(), q.undelivered.bytes+bytes; bytes > 0 && actual > limit {
		return semantics.Full(q.name, semantics.BoundUndelivered, actual, limit, actual)
	}
	return nil
}

// Unbroken implements semantics.Transfers. This store never comes back.
func (s *Store) Unbroken(ctx context.Context, do func(context.Context) error) error { return do(ctx) }
