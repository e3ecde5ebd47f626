package memstore

import (
	"cmp"
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// session is one session of a queue with RequiresSession. It is held while token is set, even past lockedUntil: its end
// is processed by a sweep, as that of a message's lock. Its messages are those of the queue that have its id.
type session struct {
	id           string
	lastSequence int64     // the SessionSequence given last (MSG-19)
	lastActivity time.Time // when a message was last accepted or enqueued, or the state set or cleared

	token       semantics.LockToken
	lockedUntil time.Time
	readyAt     time.Time // since when it could be accepted as the next one (SESS-13); zero: it could not
	blocked     bool      // SESS-29

	state      semantics.SessionState
	stateSetAt time.Time
	resting    bool      // nothing is left of it but its state
	stateUntil time.Time // when the state is removed if it goes on resting; zero: never
}

// idle is what is remembered of a session that has nothing any more, so that it can go on with its numbers (SESS-4).
type idle struct {
	lastSequence int64
	since        time.Time
}

func (on *session) isHeld() bool   { return !on.token.IsZero() }
func (on *session) ready() bool    { return !on.readyAt.IsZero() }
func (on *session) hasState() bool { return on.state.Version != 0 }

// acceptable reports whether the session can be accepted by its id (SESS-11, SESS-29).
func (on *session) acceptable() bool { return !on.isHeld() && !on.blocked }

// holds reports whether the lock can still be used: up to its end, not including it (SESS-22, as LOCK-7).
func (on *session) holds(now time.Time) bool { return on.isHeld() && now.Before(on.lockedUntil) }

// due is when time next changes the session; zero: never.
func (on *session) due() time.Time { return earlier(on.lockedUntil, on.stateUntil) }

func (on *session) unlock() { on.token, on.lockedUntil = semantics.LockToken{}, time.Time{} }

// session returns the session with an id, which begins to exist if need be. Who calls it must see to it that tidy
// follows.
func (q *queue) session(id string) *session {
	on := q.sessions[id]
	if on == nil {
		on = &session{id: id, lastSequence: q.idle[id].lastSequence}
		delete(q.idle, id)
		q.sessions[id] = on
	}
	return on
}

// join notes in its session that a message was accepted or enqueued. Enqueued, it gets the next number there (MSG-19).
func (q *queue) join(m *message, now time.Time) {
	if !q.options.RequiresSession {
		return
	}
	on := q.session(m.sent.SessionID)
	on.lastActivity = now
	if !m.scheduled {
		on.lastSequence++
		m.inSession = on.lastSequence
	}
}

// messagesOf returns the messages of a session that are not scheduled, by number.
func (q *queue) messagesOf(id string) []*message {
	var messages []*message
	for _, m := range q.main.messages {
		if m.sent.SessionID == id {
			messages = append(messages, m)
		}
	}
	return messages
}

// bySession returns the messages of each session, by number, and then the scheduled ones.
func (q *queue) bySession() map[string][]*message {
	messages := map[string][]*message{}
	for _, box := range []*box{&q.main, &q.scheduled} {
		for _, m := range box.messages {
			messages[m.sent.SessionID] = append(messages[m.sent.SessionID], m)
		}
	}
	return messages
}

// inTurn returns those of a session's messages that its order permits to hand out, by number: the available ones,
// except those behind a delayed one that does not skip its order (SESS-25, SETTLE-11).
func inTurn(messages []*message) []*message {
	var free []*message
	for _, m := range messages {
		if m.delayed() && !m.skipsOrder {
			break
		}
		if m.available() {
			free = append(free, m)
		}
	}
	return free
}

// offeredTo returns what a session's holder may receive of its messages: none while it is blocked (SESS-29), and no
// more than SessionInFlight together with those not settled yet (SESS-27). Those that were asked for by number do not
// count.
func (q *queue) offeredTo(on *session, messages []*message) []*message {
	if on.blocked {
		return nil
	}
	slots := int(q.options.SessionInFlight)
	for _, m := range messages {
		if m.locked() && !m.deferred {
			slots--
		}
	}
	free := inTurn(messages)
	return free[:min(len(free), max(slots, 0))]
}

// tidy does what follows for sessions from a change, or from a look as a whole: some have become ready, some have
// become idle, some have nothing any more.
func (q *queue) tidy(now time.Time) {
	if !q.options.RequiresSession {
		return
	}
	messages := q.bySession()
	for id, on := range q.sessions {
		switch {
		case !on.acceptable() || len(inTurn(messages[id])) == 0:
			on.readyAt = time.Time{}
		case !on.ready():
			on.readyAt = now
		}
		switch {
		case on.isHeld() || len(messages[id]) > 0:
			on.resting, on.stateUntil = false, time.Time{}
		case on.hasState():
			q.rest(on)
		case !on.blocked:
			delete(q.sessions, id)
			if on.lastSequence > 0 {
				q.idle[id] = idle{on.lastSequence, now}
			}
		}
	}
}

// forgetIdle keeps only so many idle sessions, those that became idle last; of one instant the later ids.
func (q *queue) forgetIdle(most int) {
	for len(q.idle) > most {
		first := ""
		for id, entry := range q.idle {
			if first == "" || cmp.Or(entry.since.Compare(q.idle[first].since), cmp.Compare(id, first)) < 0 {
				first = id
			}
		}
		delete(q.idle, first)
	}
}

// Turn implements semantics.Sessions.
func (s *Store) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
