package memstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Publish implements semantics.Topics.
func (s *Store) Publish(
	ctx context.Context, topic string, version int64, calls [][]semantics.Publication,
) []semantics.SendOutcome {
	t, now, unlock, err := s.openRoutes(ctx, topic, version)
	defer unlock()
	outcomes := make([]semantics.SendOutcome, len(calls))
	for i, call := range calls {
		if outcomes[i].Err = err; err == nil {
			outcomes[i].Stored, outcomes[i].Err = s.publish(t, call, now)
		}
	}
	return outcomes
}

// publish runs one call. The checks stand in the order of ERR-5, as in Send.
func (s *Store) publish(t *queue, call []semantics.Publication, now time.Time) ([]semantics.Stored, error) {
	messages := make([]*semantics.Message, len(call))
	for i, p := range call {
		messages[i] = p.Message
	}
	if err := t.checkSizes(messages); err != nil {
		return nil, err
	}
	if err := t.checkCopies(call, now); err != nil {
		return nil, err
	}
	if !t.options.Status.CanSend() {
		return nil, disabled(t)
	}
	if err := t.checkPartitions(messages); err != nil {
		return nil, err
	}
	if err := t.checkPublications(call, now); err != nil {
		return nil, err
	}

	stored, arrivals := make([]semantics.Stored, len(call)), arrivals{}
	for i, p := range call {
		if number, is := t.duplicateOf(p.Message, now); is { // also of one of this call (DUP-8)
			stored[i] = semantics.Stored{SequenceNumber: number, Deduplicated: true}
			continue
		}
		stored[i].SequenceNumber = t.next()
		t.remember(p.Message, stored[i].SequenceNumber, now)
		if isForLater(p.Message, now) {
			s.schedule(t, p.Message, stored[i].SequenceNumber, now)
			continue
		}
		arrivals.add(t, p, stored[i].SequenceNumber, t.options.DefaultMessageTimeToLive)
	}
	s.deliver(arrivals, now)
	t.accessedAt = now
	return stored, nil
}

// checkCopies checks how many copies a call makes at once. What is scheduled makes its copies later, in a step of its
// own.
func (q *queue) checkCopies(call []semantics.Publication, now time.Time) error {
	var together semantics.CopyLoad
	for i, p := range call {
		if !isForLater(p.Message, now) {
			together.Add(p.Copies)
			continue
		}
		var alone semantics.CopyLoad
		alone.Add(p.Copies)
		if err := alone.Check(q.name, q.options.MaxMessageBytes(), i); err != nil {
			return err
		}
	}
	return together.Check(q.name, q.options.MaxMessageBytes(), -1)
}

// isForLater reports whether a message that is sent now is to be scheduled (SCHED-2, SCHED-4).
func isForLater(m *semantics.Message, now time.Time) bool {
	return m.ScheduledAt.Truncate(time.Millisecond).After(now)
}

// schedule keeps a message at its topic until its time has come. Who gets copies is decided then (SCHED-7).
func (s *Store) schedule(t *queue, sent *semantics.Message, number int64, now time.Time) {
	m := newMessage(sent, t.options.DefaultMessageTimeToLive)
	m.sequence, m.enqueuedAt, m.scheduled = number, now, true
	m.live(m.scheduledFor())
	t.scheduled.add(m)
	s.noteUpkeep()
}

// checkPublications checks that each message except duplicates has a subscription, if it must (TOPIC-3), and that the
// quotas permit them (TOPIC-7, QUOTA-13, DUP-11).
func (q *queue) checkPublications(call []semantics.Publication, now time.Time) error {
	isNew, fresh := q.newOnes(now), 0
	bytes, copies := int64(0), map[string]int{}
	for i, p := range call {
		if !isNew(p.Message) {
			continue
		}
		fresh++
		if isForLater(p.Message, now) {
			bytes += p.Message.Size()
			continue
		}
		if len(p.Copies) == 0 && q.options.FailIfUnmatched {
			return semantics.Unmatched(q.name, i)
		}
		for _, c := range p.Copies {
			bytes += c.Message.Size()
			if c.DeadLetter == nil {
				copies[c.Subscription]++
			}
		}
	}
	if fresh == 0 {
		return nil
	}
	if limit, actual := q.options.MaxBytes(), q.bytes()+bytes; actual > limit {
		return full(q, semantics.BoundBytes, actual, limit)
	}
	for _, name := range slices.Sorted(maps.Keys(copies)) { // the first one that is full is named
		if sub := q.subscriptions[name]; sub.options.Overflow == semantics.RejectOverflow {
			if err := sub.checkCount(copies[name]); err != nil {
				return err
			}
		}
	}
	return q.checkHistory(fresh)
}

