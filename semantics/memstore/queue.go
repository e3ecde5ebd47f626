package memstore

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// queue is a queue with its dead-letter queue.
type queue struct {
	name                             string
	options                          semantics.QueueOptions
	createdAt, updatedAt, accessedAt time.Time

	lastSequence int64
	main         box // in order of sequence number
	scheduled    box // as main; moves there when it is due
	dead         box // in order of arrival
	history      history

	// due is the first instant at which time may change anything here. It may be early but never late, and only saves
	// sweeps that would find nothing. Zero: never.
	due time.Time
}

// box holds the messages of one source in the order in which they are handed out.
type box struct {
	messages []*message
	locks    map[semantics.LockToken]*message
	bytes    int64
}

func newQueue(name string, options semantics.QueueOptions, now time.Time) *queue {
	newBox := func() box { return box{locks: map[semantics.LockToken]*message{}} }
	return &queue{
		name: name, options: options, createdAt: now, updatedAt: now, accessedAt: now,
		main: newBox(), scheduled: newBox(), dead: newBox(), history: history{},
	}
}

func (q *queue) box(sub semantics.SubQueue) *box {
	if sub == semantics.DeadLetterQueue {
		return &q.dead
	}
	return &q.main
}

// next gives out a sequence number.
func (q *queue) next() int64 {
	q.lastSequence++
	return q.lastSequence
}

// bytes is the size of the queue with all it holds (DLQ-5, SCHED-2).
func (q *queue) bytes() int64 { return q.main.bytes + q.scheduled.bytes + q.dead.bytes }

func (b *box) add(m *message) {
	b.messages = append(b.messages, m)
	b.bytes += m.size
}

func (b *box) remove(m *message) {
	b.unlock(m)
	i := slices.Index(b.messages, m)
	b.messages = slices.Delete(b.messages, i, i+1)
	b.bytes -= m.size
}

func (b *box) lock(m *message, until time.Time) {
	m.token, m.lockedUntil = semantics.NewRandomUUID(), until
	b.locks[m.token] = m
}

func (b *box) unlock(m *message) {
	delete(b.locks, m.token)
	m.token, m.lockedUntil = semantics.LockToken{}, time.Time{}
}

// change gives a message other properties.
func (b *box) change(m *message, properties map[string]semantics.Value) {
	b.bytes -= m.size
	m.sent.Properties = properties
	m.size = m.sent.Size()
	b.bytes += m.size
}

// find gives the message with a sequence number, nil when there is none.
func (b *box) find(number int64) *message {
	for _, m := range b.messages {
		if m.sequence == number {
			return m
		}
	}
	return nil
}

// count is the number of messages for which is holds.
func (b *box) count(is func(m *message) bool) int {
	n := 0
	for _, m := range b.messages {
		if is(m) {
			n++
		}
	}
	return n
}

func (b *box) available() int { return b.count((*message).available) }

func byNumber(a, b *message) int { return cmp.Compare(a.sequence, b.sequence) }

// fate is what becomes of a message of the main queue that is no longer locked.
type fate struct {
	stays               bool
	reason, description string // of dead-lettering; both empty: it is dropped
}

// fateOf decides by lifetime and delivery count (TTL-11, TTL-13, DC-5). counted tells that a delivery has just failed:
// only then the count is looked at (DC-6).
func (q *queue) fateOf(m *message, now time.Time, counted bool) fate {
	expired := m.expired(now)
	spent := counted && int64(m.count) >= q.options.MaxDeliveryCount
	switch {
	case expired && q.options.DeadLetteringOnMessageExpiration:
		return fate{reason: "TTLExpiredException", description: "the message expired before it was settled"}
	case spent:
		return fate{
			reason: "MaxDeliveryCountExceeded",
			description: "the message was delivered as often as the queue permits, which is " +
				strconv.FormatInt(q.options.MaxDeliveryCount, 10) + " times",
		}
	case expired:
		return fate{}
	default:
		return fate{stays: true}
	}
}

// giveBack ends a lock without settlement, wherever the message is. counted says whether a delivery has failed (DC-1) or
// not (DC-2). Before visibleAt it is not received again (SETTLE-11). A deferred one is deferred again instead (DEFER-5), from
// now on as the queue's ExpireDeferred says (TTL-18).
func (q *queue) giveBack(m *message, now time.Time, counted bool, visibleAt time.Time) {
	box := &q.main
	if m.dead() {
		box = &q.dead
	}
	box.unlock(m)
	switch {
	case m.deferred:
		q.setAside(m)
	case now.Before(visibleAt):
		m.visibleAt = visibleAt
	}
	switch {
	case m.dead():
		if counted {
			m.deadCount++ // the other count stays (DC-7)
		}
		if reached(m.deadUntil, now) {
			q.dead.remove(m)
		}
	default:
		if counted {
			m.count++
		}
		q.decide(m, now, counted)
	}
	q.expect(m.due())
}

// setAside defers a message that is not locked.
func (q *queue) setAside(m *message) {
	m.deferred, m.lasts = true, !q.options.ExpireDeferred
	q.expect(m.due())
}

// decide carries out the fate of a message of the main queue that is not locked.
func (q *queue) decide(m *message, now time.Time, counted bool) {
	f := q.fateOf(m, now, counted)
	if f.stays {
		return
	}
	q.main.remove(m)
	if f.reason != "" {
		q.bury(m, now, semantics.DeadLetterTexts{Reason: &f.reason, Description: &f.description})
	}
}

// bury puts a message that left the main queue behind the other dead letters. It keeps all it had (DLQ-16) but that it
// was deferred or delayed.
func (q *queue) bury(m *message, now time.Time, texts semantics.DeadLetterTexts) {
	m.deferred, m.lasts, m.visibleAt = false, false, time.Time{}
	m.texts, m.deadAt = texts, now
	if ttl := q.options.DeadLetterTTL; ttl != semantics.Never {
		if at := now.Add(ttl.Truncate(time.Millisecond)); at.Year() <= lastYear {
			m.deadUntil = at
		}
	}
	q.dead.add(m)
	q.expect(m.due())
}

// expect notes that something will be due at an instant; zero is no instant.
func (q *queue) expect(at time.Time) { q.due = earlier(q.due, at) }

func (q *queue) view() semantics.Queue {
	return semantics.Queue{
		Name: q.name, Options: q.options,
		CreatedAt: q.createdAt, UpdatedAt: q.updatedAt, AccessedAt: q.accessedAt,
	}
}
