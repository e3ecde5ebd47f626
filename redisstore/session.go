package redisstore

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

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
	session, size, err := s.acceptStored(ctx, path, id)
	if err != nil {
		return nil, err
	}
	if err := s.openSession(path, session, size); err != nil {
		s.freeSessions(ctx, path, session)
		return nil, err
	}
	return session, nil
}

// acceptStored is AcceptSession with the state as it is stored, and its size for openSession.
func (s *Store) acceptStored(
	ctx context.Context, path, id string,
) (session *semantics.Session, size int64, err error) {
	token := semantics.NewSessionToken(s.tag)
	for {
		r, err := s.run(ctx, "accept_session", s.keys(path), s.now(), sessionKey(id), token.String())
		if err != nil {
			return nil, 0, err
		}
		if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
			return nil, 0, err
		}
		if r.status == "OK" {
			session, size := readSession(r, id, token)
			return session, size, r.failure()
		}
		clearing := r.number() == 1
		if err := r.failure(); err != nil {
			return nil, 0, err
		}
		if !clearing {
			return nil, 0, semantics.SessionFailure(semantics.SessionCannotBeLocked, path)
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

// readSession reads the end of the lock and the state, as it is stored, with its size for openSession.
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

// openSession makes the state of a session that was accepted what the client set.
func (s *Store) openSession(path string, session *semantics.Session, size int64) (err error) {
	session.State.Data, err = s.sealing.openState(path, session.State.Data, size)
	return err
}

// freeSessions closes sessions that no client gets, for sidecars that can read their states.
func (s *Store) freeSessions(ctx context.Context, path string, sessions ...*semantics.Session) {
	if len(sessions) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockedTimeout)
	defer cancel()
	calls := make([]*closeCall, len(sessions))
	for i, session := range sessions {
		calls[i] = &closeCall{source: semantics.Source{Path: path, SessionLock: session.Lock}}
	}
	s.runCloses(ctx, calls) // one that cannot be closed is free when its lock ends
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
	if err := cmp.Or(s.onSource(ctx, semantics.Source{Path: path}, r), r.unmet); err != nil || s.sealing.keys == nil {
		return err
	}
	if seems, err := s.seemsDamaged(ctx, path, id); err != nil || !seems {
		return err
	}
	return s.dropDamagedState(ctx, path, id)
}

// seemsDamaged reports whether the state of a session probably cannot be read. It changes nothing, while an accept
// would count as activity.
func (s *Store) seemsDamaged(ctx context.Context, path, id string) (bool, error) {
	keys, read := s.keys(path), [2]*redis.StringCmd{}
	for i, name := range []string{"sessions", "session_states"} {
		read[i] = redis.NewStringCmd(ctx, "hget", keys.key(name), sessionKey(id))
		if err := s.redis(ctx).Process(ctx, read[i]); errors.Is(err, redis.Nil) {
			return false, nil
		} else if err != nil {
			return false, storeError(err, false)
		}
	}
	record := read[0].Val()
	size, _ := strconv.ParseInt(record[strings.LastIndexByte(record, ':')+1:], 10, 64)
	_, err := s.sealing.openState(path, []byte(read[1].Val()), size)
	return semantics.CodeOf(err) == semantics.Internal, nil
}

// dropDamagedState clears the state of a session that cannot be accepted because its state is damaged (CRYPT-5).
func (s *Store) dropDamagedState(ctx context.Context, path, id string) error {
	session, size, err := s.acceptStored(ctx, path, id)
	switch semantics.CodeOf(err) {
	case "":
	case semantics.SessionCannotBeLocked, semantics.EntityDisabled: // its holder has the state, or none can have
		return nil
	default:
		return err
	}
	defer s.freeSessions(ctx, path, session)
	version := session.State.Version
	if semantics.CodeOf(s.openSession(path, session, size)) != semantics.Internal {
		return nil
	}
	return s.clearState(ctx, semantics.Source{Path: path, SessionLock: session.Lock}, version)
}
