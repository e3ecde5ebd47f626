package memstore

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// lastYear is the last year an instant may lie in; a message that would expire later never does.
const lastYear = 9999

// message is one stored message. It is locked while token is set, even past lockedUntil: the lock no longer holds then
// (LOCK-7), but its end has not been processed yet. The same is true of visibleAt, deadUntil and the rest: what has
// become due takes effect when a sweep processes it.
type message struct {
	sent       semantics.Message // own copy; TimeToLive is what is in force, nil for never
	in         *box              // where it lies; nil once it has left the queue
	sequence   int64
	fromTopic  int64     // the number its topic assigned (MSG-6); 0: it came in here
	inSession  int64     // its SessionSequence (MSG-19); 0 without sessions, and while it is scheduled
	enqueuedAt time.Time // of a scheduled one: when it was accepted
	expiresAt  time.Time // zero: never
	size       int64
	count      int  // deliveries that ended without success (MSG-10, DC-1)
	failed     bool // one has just ended so, and what becomes of the message is not decided yet (DC-6)

	scheduled  bool      // not enqueued before scheduledFor
	visibleAt  time.Time // delayed until then (SETTLE-11); zero: not delayed
	skipsOrder bool      // while it is delayed, those behind it in its session need not wait (SETTLE-11)
	deferred   bool      // stays so while it is locked (MSG-9)
	lasts      bool      // deferred and not to be expired by a sweep (TTL-18)

	token       semantics.LockToken
	lockedUntil time.Time

	texts     semantics.DeadLetterTexts
	deadAt    time.Time // zero in the main queue
	deadUntil time.Time // when it is dropped from the dead-letter queue (TTL-19); zero: never
	deadCount int       // as count, in the dead-letter queue (DC-7)
}

// newMessage copies what was sent, with its lifetime cut to the queue's default (TTL-3 to TTL-5).
func newMessage(sent *semantics.Message, defaultTTL time.Duration) *message {
	m := &message{sent: clone(sent), size: sent.Size()}
	m.sent.ScheduledAt = m.sent.ScheduledAt.UTC().Truncate(time.Millisecond)
	lifetime := defaultTTL
	if sent.TimeToLive != nil {
		lifetime = min(lifetime, *sent.TimeToLive)
	}
	m.sent.TimeToLive = nil
	if lifetime != semantics.Never {
		lifetime = lifetime.Truncate(time.Millisecond)
		m.sent.TimeToLive = &lifetime
	}
	return m
}

// live begins the lifetime at an instant (TTL-2, TTL-17).
func (m *message) live(from time.Time) {
	m.expiresAt = time.Time{}
	if m.sent.TimeToLive == nil {
		return
	}
	at := from.Add(*m.sent.TimeToLive)
	if at.Year() > lastYear {
		m.sent.TimeToLive = nil
		return
	}
	m.expiresAt = at
}

// endBy makes an earlier instant the end of the lifetime; zero is none. TimeToLive is what is left then (TTL-25).
func (m *message) endBy(at time.Time) {
	if at.IsZero() || !m.expiresAt.IsZero() && m.expiresAt.Before(at) {
		return
	}
	left := at.Sub(m.enqueuedAt)
	m.expiresAt, m.sent.TimeToLive = at, &left
}

func (m *message) locked() bool  { return !m.token.IsZero() }
func (m *message) dead() bool    { return !m.deadAt.IsZero() }
func (m *message) delayed() bool { return !m.visibleAt.IsZero() }

// available reports whether a receive may take it, once a sweep has processed what is due.
func (m *message) available() bool {
	return !m.locked() && !m.deferred && !m.scheduled && !m.delayed()
}

// group is what can be done with it now (PEEK-7).
func (m *message) group() semantics.Show {
	switch {
	case m.locked():
		return semantics.ShowLocked
	case m.deferred:
		return semantics.ShowDeferred
	case m.scheduled:
		return semantics.ShowScheduled
	default:
		return semantics.ShowAvailable
	}
}

// holds reports whether a lock can still be used: up to its end, not including it (LOCK-7).
func (m *message) holds(now time.Time) bool { return m.locked() && now.Before(m.lockedUntil) }

// expired reports whether the lifetime has ended: from ExpiresAt on (TTL-8). It does not run for a scheduled message
// (TTL-17), and counts for nothing among dead letters (TTL-19).
func (m *message) expired(now time.Time) bool {
	return !m.dead() && !m.scheduled && reached(m.expiresAt, now)
}

// reached reports whether an instant has come; zero never does.
func reached(at, now time.Time) bool { return !at.IsZero() && !now.Before(at) }

// due is when time next changes the message; zero: never.
func (m *message) due() time.Time {
	switch {
	case m.locked():
		return m.lockedUntil
	case m.scheduled:
		return m.scheduledFor()
	case m.dead():
		return earlier(m.visibleAt, m.deadUntil)
	case m.lasts:
		return time.Time{}
	default:
		return earlier(m.visibleAt, m.expiresAt)
	}
}

// scheduledFor is when a scheduled message is to be enqueued. A transaction schedules what it sends to a topic for the
// instant of its own.
func (m *message) scheduledFor() time.Time {
	if m.enqueuedAt.After(m.sent.ScheduledAt) {
		return m.enqueuedAt
	}
	return m.sent.ScheduledAt
}

// earlier returns the first of two instants; zero is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// view is the message as a client sees it, without lock and with the stored count, as on peek (MSG-10, MSG-11). It
// shares nothing with the store.
func (m *message) view() *semantics.Received {
	r := &semantics.Received{
		Message:                 clone(&m.sent),
		SequenceNumber:          m.sequence,
		EnqueuedSequenceNumber:  cmp.Or(m.fromTopic, m.sequence),
		EnqueuedAt:              m.enqueuedAt,
		ExpiresAt:               m.expiresAt,
		DeliveryCount:           m.count,
		DeadLetterDeliveryCount: m.deadCount,
		State:                   semantics.Active,
		Size:                    m.size,
		SessionSequence:         m.inSession,
	}
	switch {
	case m.deferred:
		r.State = semantics.Deferred
	case m.scheduled:
		r.State = semantics.Scheduled
	}
	if m.dead() {
		r.SetDeadLetter(m.texts, m.deadAt)
	}
	r.SetForwarded()
	return r
}

func clone(m *semantics.Message) semantics.Message {
	c := *m
	for _, text := range []*string{
		&c.MessageID, &c.SessionID, &c.PartitionKey, &c.CorrelationID, &c.Subject, &c.To, &c.ReplyTo,
		&c.ReplyToSessionID, &c.ContentType,
	} {
		*text = strings.Clone(*text) // it may be a part of a request
	}
	c.Body, c.AMQP = slices.Clone(m.Body), slices.Clone(m.AMQP)
	if m.Properties != nil {
		c.Properties = make(map[string]semantics.Value, len(m.Properties))
	}
	for name, value := range m.Properties {
		c.Properties[strings.Clone(name)] = value.Clone()
	}
	if m.TimeToLive != nil {
		ttl := *m.TimeToLive
		c.TimeToLive = &ttl
	}
	return c
}
