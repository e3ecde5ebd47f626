package memstore

import (
	"cmp"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// kind checks that a verb is one for this kind of queue and source (ERR-5).
type kind func(q *queue, source semantics.Source) error

// forMessages is the kind of verbs that take or settle messages: with sessions they need a held one (RECV-11, SESS-6).
func forMessages(q *queue, source semantics.Source) error {
	if q.hasSessions(source) && source.SessionLock.IsZero() {
		return semantics.SessionFailure(semantics.SessionRequired, q.name)
	}
	return forAny(q, source)
}

// forAny is the kind of verbs for which a session is a choice, where there are sessions.
func forAny(q *queue, source semantics.Source) error {
	if err := refuseTopic(q); err != nil {
		return err
	}
	return forAnyOrTopic(q, source)
}

// refuseTopic refuses a topic: only its subscriptions have something to receive (TOPIC-8).
func refuseTopic(q *queue) error {
	if q.kind != semantics.TopicKind {
		return nil
	}
	return semantics.NotASource(q.name)
}

// forPeek is the kind of a peek, which shows the scheduled messages of a topic (SCHED-7). A topic has no dead letters
// (DLQ-1).
func forPeek(q *queue, source semantics.Source) error {
	if source.SubQueue != semantics.MainQueue {
		return forAny(q, source)
	}
	return forAnyOrTopic(q, source)
}

func forAnyOrTopic(q *queue, source semantics.Source) error {
	if !q.hasSessions(source) && (!source.SessionLock.IsZero() || source.Session != "") {
		return forSessions(q, source)
	}
	return nil
}

// forPlain is the kind of verbs on messages that sessions rule out (LOCK-4, PURGE-9).
func forPlain(q *queue, source semantics.Source) error {
	if q.hasSessions(source) {
		return semantics.SessionFailure(semantics.InvalidOperation, q.name)
	}
	return forAny(q, source)
}

// forTaking is the kind of verbs that take messages which a source that forwards them does not give (FWD-2).
func forTaking(q *queue, source semantics.Source) error {
	if source.SubQueue == semantics.MainQueue && q.options.ForwardTo != "" {
		return semantics.ForwardsAll(q.name, q.options.ForwardTo)
	}
	return nil
}

// all is the kind of verbs that need several; the first that does not fit returns why.
func all(kinds ...kind) kind {
	return func(q *queue, source semantics.Source) error {
		for _, fits := range kinds {
			if err := fits(q, source); err != nil {
				return err
			}
		}
		return nil
	}
}

// forSessions is the kind of verbs on sessions (SESS-5).
func forSessions(q *queue, source semantics.Source) error {
	if q.hasSessions(source) {
		return nil
	}
	if err := refuseTopic(q); err != nil {
		return err
	}
	return semantics.SessionFailure(semantics.SessionNotSupported, q.name)
}

// forHeld is the kind of verbs that only a session's holder may use.
func forHeld(q *queue, source semantics.Source) error {
	return cmp.Or(forSessions(q, source), forMessages(q, source))
}

// hasSessions reports whether a source has sessions: dead letters have none (SESS-34).
func (q *queue) hasSessions(source semantics.Source) bool {
	return q.options.RequiresSession && source.SubQueue == semantics.MainQueue
}

// scope is what a source means of its queue: everything, or one session that is held or only named.
type scope struct {
	session string   // its id; empty: everything
	held    *session // nil: not held by the caller
}

// scopeOf finds what a source of the right kind means. SESSION_LOCK_LOST when its lock does not hold (SESS-19,
// SESS-22).
func (q *queue) scopeOf(source semantics.Source, now time.Time) (scope, error) {
	if source.SessionLock.IsZero() {
		return scope{session: source.Session}, nil
	}
	for id, on := range q.sessions {
		if on.token == source.SessionLock && on.holds(now) {
			return scope{session: id, held: on}, nil
		}
	}
	return scope{}, semantics.SessionFailure(semantics.SessionLockLost, q.name)
}

func (in scope) has(m *message) bool { return in.session == "" || m.sent.SessionID == in.session }

// lockEnd is when a message lock ends that is taken now: with that of the session, if one is held (SESS-18, SESS-20).
func (in scope) lockEnd(q *queue, now time.Time) time.Time {
	if in.held != nil {
		return in.held.lockedUntil
	}
	return q.lockEnd(now)
}
