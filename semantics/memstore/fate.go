package memstore

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// fate is what becomes of a message of the main queue that is no longer locked.
type fate struct {
	stays               bool
	expires             bool
	reason, description string // of dead-lettering; both empty: it is dropped
}

// fateOf decides by lifetime and delivery count (TTL-11, TTL-13, DC-5). The count is looked at only when a delivery has
// just failed (DC-6).
func (q *queue) fateOf(m *message, expired bool) fate {
	spent := m.failed && int64(m.count) >= q.options.MaxDeliveryCount
	switch {
	case expired && q.options.DeadLetteringOnMessageExpiration:
		return fate{
			expires:     true,
			reason:      "TTLExpiredException",
			description: "the message passed its time to live before it was settled",
		}
	case spent:
		times := "once"
		if m.count != 1 {
			times = fmt.Sprintf("%d times", m.count)
		}
		return fate{
			reason: "MaxDeliveryCountExceeded",
			description: fmt.Sprintf("the message was delivered %s without being settled; the queue permits %d",
				times, q.options.MaxDeliveryCount),
		}
	case expired:
		return fate{expires: true}
	default:
		return fate{stays: true}
	}
}

// giveBack ends a lock without settlement, wherever the message is, and decides what becomes of it: see free.
func (q *queue) giveBack(m *message, now time.Time, counted bool, visibleAt time.Time) {
	q.free(m, now, counted, visibleAt)
	switch {
	case !m.dead():
		q.decide(m, now)
	case reached(m.deadUntil, now):
		m.in.remove(m)
	}
	q.expect(m.due())
}

// free ends a lock without settlement, which must be followed by decide in the main queue. counted reports whether a
// delivery has failed (DC-1) or not (DC-2). Before visibleAt the message is not received again (SETTLE-11). A deferred
// one is deferred again instead (DEFER-5), from now on as the queue's ExpireDeferred says (TTL-18).
func (q *queue) free(m *message, now time.Time, counted bool, visibleAt time.Time) {
	m.in.unlock(m)
	switch {
	case m.deferred:
		q.setAside(m)
	case now.Before(visibleAt):
		m.visibleAt = visibleAt
	}
	switch {
	case !counted:
	case m.dead():
		m.deadCount++ // the other count stays (DC-7)
	default:
		m.count++
		m.failed = true
	}
}

// setAside defers a message that is not locked.
func (q *queue) setAside(m *message) {
	m.deferred, m.lasts = true, !q.options.ExpireDeferred
	q.expect(m.due())
}

// decide applies the fate of a message of the main queue that is not locked. If it expires and the queue's
// SessionExpiryMode says so, all of its session that are neither locked nor scheduled expire with it, by number
// (TTL-23).
func (q *queue) decide(m *message, now time.Time) {
	f := q.fateOf(m, m.expired(now))
	q.carryOut(f, m, now)
	if !f.expires || !q.options.RequiresSession || q.options.SessionExpiryMode != semantics.ExpireSession {
		return
	}
	for _, other := range q.messagesOf(m.sent.SessionID) {
		if !other.locked() {
			q.carryOut(q.fateOf(other, true), other, now)
		}
	}
}

func (q *queue) carryOut(f fate, m *message, now time.Time) {
	m.failed = false
	if f.stays {
		return
	}
	q.main.remove(m)
	if f.reason != "" {
		q.deadLetter(m, now, semantics.DeadLetterTexts{Reason: &f.reason, Description: &f.description})
	}
}

// deadLetter puts a message that left the main queue behind the other dead letters. It keeps all it had (DLQ-16) but
// that it was deferred or delayed. Its session, if it has one (SESS-7), is blocked if the queue's SessionOnDeadLetter
// says so (SESS-29).
func (q *queue) deadLetter(m *message, now time.Time, texts semantics.DeadLetterTexts) {
	q.deadLetterIn(&q.dead, m, now, texts)
	if q.options.RequiresSession && q.options.SessionOnDeadLetter == semantics.BlockSession && m.sent.SessionID != "" {
		q.session(m.sent.SessionID).blocked = true
	}
}

// deadLetterIn is deadLetter in one of the dead-letter queues.
func (q *queue) deadLetterIn(dead *box, m *message, now time.Time, texts semantics.DeadLetterTexts) {
	m.deferred, m.lasts, m.visibleAt = false, false, time.Time{}
	m.texts, m.deadAt, m.deadUntil, m.deadCount = texts, now, time.Time{}, 0
	if ttl := q.options.DeadLetterTTL; ttl != semantics.Never {
		if at := now.Add(ttl.Truncate(time.Millisecond)); at.Year() <= lastYear {
			m.deadUntil = at
		}
	}
	dead.add(m)
	q.expect(m.due())
}
