package semantics

import (
	"context"
	"time"
)

// Sessions keeps the sessions of queues with RequiresSession: who holds one, and the note that is kept with it. Every
// method fails with ENTITY_NOT_FOUND, and with SESSION_NOT_SUPPORTED on a queue without sessions (SESS-5). Those that
// take a source with a SessionLock fail with SESSION_LOCK_LOST when that lock does not hold, for whatever cause
// (SESS-19, SESS-22), and change nothing then.
type Sessions interface {
	// AcceptSession takes the lock of a session, which may have no message (SESS-11). It does not wait.
	// SESSION_CANNOT_BE_LOCKED when another client holds it or it is blocked (SESS-29), ENTITY_DISABLED.
	AcceptSession(ctx context.Context, path, id string) (*Session, error)

	// AcceptNextSession takes the lock of the session that has been ready longest: not held, not blocked, and with a
	// message that a receive would give (SESS-12, SESS-13). It does not wait: a nil Session says that none is ready,
	// and the duration is as Batch.RecheckAfter. When it finds none and register asks for it, a session that becomes
	// ready wakes a Watch of the queue. INVALID_OPERATION when AcceptNext forbids it (RR-5), ENTITY_DISABLED.
	AcceptNextSession(ctx context.Context, path string, register Register) (*Session, time.Duration, error)

	// RenewSessionLock sets the end of the lock, and with it that of all message locks under it, to now + LockDuration
	// (SESS-18).
	RenewSessionLock(ctx context.Context, source Source) (time.Time, error)

	// CloseSession ends the lock. Messages that were not settled are available again at once, uncounted and in their
	// order (SESS-21).
	CloseSession(ctx context.Context, source Source) error

	// Turn completes messages of held sessions and then receives the next ones, each session in one step: as Complete
	// and Receive, which a caller may use instead. Turns of several sessions cost less together. It returns one outcome
	// per turn in the order given.
	Turn(ctx context.Context, path string, turns []Turn) []TurnOutcome

	// SessionState reads the state (SESS-33). ENTITY_DISABLED.
	SessionState(ctx context.Context, source Source) (SessionState, error)

	// SetSessionState replaces the state, nil clears it, and returns its new version (SESS-33). expected is the version
	// it must have, nil any. PRECONDITION_FAILED (SESS-33a), SESSION_STATE_TOO_LARGE (SESS-32), ENTITY_FULL and
	// QUOTA_EXCEEDED (SESS-33c), ENTITY_DISABLED.
	SetSessionState(ctx context.Context, source Source, state []byte, expected *int64) (int64, error)

	// ListSessions returns up to limit sessions that have messages or state, in order of their ids, beginning after the
	// given id (SESS-36 to SESS-38). It may give fewer although there are more: then next is the id to go on after,
	// else "".
	ListSessions(
		ctx context.Context, path, after string, limit int, filter SessionFilter,
	) (rows []SessionRow, next string, err error)

	// UnblockSession lets a session go on that was blocked when one of its messages became a dead letter (SESS-29), and
	// drops a state that is damaged (CRYPT-5). One that is not blocked stays as it is.
	UnblockSession(ctx context.Context, path, id string) error

	// DeadLetterRest makes all messages of a session dead letters that are neither locked nor scheduled, with
	// ReasonSession, and unblocks it (SESS-29). It may take several steps, in the first of which none of them can be
	// received any more; when it fails after that, the others follow all the same.
	DeadLetterRest(ctx context.Context, path, id string) error
}
