package memstore

import (
	"context"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// Send implements semantics.Sender. The checks stand in the order of ERR-5: existence, sizes, status, room.
func (s *Store) Send(ctx context.Context, path string, messages []*semantics.Message) (int64, error) {
	q, now, unlock, err := s.open(ctx, path)
	defer unlock()
	if err != nil {
		return 0, err
	}
	total, err := q.checkSizes(messages)
	if err != nil {
		return 0, err
	}
	if !q.options.Status.CanSend() {
		return 0, disabled(q, "sends")
	}
	if limit, actual := q.options.MaxBytes(), q.main.bytes+q.dead.bytes+total; actual > limit {
		return 0, full(q, "bytes", limit, actual)
	}
	limit, actual := q.options.MaxMessageCount, int64(len(q.main.messages)+len(messages))
	if limit > 0 && actual > limit {
		return 0, full(q, "messages", limit, actual)
	}

	first := q.lastSequence + 1
	for _, sent := range messages {
		q.lastSequence++
		m := newMessage(sent, q.lastSequence, now, q.options.DefaultMessageTimeToLive)
		q.main.add(m)
		q.expect(m.expiresAt)
	}
	q.accessedAt = now
	s.wake(semantics.Source{Path: path}, len(messages))
	return first, nil
}

// checkSizes checks each message and, when there are several, their sum (MSG-20, MSG-21), which it returns.
func (q *queue) checkSizes(messages []*semantics.Message) (int64, error) {
	total := int64(0)
	for i, m := range messages {
		size := m.Size()
		if limit := q.options.MaxMessageBytes(); size > limit {
			return 0, semantics.SizeExceeded("message", size, limit).With(semantics.DetailIndex, strconv.Itoa(i))
		}
		total += size
	}
	if limit := q.options.MaxBatchBytes(); len(messages) > 1 && total > limit {
		return 0, semantics.SizeExceeded("batch", total, limit)
	}
	return total, nil
}
