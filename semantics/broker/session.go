package broker

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/internal/loop"
)

// AcceptOptions say which session to take and how long to wait for it.
type AcceptOptions struct {
	// SessionID names the session; empty: the one that has been ready longest.
	SessionID string
	// MaxWait is how long to wait until a session is ready, 0 to semantics.MaxWait, or until the named one is free, 0
	// to semantics.MaxAcceptWait (SESS-11, SESS-12).
	MaxWait time.Duration
	// Strict makes it SERVICE_TIMEOUT that no session became ready (SESS-12).
	Strict bool
}

// Acceptance is a session that was taken, or none. A caller that could not deliver it to the client must call
// Undelivered.
type Acceptance struct {
	Session *semantics.Session // nil: none was ready in time

	broker *Broker
	source semantics.Source
}

// Source is what the session's messages are received from.
func (a *Acceptance) Source() semantics.Source { return a.source }

// Undelivered says that the answer did not reach the client: the session is free again at once. If that fails it is
// free when its lock ends. It blocks for one round trip.
func (a *Acceptance) Undelivered(ctx context.Context) error {
	if a.Session == nil {
		return nil
	}
	return a.broker.closeSession(context.WithoutCancel(ctx), a.source)
}

// AcceptSession takes the lock of a named session, or of the one that has been ready longest (SESS-11 to SESS-13). A
// wait for the next session that ends, also because the Broker drains, returns an Acceptance without Session and no
// error, unless it is strict. A wait costs no polling: it ends within milliseconds of the session's becoming ready or
// free. INVALID_ARGUMENT, ARGUMENT_OUT_OF_RANGE, ENTITY_NOT_FOUND, ENTITY_DISABLED, SESSION_NOT_SUPPORTED,
// SESSION_CANNOT_BE_LOCKED (named only), INVALID_OPERATION (RR-5), SERVICE_TIMEOUT (strict only), THROTTLED, CANCELLED.
func (b *Broker) AcceptSession(ctx context.Context, name string, options AcceptOptions) (*Acceptance, error) {
	path, err := b.parseSessionPath(name)
	if err != nil {
		return nil, err
	}
	longest := semantics.MaxWait
	if options.SessionID != "" {
		if err := semantics.CheckID("sessionId", options.SessionID); err != nil {
			return nil, err
		}
		longest = semantics.MaxAcceptWait
	}
	if w := options.MaxWait; w < 0 || w > longest {
		return nil, semantics.FieldError(semantics.ArgumentOutOfRange, "maxWait", "is %s, must be 0s to %s", w, longest)
	}
	if err := b.refuseIfDraining(); err != nil {
		return nil, err
	}
	if err := b.admit(callCost); err != nil {
		return nil, err
	}
	session, err := b.acceptOrWait(ctx, path, options)
	if err != nil {
		return nil, err
	}
	if session == nil {
		if options.Strict {
			return nil, semantics.Errorf(semantics.ServiceTimeout, "no session of %q became ready within %s", path,
				options.MaxWait).
				With(semantics.DetailEntity, path)
		}
		return &Acceptance{}, nil
	}
	source := semantics.Source{Path: path, SessionLock: session.Lock}
	b.held.addSession(source, session.LockedUntil)
	return &Acceptance{Session: session, broker: b, source: source}, nil
}

// acceptOrWait tries once without any preparation and only then goes into the waiting list: that of the queue for the
// next session, that of a session for its end.
func (b *Broker) acceptOrWait(ctx context.Context, path string, options AcceptOptions) (*semantics.Session, error) {
	var session *semantics.Session
	source := semantics.Source{Path: path, Session: options.SessionID}
	try := func(ctx context.Context, register semantics.Register) (bool, time.Duration, error) {
		var err error
		if options.SessionID != "" {
			session, err = b.store.AcceptSession(ctx, path, options.SessionID)
			return session != nil, namedRecheck, err
		}
		var recheck time.Duration
		session, recheck, err = b.store.AcceptNextSession(ctx, path, register)
		return session != nil, recheck, err
	}
	waits := func(err error) bool {
		return options.SessionID != "" && semantics.CodeOf(err) == semantics.SessionCannotBeLocked
	}
	err := b.tryOrWait(ctx, source, options.MaxWait, attempt{try: try, waits: waits})
	return session, err
}

// namedRecheck makes up for a lost notice that a named session is free.
const namedRecheck = time.Second

// checkHeldSession checks the source of a verb that only the holder of a session may use.
func (b *Broker) checkHeldSession(source semantics.Source) (semantics.Source, error) {
	source, err := b.checkSession(source.Parse())
	if err == nil && source.SessionLock.IsZero() {
		err = semantics.InvalidField("lockToken", "must be the token of a session's lock")
	}
	return source, err
}

