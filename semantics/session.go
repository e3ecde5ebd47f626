package semantics

import (
	"strconv"
	"time"
)

// Bounds of the session verbs.
const (
	MaxAcceptWait        = time.Minute // how long an accept may wait for a named session (SESS-11)
	MaxSessionStates     = 1_000_000   // per entity (QUOTA-8)
	DefaultSessionIdle   = time.Minute // after which a subscription drops a session without messages (SESS-23)
	DefaultMaxSessions   = 8           // sessions a subscription holds at a time (SESS-23)
	MaxConcurrentSession = 1000

	// MaxIdleSessions is how many sessions without messages, state and holder an entity remembers, to go on with their
	// SessionSequence (SESS-4, MSG-19); those idle longest are forgotten first.
	MaxIdleSessions = 100_000
)

// Session is a session whose lock was just taken.
type Session struct {
	ID          string
	Lock        LockToken // names the lock in every later call (SESS-19)
	LockedUntil time.Time
	State       SessionState
}

// SessionState is the note an application keeps with a session (SESS-31).
type SessionState struct {
	Data    []byte // nil: none was set, or it was cleared; empty is a value (SESS-33)
	Version int64  // changes with every set and is never used twice; 0: no state
}

// SessionFilter chooses among the sessions of a list. Zero instants choose nothing out.
type SessionFilter struct {
	UpdatedSince time.Time // only sessions whose state was set after this instant (SESS-37)
	ActiveSince  time.Time // only sessions with a message accepted or a state set after this instant (SESS-37)
}

// SessionRow is what a list says of one session (SESS-38).
type SessionRow struct {
	ID           string
	Available    int64 // messages, Delayed included
	Delayed      int64
	Locked       int64
	Deferred     int64
	Scheduled    int64
	LockedUntil  time.Time // end of the holder's lock; zero: it is free
	LastActivity time.Time // when a message was last accepted or activated, or the state set
	StateSize    int64     // bytes
	StateVersion int64     // 0: no state
	Blocked      bool      // SESS-29
}

// SessionFailure returns the error of a verb that was not for this entity or that held no session.
func SessionFailure(code Code, path string) *Error {
	text := "entity %q: the session's lock has ended, or its token is wrong; accept the session again"
	switch code {
	case SessionRequired:
		text = "entity %q requires sessions: accept one and pass its sessionLockToken"
	case SessionNotSupported:
		text = "entity %q has no sessions; create it with requiresSession"
	case SessionCannotBeLocked:
		text = "entity %q: another client holds the session, or it is blocked"
	case InvalidOperation:
		text = "entity %q has sessions, whose order this would break"
	default: // SESSION_LOCK_LOST
	}
	return Errorf(code, text, path).With(DetailEntity, path)
}

// SessionMissing is the error of a message without session id for an entity that requires sessions (SESS-6).
func SessionMissing(path string, index int) *Error {
	return Errorf(SessionIDMissing, "entity %q requires sessions and message %d has no sessionId; set one", path, index).
		With(DetailEntity, path).With(DetailIndex, strconv.Itoa(index))
}

// AcceptNextRefused is the error of an accept without id where AcceptNext forbids it (RR-5).
func AcceptNextRefused(path string) *Error {
	return Errorf(
		InvalidOperation, "entity %q has acceptNext FORBIDDEN; name the session", path,
	).With(DetailEntity, path)
}

// StateTooLarge is the error of a session state over the entity's message limit (SESS-32).
func StateTooLarge(path string, actual, limit int64) *Error {
	return Errorf(SessionStateTooLarge,
		"state is %d bytes, at most %d are allowed on entity %q; store less, or raise maxMessageSizeInKilobytes", actual, limit, path).
		With(DetailEntity, path).
		With(DetailActual, strconv.FormatInt(actual, 10)).With(DetailLimit, strconv.FormatInt(limit, 10))
}

// StateVersionDiffers is the error of a session state that has another version than expected (SESS-33a).
func StateVersionDiffers(path string, actual, expected int64) *Error {
	return Errorf(PreconditionFailed, "state has version %d, expectedVersion is %d; read it again", actual, expected).
		With(DetailEntity, path).With(DetailActual, strconv.FormatInt(actual, 10))
}

// TooManyStates is the error of one session state more than an entity may have (QUOTA-8).
func TooManyStates(path string, limit int64) *Error {
	return Errorf(QuotaExceeded, "entity %q has %d session states, which is the most; clear some", path, limit).
		With(DetailEntity, path).With(DetailLimit, strconv.FormatInt(limit, 10))
}

// Texts of the dead letters that DeadLetterRest makes.
const (
	ReasonSession      = "SessionDeadLettered"
	DescriptionSession = "the rest of its session was dead-lettered"
)
