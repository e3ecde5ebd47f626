package memstore

import (
	"context"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Send implements semantics.Sender. The checks stand in the order of ERR-5: existence, sizes, status, kind, partition,
// quotas.
func (s *Store) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	q, now, unlock, err := s.openKind(ctx, semantics.QueueKind, path)
	defer unlock()
	if err != nil {
		return nil, err
	}
	return s.send(q, messages, now)
}

func (s *Store) send(q *queue, messages []*semantics.Message, now time.Time) ([]semantics.Stored, error) {
	if err := q.checkSizes(messages); err != nil {
		return nil, err
	}
	if !q.options.Status.CanSend() {
		return nil, disabled(q)
	}
	if err := q.checkSessions(messages); err != nil {
		return nil, err
	}
	if err := q.checkPartitions(messages); err != nil {
		return nil, err
	}
	fresh := q.newAmong(messages, now)
	if err := q.checkRoom(fresh, len(fresh)); err != nil {
		return nil, err
	}

	stored := make([]semantics.Stored, len(messages))
	s.wakingFor(q, now, func() {
		for i, sent := range messages {
			if number, is := q.duplicateOf(sent, now); is { // also of one of this call (DUP-8)
				stored[i] = semantics.Stored{SequenceNumber: number, Deduplicated: true}
				continue
			}
			stored[i].SequenceNumber = q.accept(newMessage(sent, q.options.DefaultMessageTimeToLive), now)
			q.remember(sent, stored[i].SequenceNumber, now)
		}
	})
	q.accessedAt = now
	return stored, nil
}

// accept stores a message, scheduled if it is for later (SCHED-2, SCHED-4), and returns its number.
func (q *queue) accept(m *message, now time.Time) int64 {
	m.sequence, m.enqueuedAt = q.next(), now
	if m.sent.ScheduledAt.After(now) {
		m.scheduled = true
		m.live(m.sent.ScheduledAt)
		q.scheduled.add(m)
	} else {
		m.live(now)
		q.main.add(m)
	}
	q.join(m, now)
	q.expect(m.due())
	return m.sequence
}

// checkSizes checks each message and, when there are several, their sum (MSG-20, MSG-21).
func (q *queue) checkSizes(messages []*semantics.Message) error {
	total := int64(0)
	for i, m := range messages {
		size := m.Size()
		if limit := q.options.MaxMessageBytes(); size > limit {
			return semantics.MessageTooLarge(size, limit).With(semantics.DetailIndex, strconv.Itoa(i))
		}
		total += size
	}
	if limit := q.options.MaxBatchBytes(); len(messages) > 1 && total > limit {
		return semantics.BatchTooLarge(total, limit)
	}
	return nil
}

// checkSessions lets only messages of sessions into a queue with sessions (SESS-6).
func (q *queue) checkSessions(messages []*semantics.Message) error {
	if !q.options.RequiresSession {
		return nil
	}
	for i, m := range messages {
		if m.SessionID == "" {
			return semantics.SessionMissing(q.name, i)
		}
	}
	return nil
}

// checkPartitions lets only messages of one partition into a partitioned queue together (BATCH-4).
func (q *queue) checkPartitions(messages []*semantics.Message) error {
	if !q.options.EnablePartitioning {
		return nil
	}
	for i, m := range messages {
		if m.Partition() != messages[0].Partition() {
			return semantics.PartitionsMixed(q.name, false, i)
		}
	}
	return nil
}

// newAmong leaves out the duplicates, of the history and among the messages themselves.
func (q *queue) newAmong(messages []*semantics.Message, now time.Time) []*semantics.Message {
	var kept []*semantics.Message
	isNew := q.newOnes(now)
	for _, m := range messages {
		if isNew(m) {
			kept = append(kept, m)
		}
	}
	return kept
}

// newOnes returns a function that reports for one message after the other whether it is new: a duplicate neither of the
// history nor of one that it was asked about before.
func (q *queue) newOnes(now time.Time) func(*semantics.Message) bool {
	seen := map[string]bool{}
	return func(m *semantics.Message) bool {
		if !q.options.RequiresDuplicateDetection {
			return true
		}
		key := q.duplicateKey(m)
		_, is := q.duplicateOf(m, now)
		isNew := !is && !seen[key]
		seen[key] = seen[key] || isNew
		return isNew
	}
}

// checkRoom checks that the quotas permit all the messages, none of them a duplicate (QUOTA-6, QUOTA-13, DUP-11). So
// many of them do not become dead letters at once.
func (q *queue) checkRoom(messages []*semantics.Message, active int) error {
	if len(messages) == 0 {
		return nil
	}
	total := int64(0)
	for _, m := range messages {
		total += m.Size()
	}
	if limit, actual := q.options.MaxBytes(), q.bytes()+q.claims.bytes+total; actual > limit {
		return full(q, semantics.BoundBytes, actual, limit)
	}
	if err := q.checkCount(active); err != nil && active > 0 {
		return err
	}
	return q.checkHistory(len(messages))
}

// checkCount checks that n messages more are within MaxMessageCount.
func (q *queue) checkCount(n int) error {
	limit := q.options.MaxMessageCount
	actual := int64(len(q.main.messages) + len(q.scheduled.messages) + q.claims.messages + n)
	if limit > 0 && actual > limit {
		return full(q, semantics.BoundMessages, actual, limit)
	}
	return nil
}

// checkHistory checks that n ids more can be remembered. The window must have been applied by duplicateOf.
func (q *queue) checkHistory(n int) error {
	limit := q.options.DuplicateHistoryMaxEntries
	if !q.options.RequiresDuplicateDetection || int64(len(q.history)+q.claims.messages+n) <= limit {
		return nil
	}
	return semantics.HistoryFull(q.name, limit)
}

// CancelScheduled implements semantics.Sender. What is due in a queue is activated first, so it can no longer be
// cancelled. In a topic it can be until it is activated.
func (s *Store) CancelScheduled(ctx context.Context, path string, numbers []int64) error {
	q, now, unlock, err := s.openToCancel(ctx, path)
	defer unlock()
	if err != nil {
		return err
	}
	chosen, missing := choose(numbers, q.scheduled.find)
	if len(missing) > 0 {
		return semantics.NumbersNotFound(q.name, semantics.Scheduled, missing)
	}
	s.wakingFor(q, now, func() {
		for _, m := range chosen {
			q.cancel(m)
		}
	})
	return nil
}

// CancelScheduledByID implements semantics.Sender.
func (s *Store) CancelScheduledByID(ctx context.Context, path string, ids []string) (int, error) {
	q, now, unlock, err := s.openToCancel(ctx, path)
	defer unlock()
	if err != nil {
		return 0, err
	}
	before := len(q.scheduled.messages)
	s.wakingFor(q, now, func() {
		for _, id := range ids {
			for i := len(q.scheduled.messages) - 1; i >= 0; i-- {
				if m := q.scheduled.messages[i]; m.sent.MessageID == id {
					q.cancel(m)
				}
			}
		}
	})
	return before - len(q.scheduled.messages), nil
}

func (s *Store) openToCancel(ctx context.Context, path string) (*queue, time.Time, func(), error) {
	q, now, unlock, err := s.open(ctx, path)
	if err != nil {
		return nil, now, unlock, err
	}
	if !q.options.Status.CanSend() {
		return nil, now, unlock, disabled(q)
	}
	q.accessedAt = now
	s.look(q, now)
	return q, now, unlock, nil
}

func (q *queue) cancel(m *message) {
	q.scheduled.remove(m)
	q.forgetCancelled(m)
}
