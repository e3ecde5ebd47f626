package redisstore

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// entry is one element of a source's log as the scripts return it, not yet decoded, with what they know about it.
type entry struct {
	position int64
	size     int64
	times    string // "<enqueued>:<expires>" in ms
	payload  string
	chunk    string // of an entry with several messages: "<size>:<length of the payload>,..."
	weight   int64  // what it counts for in an answer: see lua/lib/answer/weigh_at.lua
	failed   int64  // failed deliveries from this source
	changes  string // what changed since it was sent, "" = nothing
	dead     *deadLetter

	sessionSequence int64 // of a message of a session
	origin          int64 // of a copy: its number in the topic
	isShared        bool  // its payload is with the topic: see bodies.go

	scheduled bool // times is then "<accepted>:<ttl>"

	nonce       uint64    // of the lock, when there is one
	lockedUntil time.Time // zero without a lock
}

// compareTo orders entries by position.
func (e entry) compareTo(position int64) int { return cmp.Compare(e.position, position) }

// deadLetter is what lib/dead_letter/dead_letter_entry.lua adds to an entry.
type deadLetter struct {
	sequence int64
	count    int64 // deliveries before it became one
	at       time.Time
	texts    semantics.DeadLetterTexts
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
	e.weight = messageOverhead + int64(len(e.payload))
	if fields.more() {
		e.readFurther(fields)
	}
	r.adopt(fields)
	return e
}

// readFurther reads what only messages of sessions, copies and dead letters have.
func (e *entry) readFurther(fields *reply) {
	dead := &deadLetter{}
	for fields.more() {
		switch fields.text() {
		case "z":
			e.chunk = fields.text()
		case "q":
			e.sessionSequence = fields.number()
		case "e":
			e.origin = fields.number()
		case "n":
			dead.sequence = fields.number()
			e.dead = dead
		case "c":
			dead.count = fields.number()
		case "a":
			dead.at = fields.instant()
		case "r":
			reason := fields.text()
			dead.texts.Reason = &reason
			e.weight += 2 * int64(len(reason))
		case "d":
			description := fields.text()
			dead.texts.Description = &description
			e.weight += 2 * int64(len(description))
		default: // a newer version's field
			fields.text()
		}
	}
}

func (e *entry) setChanges(changes string) {
	e.changes = changes
	e.weight += int64(len(changes))
}

// known is what a script returned about messages besides their entries, by position: failed deliveries and changes. A
// message that it locked can be gone when its entry is read, so their order does not pair them.
type known struct {
	failed  map[int64]int64
	changes map[int64]string
}

// readKnown reads two lists of the form of lua/lib/answer/values_of.lua.
func readKnown(r *reply) known {
	deliveries, changes := r.list(), r.list()
	k := known{}
	if n := len(deliveries.items) / 2; n > 0 {
		k.failed = make(map[int64]int64, n)
	}
	for deliveries.more() {
		k.failed[deliveries.number()] = deliveries.number()
	}
	if n := len(changes.items) / 2; n > 0 {
		k.changes = make(map[int64]string, n)
	}
	for changes.more() {
		k.changes[changes.number()] = changes.text()
	}
	r.adopt(deliveries)
	r.adopt(changes)
	return k
}

// addTo adds to an entry what is known of it.
func (k known) addTo(e *entry) {
	e.failed = k.failed[e.position]
	e.setChanges(k.changes[e.position])
}

func (e *entry) lock() lock { return lock{position: e.position, size: e.size, nonce: e.nonce} }

// received returns the decoded message.
func (e *entry) received(s sealing) *semantics.Received {
	m := &semantics.Received{}
	e.receive(m, s)
	return m
}

// receive decodes the message into m, which is empty. DeliveryCount is the stored count (MSG-10). If the payload cannot
// be decoded, Unreadable has the cause and the other fields are set.
func (e *entry) receive(m *semantics.Received, s sealing) {
	m.SequenceNumber, m.DeliveryCount, m.Size = e.position, int(e.failed), e.size
	m.SessionSequence = e.sessionSequence
	err := e.decode(m, s)
	m.Unreadable = cmp.Or(err, e.setTimes(m))
	if e.dead != nil {
		m.SequenceNumber, m.DeliveryCount, m.DeadLetterDeliveryCount = e.dead.sequence, int(e.dead.count), int(e.failed)
		m.SetDeadLetter(e.dead.texts, e.dead.at)
	}
	m.EnqueuedSequenceNumber = or(e.origin, m.SequenceNumber) // MSG-6
	m.SetForwarded()
	if !e.lockedUntil.IsZero() {
		m.LockToken = e.lock().token()
		m.LockedUntil = e.lockedUntil
	}
}

// decode sets the message as it is now.
func (e *entry) decode(m *semantics.Received, s sealing) error {
	var err error
	more := int64(0)
	if m.Encoded, err = s.decode(e.payload, &m.Message); err == nil && e.changes != "" {
		m.Encoded = "" // which is as it was sent
		more, err = applyChanges(e.changes, &m.Message)
		m.Size += more
	}
	if err != nil {
		m.Message, m.Encoded = semantics.Message{}, ""
	}
	return err
}

// setTimes reads the times of the message: "<enqueued>:<expires>", or "<accepted>:<ttl>" while it is scheduled.
func (e *entry) setTimes(m *semantics.Received) error {
	first, second, _ := strings.Cut(e.times, ":")
	enqueued, err1 := strconv.ParseInt(first, 10, 64)
	end, err2 := strconv.ParseInt(second, 10, 64)
	if err1 != nil || err2 != nil {
		return unreadable(fmt.Errorf("log entry %d has no times", e.position))
	}
	m.EnqueuedAt = instantOf(enqueued)
	switch {
	case e.scheduled:
		m.State, m.VisibleAt = semantics.Scheduled, m.ScheduledAt
		if m.EnqueuedAt.After(m.ScheduledAt) { // a transaction brought it to a topic, for at once
			m.VisibleAt = m.EnqueuedAt
		}
		if ttl := time.Duration(end) * time.Millisecond; end >= 0 {
			m.TimeToLive, m.ExpiresAt = &ttl, m.VisibleAt.Add(ttl)
		}
	case end != 0:
		m.ExpiresAt = instantOf(end)
		ttl := m.ExpiresAt.Sub(m.EnqueuedAt) // what was left after cutting (TTL-5)
		m.TimeToLive = &ttl
	}
	return nil
}
