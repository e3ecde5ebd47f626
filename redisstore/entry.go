package redisstore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// entry is one element of a source's log as the scripts hand it over, not yet decoded, and what they told about it.
type entry struct {
	position int64
	size     int64
	times    string // "<enqueued>:<expires>" in ms
	payload  string
	failed   int64 // failed deliveries; in a dead-letter queue the frozen count
	dead     *deadLetter

	nonce       uint64    // of the lock, when there is one
	lockedUntil time.Time // zero without a lock
}

// deadLetter is what lib/dead_letter_entry.lua adds to an entry.
type deadLetter struct {
	sequence            int64
	at                  time.Time
	reason, description string
}

// readEntries reads a list of id and fields in turn and the list of failed deliveries that goes with it, which may be
// shorter: the rest has none.
func readEntries(r *reply) []entry {
	items, deliveries := r.list(), r.list()
	entries := make([]entry, 0, len(items.items)/2)
	for items.more() {
		e := readEntry(items)
		if deliveries.more() {
			e.failed = deliveries.numberOr(0)
		}
		entries = append(entries, e)
	}
	r.adopt(items)
	r.adopt(deliveries)
	return entries
}

func readEntry(r *reply) entry {
	position, size, ok := strings.Cut(r.text(), "-")
	e := entry{}
	var err1, err2 error
	e.position, err1 = strconv.ParseInt(position, 10, 64)
	e.size, err2 = strconv.ParseInt(size, 10, 64)
	if (!ok || err1 != nil || err2 != nil) && r.err == nil {
		r.err = fmt.Errorf("script %s: log entry id %q-%q", r.script, position, size)
	}
	fields := r.list()
	e.times, e.payload = fields.text(), fields.text()
	if fields.more() {
		e.readDeadLetter(fields)
	}
	r.adopt(fields)
	return e
}

func (e *entry) readDeadLetter(fields *reply) {
	e.dead = &deadLetter{}
	for fields.more() {
		switch fields.text() {
		case "n":
			e.dead.sequence = fields.number()
		case "c":
			e.failed = fields.number()
		case "a":
			e.dead.at = fields.instant()
		case "r":
			e.dead.reason = fields.text()
		case "d":
			e.dead.description = fields.text()
		default: // a newer version's field
			fields.text()
		}
	}
}

// received decodes the message. DeliveryCount is the stored count (MSG-10).
func (e *entry) received() (*semantics.Received, error) {
	enqueued, expires, _ := strings.Cut(e.times, ":")
	enqueuedMs, err1 := strconv.ParseInt(enqueued, 10, 64)
	expiresMs, err2 := strconv.ParseInt(expires, 10, 64)
	if err1 != nil || err2 != nil {
		return nil, unreadable(fmt.Errorf("log entry %d has no times", e.position))
	}
	message, err := decodePayload(e.payload)
	if err != nil {
		return nil, err
	}
	m := &semantics.Received{
		Message: message, SequenceNumber: e.position, EnqueuedAt: instantOf(enqueuedMs), ExpiresAt: instantOf(expiresMs),
		DeliveryCount: int(e.failed), Size: e.size,
	}
	if expiresMs != 0 {
		ttl := m.ExpiresAt.Sub(m.EnqueuedAt) // what was left after cutting (TTL-5)
		m.TimeToLive = &ttl
	}
	if e.dead != nil {
		m.SequenceNumber = e.dead.sequence
		m.SetDeadLetter(e.dead.reason, e.dead.description, e.dead.at)
	}
	m.EnqueuedSequenceNumber = m.SequenceNumber
	if !e.lockedUntil.IsZero() {
		m.LockToken = lock{position: e.position, size: e.size, nonce: e.nonce}.token()
		m.LockedUntil = e.lockedUntil
	}
	return m, nil
}
