package partitioned

import (
	"cmp"
	"context"
	"errors"

	"github.com/sidebus/sidebus/semantics"
)

// Transfers from and to entities with several partitions.
//
// Each partition is a source of its own, under its own path, so what a transfer has set aside lies with its messages. A
// destination is the whole queue or topic: a transfer notes the incarnation of its record. What it carries arrives
// partition by partition, and each partition remembers what became of its part. Which part a message is in depends on
// the message alone, so any sidecar divides a transfer in the same way, and a repeat finds what has arrived, whatever
// the rules of a topic are by then.

// Destination implements semantics.Transfers.
func (s *Store) Destination(ctx context.Context, path string) (semantics.Destination, error) {
	to, err := s.Store.Destination(ctx, path)
	if err != nil || to.Incarnation != 0 {
		return to, err
	}
	switch w, err := s.find(ctx, path); {
	case semantics.CodeOf(err) == semantics.EntityNotFound, err == nil && (w == nil || w.topic != nil):
		return to, nil // a subscription cannot be a destination
	case err != nil:
		return to, err
	default:
		return semantics.Destination{
			Path: w.name, Kind: w.kind, Incarnation: w.incarnation, Definition: w.definition,
		}, nil
	}
}

// BeginTransfer implements semantics.Transfers. Of a whole queue it returns the transfer of one partition.
func (s *Store) BeginTransfer(
	ctx context.Context, source semantics.Source, to semantics.Destination, limit int,
) (transfer semantics.Transfer, err error) {
	err = s.on(ctx, source.Path, func() error {
		transfer, err = s.Store.BeginTransfer(ctx, source, to, limit)
		return err
	}, func(w *whole) error {
		failed := semantics.ErrForwardingChanged // unless some partition forwards there
		for p := range w.paths {
			transfer, err = s.Store.BeginTransfer(ctx, w.in(p, source), to, limit)
			switch {
			case err == nil && transfer.ID != "":
				return nil
			case err == nil:
				failed = nil
			case !errors.Is(err, semantics.ErrForwardingChanged):
				return inPartition(err, p)
			}
		}
		return failed
	})
	return carried(transfer), named(err)
}

// carried returns a transfer of a partition with its messages as those of its queue. They keep the tokens by which the
// partition knows them.
func carried(transfer semantics.Transfer) semantics.Transfer {
	if p := semantics.PartitionIn(transfer.Source.Path); p >= 0 {
		for _, m := range transfer.Messages {
			inWhole(m, p)
		}
	}
	return transfer
}

// BeginResubmission implements semantics.Transfers. A transfer has messages of one partition, so it looks at the first
// numbers, as far as they are of one.
func (s *Store) BeginResubmission(
	ctx context.Context, source semantics.Source, to semantics.Destination, numbers []int64, how semantics.Resubmitting,
) (begun semantics.BegunResubmission, err error) {
	err = s.on(ctx, source.Path, func() error {
		begun, err = s.Store.BeginResubmission(ctx, source, to, numbers, how)
		return err
	}, func(w *whole) error {
		own, p := w.firstOfOne(numbers)
		begun, err = s.Store.BeginResubmission(ctx, w.in(p, source), to, own, how)
		return inPartition(err, p)
	})
	begun.Transfer = carried(begun.Transfer)
	return begun, err
}

// firstOfOne returns the first of some numbers that are all of one partition, as it knows them.
func (w *whole) firstOfOne(numbers []int64) (own []int64, partition int) {
	for i, number := range numbers {
		n, p := w.at(number)
		if i > 0 && p != partition {
			break
		}
		own, partition = append(own, n), p
	}
	return own, partition
}

// EndTransfer implements semantics.Transfers.
func (s *Store) EndTransfer(ctx context.Context, transfer semantics.Transfer, fates []semantics.Fate) error {
	return named(s.Store.EndTransfer(ctx, transfer, fates))
}

