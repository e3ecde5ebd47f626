package memstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// look carries out what time has brought about on the whole queue and wakes those who wait for what became available. Every
// call that looks at a queue does this first.
func (s *Store) look(q *queue, now time.Time) {
	if q.due.IsZero() || now.Before(q.due) {
		return
	}
	s.wakingFor(q, func() {
		q.endMain(now)
		q.endDelays(&q.main, now)
		q.activate(now)
		q.endDead(now)
		q.endDelays(&q.dead, now)
	})
	q.due = time.Time{}
	for _, box := range []*box{&q.main, &q.scheduled, &q.dead} {
		for _, m := range box.messages {
			q.expect(m.due())
		}
	}
}

// endMain takes back locks that ended (LOCK-6) and moves or drops what has expired (TTL-8, TTL-11), both in one order of
// sequence number, in which the dead letters of one look then are.
func (q *queue) endMain(now time.Time) {
	for _, m := range slices.Clone(q.main.messages) { // a copy: fates remove from the original
		switch {
		case m.holds(now):
		case m.locked():
			q.giveBack(m, now, true, m.lockedUntil.Add(q.options.RedeliveryDelay.Truncate(time.Millisecond)))
		case !m.lasts:
			q.decide(m, now, false)
		}
	}
}

// endDead takes back locks that ended and drops what has been kept long enough (TTL-19).
func (q *queue) endDead(now time.Time) {
	for _, m := range slices.Clone(q.dead.messages) {
		switch {
		case m.holds(now):
		case m.locked():
			q.giveBack(m, now, true, now)
		case reached(m.deadUntil, now):
			q.dead.remove(m)
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

// activate enqueues the scheduled messages whose time has come as if they were sent now (SCHED-3, MSG-7), in order of their
// times and those of one time in order of their numbers (SCHED-6). No status and no quota stops it (SCHED-12).
func (q *queue) activate(now time.Time) {
	var due []*message
	for _, m := range q.scheduled.messages {
		if reached(m.sent.ScheduledAt, now) {
			due = append(due, m)
		}
	}
	slices.SortFunc(due, func(a, b *message) int {
		return cmp.Or(a.sent.ScheduledAt.Compare(b.sent.ScheduledAt), byNumber(a, b))
	})
	for _, m := range due {
		q.scheduled.remove(m)
		m.scheduled, m.sequence, m.enqueuedAt = false, q.next(), now
		m.live(now)
		q.main.add(m)
	}
}

// wakingFor makes a change and wakes those who wait for what became available by it. When something will be due earlier
// than before, it also makes one receiver look that waits on either side, so that the next look will be in time.
func (s *Store) wakingFor(q *queue, change func()) {
	main, dead, due := q.main.available(), q.dead.available(), q.due
	change()
	main, dead = q.main.available()-main, q.dead.available()-dead
	if !q.due.Equal(due) {
		main, dead = max(main, 0)+1, max(dead, 0)+1
	}
	s.wake(semantics.Source{Path: q.name}, main)
	s.wake(semantics.Source{Path: q.name, SubQueue: semantics.DeadLetterQueue}, dead)
}