// arrivals are the copies on their way into each subscription, in order.
type arrivals map[*queue][]arrival

type arrival struct {
	semantics.Copy
	fromTopic int64         // the number the topic assigned to the message
	ttl       time.Duration // the longest that the topic permits
	endsBy    time.Time     // TTL-24; zero: whenever
}

func (a arrivals) add(t *queue, p semantics.Publication, number int64, ttl time.Duration) {
	for _, c := range p.Copies {
		sub := t.subscriptions[c.Subscription]
		a[sub] = append(a[sub], arrival{c, number, ttl, p.ExpiresAt})
	}
}

func (s *Store) deliver(all arrivals, now time.Time) {
	for sub, some := range all {
		s.wakingFor(sub, now, func() {
			for _, a := range some {
				sub.arrive(a, now)
			}
		})
	}
}

// arrive stores a copy, which lives no longer than message, topic and subscription each permit (TTL-6). It is not
// activity of the subscription (IDLE-4).
func (q *queue) arrive(a arrival, now time.Time) {
	m := newMessage(a.Message, min(a.ttl, q.options.DefaultMessageTimeToLive))
	m.sequence, m.fromTopic, m.enqueuedAt = q.next(), a.fromTopic, now
	m.live(now)
	m.endBy(a.endsBy)
	switch {
	case a.DeadLetter != nil:
		q.deadLetter(m, now, copyOf(*a.DeadLetter))
	case !q.makeSpace():
		reason, description := semantics.ReasonOverflow, "the subscription may hold "+strconv.FormatInt(
			q.options.MaxMessageCount, 10,
		)+" messages"
		q.deadLetter(m, now, semantics.DeadLetterTexts{Reason: &reason, Description: &description})
	default:
		q.main.add(m)
		q.join(m, now)
		q.expect(m.due())
	}
}

// makeSpace drops messages as Overflow says so that one more is within MaxMessageCount, and reports whether it is
// (TOPIC-7). What REJECT refuses has been refused before; it does not hold up an activation (SCHED-12).
func (q *queue) makeSpace() bool {
	if q.checkCount(1) == nil || q.options.Overflow == semantics.RejectOverflow {
		return true
	}
	if q.options.Overflow == semantics.DropOldestOverflow {
		for _, m := range q.main.messages {
			if m.group() == semantics.ShowAvailable {
				q.main.remove(m)
				return true
			}
		}
	}
	return false
}

// Due implements semantics.Topics.
func (s *Store) Due(ctx context.Context, topic string, limit int) ([]*semantics.Received, error) {
	t, now, unlock, err := s.openKind(ctx, semantics.TopicKind, topic)
	defer unlock()
	if err != nil {
		return nil, err
	}
	due := t.toActivate(now)
	views := make([]*semantics.Received, min(len(due), limit))
	for i := range views {
		views[i] = due[i].view()
	}
	return views, nil
}

// Activate implements semantics.Topics. The topic's default lifetime was applied when the messages were sent (TTL-22).
func (s *Store) Activate(ctx context.Context, topic string, version int64, activations []semantics.Activation) error {
	t, now, unlock, err := s.openRoutes(ctx, topic, version)
	defer unlock()
	if err != nil {
		return err
	}
	arrivals := arrivals{}
	for _, a := range activations {
		m := t.scheduled.find(a.SequenceNumber)
		if m == nil || !reached(m.scheduledFor(), now) || !isMeant(m, a) {
			continue
		}
		t.scheduled.remove(m)
		t.used(now) // until now it had scheduled messages (IDLE-3)
		arrivals.add(t, a.Publication, t.next(), semantics.Never)
	}
	s.deliver(arrivals, now)
	return nil
}

// isMeant reports whether an activation is of this message, not of one that had its number before.
func isMeant(m *message, a semantics.Activation) bool {
	return m.enqueuedAt.Equal(a.EnqueuedAt) && m.sent.MessageID == a.Message.MessageID
}
