package memstore

import (
	"cmp"
	"slices"
	"time"
)

// look processes what is due on the whole queue and wakes those who wait for what became available. Every call on a
// queue does this first.
func (s *Store) look(q *queue, now time.Time) {
	if q.due.IsZero() || now.Before(q.due) {
		return
	}
	s.wakingFor(q, now, func() {
		q.endMain(now)
		q.endSessions(now)
		q.endDelays(&q.main, now)
		q.activate(now)
		q.endStates(now)
		for _, dead := range []*box{&q.dead, &q.undelivered} {
			q.endDead(dead, now)
			q.endDelays(dead, now)
		}
	})
	q.due = time.Time{}
	for _, box := range []*box{&q.main, &q.scheduled, &q.dead, &q.undelivered} {
		for _, m := range box.messages {
			q.expect(m.due())
		}
	}
	for _, on := range q.sessions {
		q.expect(on.due())
	}
}

// endMain takes back locks that ended (LOCK-6) and then moves or drops what has expired or failed too often (TTL-8,
// TTL-11, DC-5), in one order of sequence number, in which the dead letters of one look then are. A session's lock ends
// for all its messages at once, so none of them counts as locked when another one expires (TTL-23).
func (q *queue) endMain(now time.Time) {
	messages := slices.Clone(q.main.messages) // a copy: fates remove from the original
	for _, m := range messages {
		if m.locked() && !m.holds(now) {
			q.used(m.lockedUntil)
			q.free(m, now, true, m.lockedUntil.Add(q.options.RedeliveryDelay.Truncate(time.Millisecond)))
		}
	}
	for _, m := range messages {
		if m.in == &q.main && !m.locked() && (m.failed || !m.lasts) {
			q.decide(m, now)
		}
	}
}

// endDead takes back locks that ended and drops what has been kept long enough (TTL-19).
func (q *queue) endDead(dead *box, now time.Time) {
	for _, m := range slices.Clone(dead.messages) {
		switch {
		case m.holds(now):
		case m.locked():
			q.used(m.lockedUntil)
			q.giveBack(m, now, true, now)
		case reached(m.deadUntil, now):
			dead.remove(m)
		}
	}
}

func (q *queue) endDelays(b *box, now time.Time) {
	for _, m := range b.messages {
		if reached(m.visibleAt, now) {
			m.visibleAt = time.Time{}
		}
	}
}

// activate enqueues the scheduled messages whose time has come as if they were sent now (SCHED-3, MSG-7), in order of
// their times and those of one time in order of their numbers (SCHED-6). No status and no quota stops it (SCHED-12).
func (q *queue) activate(now time.Time) {
	for _, m := range q.toActivate(now) {
		q.scheduled.remove(m)
		m.scheduled, m.sequence, m.enqueuedAt = false, q.next(), now
		q.used(now) // until now it had scheduled messages (IDLE-2)
		m.live(now)
		q.main.add(m)
		q.join(m, now)
	}
}

// toActivate returns the scheduled messages whose time has come, in the order in which they are to be enqueued.
func (q *queue) toActivate(now time.Time) []*message {
	var due []*message
	for _, m := range q.scheduled.messages {
		if reached(m.scheduledFor(), now) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *message) int {
		return cmp.Or(a.scheduledFor().Compare(b.scheduledFor()), byNumber(a, b))
	})
	return due
}