// Arrive implements semantics.Transfers. What arrives in one partition does so in one step.
func (s *Store) Arrive(
	ctx context.Context, transfer semantics.Transfer, version int64, publications []semantics.Publication, isLast bool,
) ([]semantics.Arrival, error) {
	w := s.remembered(transfer.To.Path)
	if w == nil || w.incarnation != transfer.To.Incarnation {
		arrivals, err := s.Store.Arrive(ctx, transfer, version, publications, isLast)
		isThere := err != nil || len(arrivals) == 0 || arrivals[0].Refused != semantics.EntityNotFound
		if isThere && !errors.Is(err, semantics.ErrNotYet) {
			return arrivals, err
		}
		// It may be an entity that this Store does not know yet.
		found, failed := s.find(ctx, transfer.To.Path)
		switch {
		case failed != nil && semantics.CodeOf(failed) != semantics.EntityNotFound:
			return nil, failed
		case failed != nil || found == nil || found.incarnation != transfer.To.Incarnation:
			return s.gone(ctx, transfer, publications, isLast)
		}
		w = s.remember(unpinned{ctx}, found)
	}
	arrivals, err := s.arriveInEach(ctx, w, transfer, version, publications, isLast)
	if semantics.CodeOf(err) == semantics.EntityNotFound {
		return s.gone(ctx, transfer, publications, isLast)
	}
	return arrivals, named(err)
}

// gone is the answer of a destination that is not there, or not as the transfer knows it. All is refused, for with an
// entity has gone what had arrived there. If only its record was forgotten, what has arrived is still there: then the
// transfer waits, so that no message is there and also a transfer dead letter.
func (s *Store) gone(
	ctx context.Context, transfer semantics.Transfer, publications []semantics.Publication, isLast bool,
) ([]semantics.Arrival, error) {
	if !isLast {
		return nil, semantics.ErrNotYet
	}
	isForgotten, err := s.below.IsForgotten(ctx, transfer.To.Path, transfer.To.Incarnation)
	if err != nil {
		return nil, err
	}
	if isForgotten {
		return nil, semantics.ErrNotYet
	}
	refused := make([]semantics.Arrival, len(publications))
	for i := range refused {
		refused[i].Refused = semantics.EntityNotFound
	}
	return refused, nil
}

// ofCarried returns the partition of a message that was sent elsewhere. It depends on the message only.
func (w *whole) ofCarried(m *semantics.Message) int {
	return w.ofKey(cmp.Or(m.Partition(), m.MessageID))
}

// arriveInEach lets each partition take its part. One that fails does not keep the others from it: the repeat finds
// what has arrived. ENTITY_NOT_FOUND if the entity is gone, ErrRoutesChanged if the copies of some part are to be
// decided again. It returns an arrival for each message in any case.
func (s *Store) arriveInEach(
	ctx context.Context, w *whole, transfer semantics.Transfer, version int64, publications []semantics.Publication,
	isLast bool,
) ([]semantics.Arrival, error) {
	places, arrivals := make([][]int, len(w.paths)), make([]semantics.Arrival, len(publications))
	for i, publication := range publications {
		p := w.ofCarried(publication.Message)
		places[p] = append(places[p], i)
	}
	var failed error
	for p, own := range places {
		if len(own) == 0 {
			continue
		}
		part := transfer
		part.Carried = make([]int, len(own))
		for i, place := range own {
			part.Carried[i] = transfer.Place(place)
		}
		some, err := s.arriveIn(ctx, w, p, part, version, pick(publications, own), isLast)
		switch {
		case errors.Is(err, semantics.ErrOvertaken), semantics.CodeOf(err) == semantics.EntityNotFound:
			return arrivals, err
		case err != nil && (failed == nil || errors.Is(failed, semantics.ErrNotYet) ||
			errors.Is(err, semantics.ErrRoutesChanged)):
			failed = inPartition(err, p)
		}
		for i, a := range some {
			if a.SequenceNumber != 0 {
				a.SequenceNumber = semantics.InPartition(a.SequenceNumber, p)
			}
			arrivals[own[i]] = a
		}
	}
	return arrivals, failed
}

// arriveIn lets a partition take its part. If it does not follow the routes of its topic, it is made to.
func (s *Store) arriveIn(
	ctx context.Context, w *whole, p int, transfer semantics.Transfer, version int64, part []semantics.Publication,
	isLast bool,
) (arrivals []semantics.Arrival, err error) {
	transfer.To.Path, transfer.To.Incarnation = w.paths[p], semantics.AnyIncarnation
	arrive := func() error {
		arrivals, err = s.Store.Arrive(ctx, transfer, version, part, isLast)
		return err
	}
	err = s.inOne(ctx, w, func() error {
		if err := arrive(); !errors.Is(err, semantics.ErrRoutesChanged) {
			return err
		}
		if err := s.level(ctx, w, p); err != nil {
			return err
		}
		return arrive()
	})
	return arrivals, err
}

// unpinned is the context of a call without its values, for work of several goroutines: those of an Unbroken are for
// one.
type unpinned struct{ context.Context }

// Value implements context.Context.
func (unpinned) Value(any) any { return nil }
