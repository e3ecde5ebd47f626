package memstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// decision is what became of the messages of a transfer at its destination.
type decision struct {
	transfer int64
	arrivals map[int]semantics.Arrival // by place in the transfer
	at       time.Time
}

// decisionKept is for how long the decision about a source's last transfer is kept after the source has gone. A sidecar
// may still continue that transfer.
const decisionKept = time.Hour

func byPlace(transfer semantics.Transfer, decided []semantics.Arrival) map[int]semantics.Arrival {
	arrivals := map[int]semantics.Arrival{}
	for i, a := range decided {
		arrivals[transfer.Place(i)] = a
	}
	return arrivals
}

// again returns what was decided about messages that are carried again.
func (d decision) again(transfer semantics.Transfer, messages int) []semantics.Arrival {
	arrivals := make([]semantics.Arrival, messages)
	for i := range arrivals {
		was, is := d.arrivals[transfer.Place(i)]
		if arrivals[i] = was; !is {
			arrivals[i].Refused = semantics.Internal
		}
	}
	return arrivals
}

// Arrive implements semantics.Transfers.
func (s *Store) Arrive(
	ctx context.Context, transfer semantics.Transfer, version int64, publications []semantics.Publication, isLast bool,
) ([]semantics.Arrival, error) {
	q, now, unlock, err := s.open(ctx, transfer.To.Path)
	defer unlock()
	isAny := transfer.To.Incarnation == semantics.AnyIncarnation
	isGone := semantics.CodeOf(err) == semantics.EntityNotFound ||
		err == nil && q.incarnation != transfer.To.Incarnation
	if !isAny && isGone {
		return allRefused(semantics.EntityNotFound, len(publications), isLast)
	}
	if err != nil {
		return nil, err
	}
	from := transfer.Source.Fold()
	number, err := strconv.ParseInt(transfer.ID, 10, 64)
	if err != nil {
		return nil, err
	}
	last, is := q.arrived[from]
	if is && last.transfer > number {
		return nil, semantics.ErrOvertaken
	}
	if is && last.transfer == number {
		return last.again(transfer, len(publications)), nil
	}
	if q.kind == semantics.TopicKind && q.routesVersion != version {
		return nil, semantics.ErrRoutesChanged
	}
	if how := transfer.Resubmits; how != nil && how.BypassDuplicates {
		defer func(on bool) { q.options.RequiresDuplicateDetection = on }(q.options.RequiresDuplicateDetection)
		q.options.RequiresDuplicateDetection = false // for as long as the store is locked
	}
	decided := q.decideArrivals(publications, transfer.Resubmits != nil, now)
	if !isLast && slices.ContainsFunc(decided, func(a semantics.Arrival) bool { return a.Refused != "" }) {
		return nil, semantics.ErrNotYet
	}
	s.forgetDecisions(q, now)
	q.arrived[from] = decision{number, byPlace(transfer, decided), now}
	stored := s.takeIn(q, publications, decided, now)
	if transfer.Resubmits != nil && q.kind == semantics.QueueKind {
		for i := range decided {
			decided[i].Stored = stored[i]
			if decided[i].Refused == "" {
				q.accessedAt = now
			}
		}
	}
	return decided, nil
}

func allRefused(code semantics.Code, n int, isLast bool) ([]semantics.Arrival, error) {
	if !isLast {
		return nil, semantics.ErrNotYet
	}
	return slices.Repeat([]semantics.Arrival{{Refused: code}}, n), nil
}

// forgetDecisions forgets those about sources that are gone.
func (s *Store) forgetDecisions(q *queue, now time.Time) {
	maps.DeleteFunc(q.arrived, func(from semantics.Source, d decision) bool {
		return s.queues[from.Path] == nil && now.Sub(d.at) > decisionKept
	})
}

// decideArrivals decides about messages one by one, as if those before that are taken were there already.
func (q *queue) decideArrivals(
	publications []semantics.Publication, resubmits bool, now time.Time,
) []semantics.Arrival {
	arrivals := make([]semantics.Arrival, len(publications))
	var taken []semantics.Publication
	for i, p := range publications {
		unscheduled := *p.Message // since it was that before
		unscheduled.ScheduledAt = time.Time{}
		p.Message = &unscheduled
		code := semantics.CodeOf(q.checkArrival(p.Message, append(taken, p), now))
		isFit := code != semantics.MessageSizeExceeded && code != semantics.EntityDisabled
		if resubmits && isFit && q.lacksSession(p.Message) {
			code = semantics.SessionIDMissing
		}
		if arrivals[i].Refused = code; code == "" {
			taken = append(taken, p)
		}
	}
	return arrivals
}

// checkArrival checks the last one of some messages, of which the others can be taken. The checks stand in the order of
// ERR-5, as in Send.
func (q *queue) checkArrival(m *semantics.Message, all []semantics.Publication, now time.Time) error {
	if err := q.checkSizes([]*semantics.Message{m}); err != nil {
		return err
	}
	if err := q.checkCopies(all[len(all)-1:], now); err != nil {
		return err
	}
	if !q.options.Status.CanSend() {
		return disabled(q)
	}
	if q.kind == semantics.TopicKind {
		return q.checkPublications(all, now)
	}
	messages := make([]*semantics.Message, len(all))
	for i, p := range all {
		messages[i] = p.Message
	}
	fresh, active := q.newAmong(messages, now), 0
	for _, m := range fresh {
		if !q.lacksSession(m) {
			active++
		}
	}
	return q.checkRoom(fresh, active)
}

// lacksSession reports whether a forwarded message becomes a dead letter on arrival (DLQ-9).
func (q *queue) lacksSession(m *semantics.Message) bool {
	return q.options.RequiresSession && m.SessionID == ""
}

// takeIn stores what was decided to be taken, except duplicates, and returns the numbers.
func (s *Store) takeIn(
	q *queue, publications []semantics.Publication, decided []semantics.Arrival, now time.Time,
) []semantics.Stored {
	copies, stored := arrivals{}, make([]semantics.Stored, len(publications))
	s.wakingFor(q, now, func() {
		for i, p := range publications {
			if decided[i].Refused != "" {
				continue
			}
			if original, is := q.duplicateOf(p.Message, now); is {
				stored[i] = semantics.Stored{SequenceNumber: original, Deduplicated: true}
				continue
			}
			number := q.next()
			stored[i].SequenceNumber = number
			q.remember(p.Message, number, now)
			if q.kind == semantics.TopicKind {
				copies.add(q, p, number, q.options.DefaultMessageTimeToLive)
			} else {
				q.takeForwarded(p, number, now)
			}
		}
	})
	s.deliver(copies, now)
	return stored
}

// takeForwarded stores a forwarded message in a queue (FWD-4).
func (q *queue) takeForwarded(p semantics.Publication, number int64, now time.Time) {
	m := newMessage(p.Message, q.options.DefaultMessageTimeToLive)
	m.sequence, m.enqueuedAt = number, now
	m.live(now)
	m.endBy(p.ExpiresAt)
	if q.lacksSession(p.Message) {
		reason, description := semantics.ReasonNoSession, "the queue requires a session id"
		q.deadLetter(m, now, semantics.DeadLetterTexts{Reason: &reason, Description: &description})
		return
	}
	q.main.add(m)
	q.join(m, now)
	q.expect(m.due())
}
