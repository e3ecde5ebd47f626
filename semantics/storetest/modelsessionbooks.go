package storetest

import (
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// books are what must be true of the messages of sessions by what was answered alone, whatever the stores agree on: who
// has each, how often its delivery failed (DC-1 to DC-9), and in which order they were handed out for the first time
// (SESS-25).
type books struct {
	out    map[int64]*handOut // what was handed out and is not settled, by number
	ended  map[int64]*handOut // what was in flight when a lock expired, until a call looks
	failed map[int64]int      // deliveries that failed
	handed map[int64]bool     // what was ever handed out
	// SessionSequence of the last message of a session that was handed out for the first time
	first    map[string]int64
	deferred map[int64]bool // what must be found as deferred
	spent    map[int64]bool // what must be gone, because its last permitted delivery has failed

	expiredSessions bool // the queue's SessionExpiryMode was SESSION once
}

// handOut is one delivery that is not over.
type handOut struct {
	token            semantics.LockToken // of the reference
	hold             *hold
	deferred, mortal bool
}

func newBooks() books {
	return books{
		out: map[int64]*handOut{}, ended: map[int64]*handOut{}, failed: map[int64]int{}, handed: map[int64]bool{},
		first: map[string]int64{}, deferred: map[int64]bool{}, spent: map[int64]bool{},
	}
}

// handedOut enters what was received from a session, in its turn or by number.
func (m *model) handedOut(rt *rapid.T, from origin, messages []*semantics.Received, inTurn bool) {
	if from.hold == nil || len(messages) == 0 {
		return
	}
	m.fenced(rt, "receive", from.hold, "")
	m.decideEnded()
	before := int64(0)
	for _, r := range messages {
		n, sequence := r.SequenceNumber, r.SessionSequence
		switch {
		case r.SessionID != from.hold.session:
			rt.Fatalf("message %d of session %q was received from session %q", n, r.SessionID, from.hold.session)
		case m.out[n] != nil:
			rt.Fatalf("message %d was handed out again while it was in flight (I3)", n)
		case r.DeliveryCount != m.failed[n]+1:
			rt.Fatalf("message %d says it is delivery %d, but %d have failed (I7)", n, r.DeliveryCount, m.failed[n])
		case !r.LockedUntil.Equal(from.hold.until):
			rt.Fatalf("message %d is locked until %s, its session until %s", n, r.LockedUntil, from.hold.until)
		case m.spent[n]:
			rt.Fatalf("message %d was handed out after its last permitted delivery (I8)", n)
		case inTurn && sequence <= before:
			rt.Fatalf("message %d of session %q follows %d in one receive", sequence, r.SessionID, before)
		case inTurn && !m.handed[n] && sequence <= m.first[r.SessionID]:
			rt.Fatalf("message %d of session %q was first handed out after %d (I4)", sequence, r.SessionID, m.first[r.SessionID])
		}
		before = sequence
		m.first[r.SessionID] = max(m.first[r.SessionID], sequence)
		m.handed[n] = true
		delete(m.deferred, n)
		m.out[n] = &handOut{
			token: r.LockToken, hold: from.hold, deferred: r.State == semantics.Deferred, mortal: !r.ExpiresAt.IsZero(),
		}
	}
	inFlight := int64(0)
	for _, h := range m.out {
		if h.hold == from.hold && !h.deferred {
			inFlight++
		}
	}
	if inTurn && inFlight > m.options.SessionInFlight {
		rt.Fatalf("%d messages of session %q are in flight, at most %d may be", inFlight, from.hold.session, m.options.SessionInFlight)
	}
}

// settled enters the outcome of settling messages under a session.
func (m *model) settled(rt *rapid.T, what string, from origin, chosen []received, codes []semantics.Code) {
	if from.hold == nil {
		return
	}
	for i, d := range chosen {
		m.fenced(rt, what, from.hold, codes[i])
		h := m.out[d.number]
		holds := h != nil && h.token == d.reference && h.hold == from.hold
		switch {
		case codes[i] == semantics.SessionLockLost:
		case codes[i] == "" && !holds:
			rt.Fatalf("%s of message %d took effect with a token that does not hold (I5)", what, d.number)
		case codes[i] == semantics.MessageLockLost && holds:
			rt.Fatalf("%s of message %d finds its lock lost, which holds", what, d.number)
		case codes[i] == "":
			delete(m.out, d.number)
			m.enter(what, d.number, h)
		}
	}
}

func (m *model) enter(what string, number int64, h *handOut) {
	switch what {
	case "abandon":
		m.failed[number]++
		m.decide(number, h)
	case "release":
		m.setDeferred(number, h, h.deferred)
	case "defer":
		m.setDeferred(number, h, true)
	}
}

// decide enters what became of a message whose delivery failed (DC-5).
func (m *model) decide(number int64, h *handOut) {
	if int64(m.failed[number]) >= m.options.MaxDeliveryCount {
		m.spent[number] = true
		return
	}
	m.setDeferred(number, h, h.deferred)
}

// setDeferred records that a message is deferred and cannot expire.
func (m *model) setDeferred(number int64, h *handOut, is bool) {
	if is && !h.mortal {
		m.deferred[number] = true
	}
}

// endHolds records the locks of sessions that have expired: what was in flight under them has failed again (DC-1,
// DC-4).
func (m *model) endHolds(now time.Time) {
	for _, h := range m.current {
		if !h.closed && !h.ended && !h.live(now) {
			h.ended = true
			m.giveBack(h, true)
		}
	}
}

// giveBack enters that a session is no longer held.
func (m *model) giveBack(over *hold, counted bool) {
	for number, h := range m.out {
		if h.hold != over {
			continue
		}
		delete(m.out, number)
		if counted {
			m.failed[number]++
			m.ended[number] = h
		} else {
			m.setDeferred(number, h, h.deferred)
		}
	}
}

// decideEnded does what a look does about locks that have ended.
func (m *model) decideEnded() {
	for number, h := range m.ended {
		m.decide(number, h)
	}
	clear(m.ended)
}

func (m *model) noLongerDeferred(ok bool, numbers ...int64) {
	for _, number := range numbers {
		if ok {
			delete(m.deferred, number)
		}
	}
}

// checkBooks compares the books with what can be seen.
func (m *model) checkBooks(rt *rapid.T) {
	m.decideEnded()
	seen := map[int64]*semantics.Received{}
	for _, row := range m.rows {
		n := row.SequenceNumber
		seen[n] = row
		if row.Locked != (m.out[n] != nil) || row.DeliveryCount != m.failed[n] || m.spent[n] {
			rt.Fatalf("message %d is locked %t with count %d, should be %t with %d; spent %t (I7, I8)",
				n, row.Locked, row.DeliveryCount, m.out[n] != nil, m.failed[n], m.spent[n])
		}
	}
	for _, row := range m.deadRows {
		if n := row.SequenceNumber; row.DeliveryCount != m.failed[n] || seen[n] != nil {
			rt.Fatalf("dead letter %d has count %d, should have %d (I6, I7)", n, row.DeliveryCount, m.failed[n])
		}
	}
	for n := range m.out {
		if seen[n] == nil {
			rt.Fatalf("message %d is held and is gone", n)
		}
	}
	if m.options.SessionExpiryMode == semantics.ExpireSession {
		m.expiredSessions = true
	}
	for n := range m.deferred {
		if !m.expiredSessions && (seen[n] == nil || !isDeferred(seen[n])) {
			rt.Fatalf("message %d was deferred and is not found so (I12)", n)
		}
	}
}
