package memstore

import (
	"maps"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// lastYear is the last year an instant may lie in; a message that would expire later never does.
const lastYear = 9999

// message is one stored message. It is locked while token is set, even past lockedUntil: the lock no longer holds then
// (LOCK-7), but its end has not been carried out yet.
type message struct {
	sent       semantics.Message // own copy; TimeToLive is what is in force, nil for never
	sequence   int64
	enqueuedAt time.Time
	expiresAt  time.Time // zero: never
	size       int64
	count      int // deliveries that ended without success (MSG-10, DC-1)

	token       semantics.LockToken
	lockedUntil time.Time

	deadReason, deadDescription string
	deadAt                      time.Time // zero in the main queue
}

// newMessage copies what was sent and turns its lifetime into an instant, cut to the queue's default (TTL-2 to TTL-5).
func newMessage(sent *semantics.Message, sequence int64, now time.Time, defaultTTL time.Duration) *message {
	m := &message{sent: clone(sent), sequence: sequence, enqueuedAt: now, size: sent.Size()}
	lifetime := defaultTTL
	if sent.TimeToLive != nil {
		lifetime = min(lifetime, *sent.TimeToLive)
	}
	m.sent.TimeToLive = nil
	if lifetime == semantics.Never {
		return m
	}
	lifetime = lifetime.Truncate(time.Millisecond)
	if at := now.Add(lifetime); at.Year() <= lastYear {
		m.expiresAt, m.sent.TimeToLive = at, &lifetime
	}
	return m
}

func (m *message) locked() bool { return !m.token.IsZero() }

// holds says whether a lock can still be used: up to its end, not including it (LOCK-7).
func (m *message) holds(now time.Time) bool { return m.locked() && now.Before(m.lockedUntil) }

// expired says whether the lifetime is over: from ExpiresAt on (TTL-8).
func (m *message) expired(now time.Time) bool {
	return !m.expiresAt.IsZero() && !now.Before(m.expiresAt)
}

// view is the message as a client sees it, without lock and with the stored count, as on peek (MSG-10, MSG-11). It
// shares nothing with the store.
func (m *message) view() *semantics.Received {
	r := &semantics.Received{
		Message:                clone(&m.sent),
		SequenceNumber:         m.sequence,
		EnqueuedSequenceNumber: m.sequence,
		EnqueuedAt:             m.enqueuedAt,
		ExpiresAt:              m.expiresAt,
		DeliveryCount:          m.count,
		State:                  semantics.Active,
		Size:                   m.size,
	}
	if !m.deadAt.IsZero() {
		r.SetDeadLetter(m.deadReason, m.deadDescription, m.deadAt)
	}
	return r
}

func clone(m *semantics.Message) semantics.Message {
	c := *m
	c.Body = slices.Clone(m.Body)
	c.Properties = maps.Clone(m.Properties)
	if m.TimeToLive != nil {
		ttl := *m.TimeToLive
		c.TimeToLive = &ttl
	}
	return c
}
