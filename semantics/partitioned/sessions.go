package partitioned

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// onSessions runs a verb about sessions.
func (s *Store) onSessions(ctx context.Context, path string, verb func() error) error {
	return s.on(ctx, path, verb, func(w *whole) error {
		return semantics.SessionFailure(semantics.SessionNotSupported, w.name)
	})
}

// AcceptSession implements semantics.Sessions.
func (s *Store) AcceptSession(ctx context.Context, path, id string) (session *semantics.Session, err error) {
	err = s.onSessions(ctx, path, func() error {
		session, err = s.Store.AcceptSession(ctx, path, id)
		return err
	})
	return session, err
}

// AcceptNextSession implements semantics.Sessions.
func (s *Store) AcceptNextSession(
	ctx context.Context, path string, register semantics.Register,
) (session *semantics.Session, recheck time.Duration, err error) {
	err = s.onSessions(ctx, path, func() error {
		session, recheck, err = s.Store.AcceptNextSession(ctx, path, register)
		return err
	})
	return session, recheck, err
}

// RenewSessionLock implements semantics.Sessions.
func (s *Store) RenewSessionLock(ctx context.Context, source semantics.Source) (until time.Time, err error) {
	err = s.onSessions(ctx, source.Path, func() error {
		until, err = s.Store.RenewSessionLock(ctx, source)
		return err
	})
	return until, err
}

// CloseSession implements semantics.Sessions.
func (s *Store) CloseSession(ctx context.Context, source semantics.Source) error {
	return s.onSessions(ctx, source.Path, func() error { return s.Store.CloseSession(ctx, source) })
}

// Turn implements semantics.Sessions.
func (s *Store) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	w := s.remembered(path)
	if w == nil {
		return s.Store.Turn(ctx, path, turns)
	}
	outcomes := make([]semantics.TurnOutcome, len(turns))
	for i := range outcomes {
		outcomes[i].Err = semantics.SessionFailure(semantics.SessionNotSupported, w.name)
	}
	return outcomes
}

// SessionState implements semantics.Sessions.
func (s *Store) SessionState(
	ctx context.Context, source semantics.Source,
) (state semantics.SessionState, err error) {
	err = s.onSessions(ctx, source.Path, func() error {
		state, err = s.Store.SessionState(ctx, source)
		return err
	})
	return state, err
}

// SetSessionState implements semantics.Sessions.
func (s *Store) SetSessionState(
	ctx context.Context, source semantics.Source, state []byte, expected *int64,
) (version int64, err error) {
	err = s.onSessions(ctx, source.Path, func() error {
		version, err = s.Store.SetSessionState(ctx, source, state, expected)
		return err
	})
	return version, err
}

// ListSessions implements semantics.Sessions.
func (s *Store) ListSessions(
	ctx context.Context, path, after string, limit int, filter semantics.SessionFilter,
) (rows []semantics.SessionRow, next string, err error) {
	err = s.onSessions(ctx, path, func() error {
		rows, next, err = s.Store.ListSessions(ctx, path, after, limit, filter)
		return err
	})
	return rows, next, err
}

// UnblockSession implements semantics.Sessions.
func (s *Store) UnblockSession(ctx context.Context, path, id string) error {
	return s.onSessions(ctx, path, func() error { return s.Store.UnblockSession(ctx, path, id) })
}

// DeadLetterRest implements semantics.Sessions.
func (s *Store) DeadLetterRest(ctx context.Context, path, id string) error {
	return s.onSessions(ctx, path, func() error { return s.Store.DeadLetterRest(ctx, path, id) })
}
