package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// maxRecheck is the longest a waiting receive sleeps without looking again.
const maxRecheck = 10 * time.Second

// openToReceive opens a queue for a verb that counts as receive (STAT-2). The checks stand in the order of ERR-5:
// existence, status, kind; what passes them stamps the activity (IDLE-5) and processes what is due; last comes the lock
// of the session.
func (s *Store) openToReceive(ctx context.Context, source semantics.Source, fits kind) (
	q *queue, in scope, now time.Time, unlock func(), err error,
) {
	q, now, unlock, err = s.open(ctx, source.Path)
	if err != nil {
		return nil, scope{}, now, unlock, err
	}
	if q.kind != semantics.TopicKind &&
		!q.options.Status.CanReceive() { // a topic has one status for all verbs except sends (STAT-1)
		return nil, scope{}, now, unlock, disabled(q)
	}
	if err := fits(q, source); err != nil {
		return nil, scope{}, now, unlock, err
	}
	q.accessedAt = now
	s.look(q, now)
	in, err = q.scopeOf(source, now)
	return q, in, now, unlock, err
}

// Receive implements semantics.Receiver.
func (s *Store) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	q, in, now, unlock, err := s.openToReceive(ctx, source, all(forMessages, forTaking))
	defer unlock()
	if err != nil {
		return semantics.Batch{}, err
	}
	batch := semantics.Batch{}
	offered := q.receivable(source.SubQueue, in)
	for _, m := range offered[:fitting(offered[:min(limit, len(offered))])] {
		batch.Messages = append(batch.Messages, q.take(m, in.lockEnd(q, now)))
	}
	batch.RecheckAfter = q.recheckAfter(now)
	if register == semantics.RegisterAlways || register == semantics.RegisterIfEmpty && len(batch.Messages) == 0 {
		s.waiting[source.Fold()] = true
	}
	return batch, nil
}

// fitting is how many of the first messages one answer may have.
func fitting(messages []*message) int {
	return semantics.Fitting(
		messages, semantics.MaxAnswerBytes,
		func(m *message) int64 { return m.view().AnswerSize() },
	)
}

// receivable returns what a receive from a source may take, in the order in which it is handed out.
func (q *queue) receivable(sub semantics.SubQueue, in scope) []*message {
	if in.held != nil {
		return q.offeredTo(in.held, q.messagesOf(in.session))
	}
	var free []*message
	for _, m := range q.box(sub).messages {
		if m.available() {
			free = append(free, m)
		}
	}
	return free
}

// take locks a message and returns it as it is handed out (MSG-10).
func (q *queue) take(m *message, until time.Time) *semantics.Received {
	m.visibleAt, m.skipsOrder = time.Time{}, false
	m.in.lock(m, until)
	q.expect(m.due())
	r := m.view()
	r.DeliveryCount, r.LockToken, r.LockedUntil = m.count+1, m.token, m.lockedUntil
	return r
}

// lockEnd is when a lock that is taken or renewed now ends (LOCK-1, LOCK-3).
func (q *queue) lockEnd(now time.Time) time.Time {
	return now.Add(q.options.LockDuration).Truncate(time.Millisecond)
}

// recheckAfter is until the next instant at which time does something here. A lock that others take meanwhile cannot
// end before LockDuration.
func (q *queue) recheckAfter(now time.Time) time.Duration {
	after := min(maxRecheck, q.options.LockDuration)
	if !q.due.IsZero() {
		after = min(after, q.due.Sub(now))
	}
	return max(after, time.Millisecond)
}

// choose finds the messages with the given numbers, each once and in the order given, and those numbers that find
// returns none for.
func choose(numbers []int64, find func(int64) *message) (chosen []*message, missing []int64) {
	for i, number := range numbers {
		if slices.Contains(numbers[:i], number) {
			continue
		}
		if m := find(number); m != nil {
			chosen = append(chosen, m)
		} else {
			missing = append(missing, number)
		}
	}
	return chosen, missing
}

