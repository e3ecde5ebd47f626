package redisstore

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// sessionKey returns the form in which the scripts store a session id: without zero bytes, which end it in their keys.
// The order of ids stays.
func sessionKey(id string) string { return sessionEscaper.Replace(id) }

func sessionID(key string) string { return sessionUnescaper.Replace(key) }

var (
	sessionEscaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	sessionUnescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

// sessionToken returns the token of a held session for scripts, "" for none.
func sessionToken(source semantics.Source) string {
	if source.SessionLock.IsZero() {
		return ""
	}
	return source.SessionLock.String()
}

// AcceptSession implements semantics.Sessions.
func (s *Store) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	token := semantics.NewLockToken()
	for {
		r, err := s.run(ctx, "accept_session", s.keys(path), s.now(), sessionKey(id), token.String())
		if err != nil {
			return nil, err
		}
		if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
			return nil, err
		}
		if r.status == "OK" {
			session, size := readSession(r, id, token)
			if err := r.failure(); err != nil {
				return nil, err
			}
			return s.opened(ctx, path, session, size)
		}
		clearing := r.number() == 1
		if err := r.failure(); err != nil {
			return nil, err
		}
		if !clearing {
			return nil, semantics.SessionFailure(semantics.SessionCannotBeLocked, path)
		}
	}
}

func registerNumber(register semantics.Register) int {
	switch register {
	case semantics.RegisterAlways:
		return 2
	case semantics.RegisterIfEmpty:
		return 1
	default:
		return 0
	}
}

// readSession reads the end of the lock and the state, as it is stored, with the size for sealing.openState.
func readSession(r *reply, id string, token semantics.LockToken) (session *semantics.Session, size int64) {
	session = &semantics.Session{ID: id, Lock: token, LockedUntil: r.instant()}
	session.State, size = readState(r)
	return session, size
}

func readState(r *reply) (state semantics.SessionState, size int64) {
	state.Version = r.number()
	if r.more() {
		state.Data, size = []byte(r.text()), r.number()
	}
	return state, size
}

// opened returns a session that was accepted, with its state as the client set it. If that cannot be read, the session
// is closed, for a sidecar that can.
func (s *Store) opened(
	ctx context.Context, path string, session *semantics.Session, size int64,
) (*semantics.Session, error) {
	data, err := s.sealing.openState(path, session.State.Data, size)
	if err != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockedTimeout)
		defer cancel()
		_ = s.CloseSession(ctx, semantics.Source{Path: path, SessionLock: session.Lock}) // else it ends with its lock
		return nil, err
	}
	session.State.Data = data
	return session, nil
}

// RenewSessionLock implements semantics.Sessions.
func (s *Store) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	r, err := s.run(ctx, "renew_session_lock", s.keys(source.Path), s.now(), sessionToken(source))
	if err != nil {
		return time.Time{}, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return time.Time{}, err
	}
	return r.instant(), r.failure()
}

// SessionState implements semantics.Sessions.
func (s *Store) SessionState(ctx context.Context, source semantics.Source) (semantics.SessionState, error) {
	r, err := s.run(ctx, "get_session_state", s.keys(source.Path), s.now(), sessionToken(source))
	if err != nil {
		return semantics.SessionState{}, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return semantics.SessionState{}, err
	}
	state, size := readState(r)
	if err := r.failure(); err != nil {
		return semantics.SessionState{}, err
	}
	state.Data, err = s.sealing.openState(source.Path, state.Data, size)
	return state, err
}

// SetSessionState implements semantics.Sessions.
func (s *Store) SetSessionState(
	ctx context.Context, source semantics.Source, state []byte, expected *int64,
) (int64, error) {
	version := int64(-1)
	if expected != nil {
		version = *expected
	}
	if state == nil {
		return 0, s.clearState(ctx, source, version)
	}
	r, err := s.runSetState(s.lasting(ctx), source, version, state)
	if err != nil {
		return 0, err
	}
	if r.status == string(semantics.SessionStateTooLarge) {
		return 0, semantics.StateTooLarge(source.Path, r.number(), r.number())
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return 0, err
	}
	switch semantics.Code(r.status) {
	case semantics.PreconditionFailed:
		return 0, semantics.StateVersionDiffers(source.Path, r.number(), version)
	case semantics.QuotaExceeded:
		return 0, semantics.TooManyStates(source.Path, r.number())
	case semantics.EntityFull:
		actual, limit, dead := r.number(), r.number(), r.number()
		path := source.Path
		if topic, _, ok := semantics.SplitSubscription(path); ok {
			path = topic // which all its subscriptions share the size of
		}
		return 0, semantics.Full(path, semantics.BoundBytes, actual, limit, dead)
	default: // OK
		version = r.number()
		return version, cmp.Or(r.failure(), r.unmet)
	}
}

// clearState runs a script of its own, because a full Redis runs scripts that remove, and none that add.
func (s *Store) clearState(ctx context.Context, source semantics.Source, version int64) error {
	r, err := s.run(
		s.lastingAgain(ctx), "clear_session_state", s.keys(source.Path), s.now(), sessionToken(source), version,
	)
	if err != nil {
		return err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return err
	}
	if r.status == string(semantics.PreconditionFailed) {
		return semantics.StateVersionDiffers(source.Path, r.number(), version)
	}
	return cmp.Or(r.failure(), r.unmet)
}

// runSetState runs the script, and again with all entities of the topic if it needs them.
func (s *Store) runSetState(ctx context.Context, source semantics.Source, version int64, state []byte) (*reply, error) {
	stored := s.sealing.sealState(source.Path, state)
	var all []string
	routes := ""
	for {
		r, err := s.run(
			ctx, "set_session_state", with(s.keys(source.Path), all...), s.now(), sessionToken(source), version,
			semantics.MaxSessionStates, stored, routes, newMark(), len(state),
		)
		if err != nil || r.status != "NEEDS_ALL" {
			return r, err
		}
		topic, _, _ := semantics.SplitSubscription(source.Path)
		found, err := s.presentRoster(ctx, topic)
		if err != nil {
			return nil, err
		}
		all, routes = s.entities(topic, found.names), found.version
	}
}

// DeadLetterRest implements semantics.Sessions.
func (s *Store) DeadLetterRest(ctx context.Context, path, id string) error {
	for begun := false; ; {
		r, err := s.run(s.lastingAgain(ctx), "dead_letter_rest", s.keys(path), s.now(), sessionKey(id), flag(begun))
		if err != nil {
			return err
		}
		if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
			return err
		}
		begun = r.number() == 1
		if left := r.number() == 1; !left || r.failure() != nil {
			return cmp.Or(r.failure(), r.unmet)
		}
		if ctx.Err() != nil {
			return semantics.CancelledBy(ctx)
		}
	}
}

// UnblockSession implements semantics.Sessions.
func (s *Store) UnblockSession(ctx context.Context, path, id string) error {
	r, err := s.run(s.lastingAgain(ctx), "unblock_session", s.keys(path), s.now(), sessionKey(id))
	if err != nil {
		return err
	}
	return cmp.Or(s.onSource(ctx, semantics.Source{Path: path}, r), r.unmet)
}