// RenewSessionLock sets the end of the session's lock, and of all message locks under it, to now + LockDuration, as
// often as one likes (SESS-18). It returns the new end. INVALID_ARGUMENT, ENTITY_NOT_FOUND, SESSION_NOT_SUPPORTED,
// SESSION_LOCK_LOST.
func (b *Broker) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	source, err := b.openSession(source)
	if err != nil {
		return time.Time{}, err
	}
	return b.renewSession(ctx, source)
}

// renewSession is RenewSessionLock without a check and without cost.
func (b *Broker) renewSession(ctx context.Context, source semantics.Source) (time.Time, error) {
	until, err := b.store.RenewSessionLock(ctx, source)
	if err != nil {
		b.sessionFailed(source, err)
		return time.Time{}, err
	}
	b.held.renewSession(source, until)
	return until, nil
}

// CloseSession ends the session's lock: what was not settled is available again at once and nothing is counted
// (SESS-21, DC-3). The state stays. It waits, at most 5 seconds, for messages in ReceiveAndDelete mode that are on
// their way (RECV-7). Errors as RenewSessionLock, also for a session that was closed before; CANCELLED when ctx ends
// first.
func (b *Broker) CloseSession(ctx context.Context, source semantics.Source) error {
	source, err := b.openSession(source)
	if err != nil {
		return err
	}
	b.removals.Await(ctx, source.SessionLock)
	return b.closeAwaited(ctx, source)
}

// closeSession is CloseSession for the Broker's own account. However long it waits for removals, the close itself is
// tried and has its own time, unless ctx was over before.
func (b *Broker) closeSession(ctx context.Context, source semantics.Source) error {
	if ctx.Err() != nil {
		return semantics.CancelledBy(ctx)
	}
	b.removals.Await(ctx, source.SessionLock)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), delivery.SettleTimeout)
	defer cancel()
	return b.closeAwaited(ctx, source)
}

// closeSessions closes sessions side by side, and returns the failures. A session that is lost is closed too.
func (b *Broker) closeSessions(ctx context.Context, sources []semantics.Source) (failed []error) {
	var mu sync.Mutex
	loop.Each(sources, func(source semantics.Source) {
		if err := b.closeSession(ctx, source); err != nil && semantics.CodeOf(err) != semantics.SessionLockLost {
			mu.Lock()
			defer mu.Unlock()
			failed = append(failed, err)
		}
	})
	return failed
}

// closeAwaited closes a session of which no message is on its way.
func (b *Broker) closeAwaited(ctx context.Context, source semantics.Source) error {
	err := b.store.CloseSession(ctx, source)
	if err == nil {
		b.held.removeSession(source)
		b.waitingLists.forget(source)
		return nil
	}
	b.sessionFailed(source, err)
	return err
}

// SessionState reads the session's state (SESS-33). Errors as RenewSessionLock, and ENTITY_DISABLED.
func (b *Broker) SessionState(ctx context.Context, source semantics.Source) (semantics.SessionState, error) {
	source, err := b.openSession(source)
	if err != nil {
		return semantics.SessionState{}, err
	}
	state, err := b.store.SessionState(ctx, source)
	b.sessionFailed(source, err)
	return state, err
}

// SetSessionState replaces the session's state, nil clears it (SESS-33), and returns its new version. With expected the
// state must have that version, 0 for none, else it is PRECONDITION_FAILED. Errors as SessionState, and
// SESSION_STATE_TOO_LARGE, ENTITY_FULL, QUOTA_EXCEEDED.
func (b *Broker) SetSessionState(
	ctx context.Context, source semantics.Source, state []byte, expected *int64,
) (int64, error) {
	source, err := b.openSession(source)
	if err != nil {
		return 0, err
	}
	if expected != nil && *expected < 0 {
		return 0, semantics.FieldError(
			semantics.ArgumentOutOfRange, "expectedVersion", "is %d, must not be negative", *expected,
		)
	}
	version, err := b.store.SetSessionState(ctx, source, state, expected)
	b.sessionFailed(source, err)
	return version, err
}

func (b *Broker) openSession(source semantics.Source) (semantics.Source, error) {
	source, err := b.checkHeldSession(source)
	if err != nil {
		return source, err
	}
	return source, b.admit(callCost)
}

// sessionFailed takes a session off the books when a verb found its lock lost.
func (b *Broker) sessionFailed(source semantics.Source, err error) {
	if semantics.CodeOf(err) == semantics.SessionLockLost {
		b.held.removeSession(source)
		b.waitingLists.forget(source)
	}
}