// choose finds unlocked messages of a state, with a session only those of it (DEFER-7). A deferred one that has expired
// is ended now, and so is not found, whatever becomes of the call (TTL-18).
func (s *Store) choose(
	q *queue, in scope, box *box, state semantics.State, numbers []int64, now time.Time,
) ([]*message, error) {
	group := semantics.ShowAvailable
	if state == semantics.Deferred {
		group = semantics.ShowDeferred
	}
	var over []*message
	chosen, missing := choose(numbers, func(number int64) *message {
		m := box.find(number)
		if m == nil || !in.has(m) || m.group() != group {
			return nil
		}
		if m.expired(now) {
			over = append(over, m)
			return nil
		}
		return m
	})
	slices.SortFunc(over, byNumber)
	s.wakingFor(q, now, func() {
		for _, m := range over {
			if m.in == &q.main { // it may have gone with another one of its session
				q.decide(m, now)
			}
		}
	})
	if len(missing) > 0 {
		return nil, semantics.NumbersNotFound(q.name, state, missing)
	}
	return chosen, nil
}

// ReceiveByNumber implements semantics.Receiver.
func (s *Store) ReceiveByNumber(
	ctx context.Context, source semantics.Source, state semantics.State, numbers []int64,
) ([]*semantics.Received, error) {
	fits := forMessages
	if state == semantics.Active {
		fits = forPlain
	}
	q, in, now, unlock, err := s.openToReceive(ctx, source, all(fits, forTaking))
	defer unlock()
	if err != nil {
		return nil, err
	}
	chosen, err := s.choose(q, in, q.box(source.SubQueue), state, numbers, now)
	if err != nil {
		return nil, err
	}
	if n := fitting(chosen); n < len(chosen) {
		first := make([]int64, n)
		for i := range first {
			first[i] = chosen[i].sequence
		}
		return nil, semantics.TooLargeAnswer(first)
	}
	taken := make([]*semantics.Received, len(chosen))
	for i, m := range chosen {
		taken[i] = q.take(m, in.lockEnd(q, now))
	}
	return taken, nil
}

// Reactivate implements semantics.Receiver.
func (s *Store) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	q, in, now, unlock, err := s.openToReceive(ctx, source, forAny)
	defer unlock()
	if err != nil {
		return err
	}
	chosen, err := s.choose(q, in, q.box(source.SubQueue), semantics.Deferred, numbers, now)
	if err != nil {
		return err
	}
	s.wakingFor(q, now, func() {
		for _, m := range chosen {
			m.deferred, m.lasts = false, false
			q.expect(m.due())
		}
	})
	return nil
}

// Peek implements semantics.Receiver.
func (s *Store) Peek(
	ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show,
) ([]*semantics.Received, error) {
	q, in, now, unlock, err := s.openToReceive(ctx, source, forPeek)
	defer unlock()
	if err != nil {
		return nil, err
	}
	var seen []*semantics.Received
	for _, m := range q.inOrder(source.SubQueue) {
		if m.sequence < from || show&m.group() == 0 || !in.has(m) {
			continue
		}
		if len(seen) == limit {
			break
		}
		r := m.view()
		r.Locked, r.Expired, r.VisibleAt = m.locked(), m.expired(now), m.visibleAt
		if m.scheduled {
			r.VisibleAt = m.scheduledFor()
		}
		seen = append(seen, r)
	}
	return seen[:semantics.Fitting(seen, semantics.MaxAnswerBytes, (*semantics.Received).AnswerSize)], nil
}

// inOrder returns all messages of a source, the scheduled ones of the main queue among them, by number.
func (q *queue) inOrder(sub semantics.SubQueue) []*message {
	rows := slices.Clone(q.box(sub).messages)
	if sub == semantics.MainQueue {
		rows = append(rows, q.scheduled.messages...)
	}
	slices.SortFunc(rows, byNumber)
	return rows
}
