package memstore

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// SessionState implements semantics.Sessions.
func (s *Store) SessionState(ctx context.Context, source semantics.Source) (semantics.SessionState, error) {
	_, in, _, unlock, err := s.openToReceive(ctx, source, forHeld)
	defer unlock()
	if err != nil {
		return semantics.SessionState{}, err
	}
	return in.held.copyOfState(), nil
}

// SetSessionState implements semantics.Sessions. The checks stand in the order of ERR-5: existence, status, kind, size
// (SESS-32), lock, version, quota.
func (s *Store) SetSessionState(
	ctx context.Context, source semantics.Source, data []byte, expected *int64,
) (int64, error) {
	fits := func(q *queue, source semantics.Source) error { return q.fitsState(source, data) }
	q, in, now, unlock, err := s.openToReceive(ctx, source, fits)
	defer unlock()
	if err != nil {
		return 0, err
	}
	if err := q.checkState(in.held, data, expected, s.maxSessionStates); err != nil {
		return 0, err
	}
	return q.replaceState(in.held, data, now), nil
}

// fitsState is the kind of a verb that sets the state of a session (ERR-5).
func (q *queue) fitsState(source semantics.Source, data []byte) error {
	if err := forHeld(q, source); err != nil {
		return err
	}
	if size, limit := int64(len(data)), q.bounded().options.MaxMessageBytes(); size > limit {
		return semantics.StateTooLarge(q.name, size, limit)
	}
	return nil
}

// checkState checks that a held session may get a state: the version that it has, nil for any, and the quotas.
func (q *queue) checkState(on *session, data []byte, expected *int64, most int) error {
	if expected != nil && *expected != on.state.Version {
		return semantics.StateVersionDiffers(q.name, on.state.Version, *expected)
	}
	return q.checkStateRoom(on, data, most)
}

// replaceState sets or clears the state of a held session and returns its version.
func (q *queue) replaceState(on *session, data []byte, now time.Time) int64 {
	state := semantics.SessionState{Data: slices.Clone(data)} // a copy of what is empty is not nil
	if data != nil {
		*q.lastVersion++
		state.Version = *q.lastVersion
	}
	q.setState(on, state)
	on.stateSetAt, on.lastActivity = now, now
	return state.Version
}

func (q *queue) setState(on *session, state semantics.SessionState) {
	q.stateBytes += int64(len(state.Data) - len(on.state.Data))
	on.state = state
}

// copyOfState returns the state as it is handed out.
func (on *session) copyOfState() semantics.SessionState {
	return semantics.SessionState{Data: slices.Clone(on.state.Data), Version: on.state.Version}
}

// checkStateRoom checks that the quotas permit one state more, and the bytes by which a session's grows (SESS-33c,
// QUOTA-8).
func (q *queue) checkStateRoom(on *session, data []byte, most int) error {
	if data != nil && !on.hasState() && q.states()+q.claims.states >= most {
		return semantics.TooManyStates(q.name, int64(most))
	}
	more := int64(len(data) - len(on.state.Data))
	of := q.bounded()
	if limit, actual := of.options.MaxBytes(), of.bytes()+of.claims.bytes+more; more > 0 && actual > limit {
		return full(of, semantics.BoundBytes, actual, limit)
	}
	return nil
}

// states is the number of sessions that have state.
func (q *queue) states() int {
	n := 0
	for _, on := range q.sessions {
		if on.hasState() {
			n++
		}
	}
	return n
}

// rest notes that nothing is left of a session but its state, and when that is removed if it stays so (SESS-33c).
func (q *queue) rest(on *session) {
	if on.resting {
		return
	}
	on.resting = true
	if ttl := q.options.SessionStateTTL; ttl != semantics.Never {
		if at := on.lastActivity.Add(ttl.Truncate(time.Millisecond)); at.Year() <= lastYear {
			on.stateUntil = at
			q.expect(on.due())
		}
	}
}

// keepStates keeps the states of sessions at rest from now on (SESS-33c).
func (q *queue) keepStates() {
	for _, on := range q.sessions {
		on.stateUntil = time.Time{}
	}
}

// endStates removes the states of sessions that have rested long enough.
func (q *queue) endStates(now time.Time) {
	q.tidy(now) // some may have become idle by this very sweep
	for _, on := range q.sessions {
		if reached(on.stateUntil, now) {
			q.setState(on, semantics.SessionState{})
			on.resting, on.stateUntil = false, time.Time{}
		}
	}
}
