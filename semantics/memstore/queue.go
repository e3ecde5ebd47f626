package memstore

import (
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
	dead         box // in order of arrival

	// due is the first instant at which time may change anything here: the end of a lock or of a lifetime. It may be
	// early but never late, and only saves sweeps that would find nothing. Zero: never.
	due time.Time
}

// box holds the messages of one source in the order in which they are handed out.
type box struct {
	messages []*message
	locks    map[semantics.LockToken]*message
	bytes    int64
}

func newQueue(name string, options semantics.QueueOptions, now time.Time) *queue {
	return &queue{
		name: name, options: options, createdAt: now, updatedAt: now, accessedAt: now,
		main: box{locks: map[semantics.LockToken]*message{}},
		dead: box{locks: map[semantics.LockToken]*message{}},
	}
}

func (q *queue) box(sub semantics.SubQueue) *box {
	if sub == semantics.DeadLetterQueue {
		return &q.dead
	}
	return &q.main
}

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

// available is the number of messages that could be handed out after a sweep.
func (b *box) available() int { return len(b.messages) - len(b.locks) }

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

// freed carries out the fate of a message of the main queue whose lock is gone and tells whether it is available.
func (q *queue) freed(m *message, now time.Time, counted bool) (available bool) {
	f := q.fateOf(m, now, counted)
	if f.stays {
		return true
	}
	q.main.remove(m)
	if f.reason != "" {
		q.bury(m, now, f.reason, f.description)
	}
	return false
}

// bury puts a message that left the main queue behind the other dead letters. It keeps all it had (DLQ-16).
func (q *queue) bury(m *message, now time.Time, reason, description string) {
	m.deadReason, m.deadDescription, m.deadAt = reason, description, now
	q.dead.add(m)
}

// sweep carries out what time has brought about: it takes back locks that ended (LOCK-6), and moves or drops what has
// expired (TTL-8, TTL-11). It tells how many messages became available in the main queue and in the dead-letter queue.
func (q *queue) sweep(now time.Time) (main, dead int) {
	if q.due.IsZero() || now.Before(q.due) {
		return 0, 0
	}
	buried := len(q.dead.messages)
	for _, m := range slices.Clone(q.main.messages) { // a copy: fates remove from the original
		switch {
		case m.holds(now):
		case m.locked():
			q.main.unlock(m)
			m.count++
			if q.freed(m, now, true) {
				main++
			}
		default:
			q.freed(m, now, false)
		}
	}
	dead = len(q.dead.messages) - buried
	for _, m := range q.dead.messages {
		if m.locked() && !m.holds(now) {
			q.dead.unlock(m) // the count stays (DC-7)
			dead++
		}
	}
	q.due = time.Time{}
	for _, m := range q.main.messages {
		q.expect(m.expiresAt)
		q.expect(m.lockedUntil)
	}
	for _, m := range q.dead.messages {
		q.expect(m.lockedUntil)
	}
	return main, dead
}

// expect notes that something will be due at an instant; zero is no instant.
func (q *queue) expect(at time.Time) {
	if !at.IsZero() && (q.due.IsZero() || at.Before(q.due)) {
		q.due = at
	}
}

func (q *queue) view() semantics.Queue {
	return semantics.Queue{
		Name: q.name, Options: q.options,
		CreatedAt: q.createdAt, UpdatedAt: q.updatedAt, AccessedAt: q.accessedAt,
	}
}
