package redisstore

import (
	"cmp"
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Sessions that one script accepts or closes.
const (
	fullSessions = 16
	mostSessions = 64
)

// acceptCall is one AcceptNextSession on its way to the script.
type acceptCall struct {
	path     string
	token    semantics.LockToken
	register semantics.Register
	session  *semantics.Session
	size     int64 // of its state: see openSession
	recheck  time.Duration
	err      error
}

// AcceptNextSession implements semantics.Sessions. Sessions whose states cannot be read do not hold up the others: it
// keeps them until it has another one, so that it sees none of them twice. They are the failure only if there is none.
func (s *Store) AcceptNextSession(
	ctx context.Context, path string, register semantics.Register,
) (*semantics.Session, time.Duration, error) {
	var passed []*semantics.Session
	defer func() { s.freeSessions(ctx, path, passed...) }()
	var failed error
	for {
		call := &acceptCall{path: path, token: semantics.NewSessionToken(s.tag), register: register}
		if err := cmp.Or(s.accepts.do(ctx, semantics.Fold(path), call), call.err); err != nil {
			return nil, 0, err
		}
		if call.session == nil {
			return nil, call.recheck, failed
		}
		err := s.openSession(path, call.session, call.size)
		if err == nil {
			return call.session, call.recheck, nil
		}
		failed, passed = cmp.Or(failed, err), append(passed, call.session)
		if len(passed) == mostSessions {
			return nil, 0, failed
		}
	}
}

func (s *Store) runAccepts(ctx context.Context, calls []*acceptCall) {
	if err := s.acceptNext(ctx, calls); err != nil {
		for _, c := range calls {
			if c.session == nil {
				c.err = err
			}
		}
	}
}

// acceptNext distributes the sessions that are ready among the calls, in order of arrival.
func (s *Store) acceptNext(ctx context.Context, calls []*acceptCall) error {
	path, register := calls[0].path, semantics.RegisterNever
	args := []any{s.now(), nil, s.sidecar}
	for _, c := range calls {
		register = max(register, c.register)
		args = append(args, c.token.String())
	}
	args[1] = registerNumber(register)
	r, err := s.run(ctx, "accept_next_session", s.keys(path), args...)
	if err != nil {
		return err
	}
	if r.status == string(semantics.InvalidOperation) {
		return semantics.AcceptNextRefused(path)
	}
	if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
		return err
	}
	recheck := time.Duration(r.number()) * time.Millisecond
	left := r.number() == 1
	for _, c := range calls {
		c.recheck = recheck
		if r.more() {
			row := r.list()
			c.session, c.size = readSession(row, sessionID(row.text()), c.token)
			c.err = row.failure()
		} else if left {
			c.recheck = 0
		}
	}
	return r.failure()
}

// closeCall is one CloseSession on its way to the script.
type closeCall struct {
	source semantics.Source
	err    error
}

// CloseSession implements semantics.Sessions.
func (s *Store) CloseSession(ctx context.Context, source semantics.Source) error {
	call := &closeCall{source: source}
	if err := s.closes.do(ctx, semantics.Fold(source.Path), call); err != nil {
		return err
	}
	return call.err
}

func (s *Store) runCloses(ctx context.Context, calls []*closeCall) {
	args := []any{s.now()}
	for _, c := range calls {
		args = append(args, sessionToken(c.source))
	}
	r, err := s.run(ctx, "close_session", s.keys(calls[0].source.Path), args...)
	if err == nil {
		err = s.onSource(ctx, calls[0].source, r)
	}
	for _, c := range calls {
		if c.err = err; err != nil {
			continue
		}
		s.unanswered.forget(sessionToken(c.source))
		if r.number() == 0 {
			c.err = semantics.SessionFailure(semantics.SessionLockLost, c.source.Path)
		}
		if c.err == nil {
			c.err = r.failure()
		}
	}
}
