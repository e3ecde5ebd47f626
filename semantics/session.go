package semantics

import "time"

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
	LockedUntil  time.Time // end of the holder's lock; zero: nobody holds it
	LastActivity time.Time // when a message was last accepted or activated, or the state set
	StateSize    int64     // bytes
	StateVersion int64     // 0: no state
	Blocked      bool      // SESS-29
}
