package storetest

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// numbered is a store whose versions of session states are counted from 1. A store may choose what versions it likes,
// as long as none comes again (SESS-33), so two stores agree only on which of its versions each one is.
type numbered struct {
	semantics.Store
	*versions
}

// versions outlive a restart of their store.
type versions struct {
	counts map[int64]int64 // of each version
	own    []int64         // versions of the store, by count
}

// neverUsed stands for a version that the store has not given yet.
const neverUsed = 1<<53 - 1

func newVersions() *versions { return &versions{counts: map[int64]int64{0: 0}, own: []int64{0}} }

// count returns the count of a version. One that the store returns without having set it is negative, which no count
// is.
func (v *versions) count(own int64) int64 {
	if n, known := v.counts[own]; known {
		return n
	}
	return -own
}

func (v *versions) ofState(state semantics.SessionState) semantics.SessionState {
	state.Version = v.count(state.Version)
	return state
}

func (s numbered) SetSessionState(ctx context.Context, source semantics.Source, data []byte, expected *int64) (int64, error) {
	own, err := s.Store.SetSessionState(ctx, source, data, s.ownOf(expected))
	if err != nil {
		return own, err
	}
	return s.wasSet(own), nil
}

// ownOf returns the version of the store that a count stands for.
func (v *versions) ownOf(count *int64) *int64 {
	if count == nil {
		return nil
	}
	own := int64(neverUsed)
	if *count >= 0 && *count < int64(len(v.own)) {
		own = v.own[*count]
	}
	return &own
}

// wasSet returns the count of a version that the store has chosen for a new state.
func (v *versions) wasSet(own int64) int64 {
	if own == 0 {
		return 0
	}
	if _, again := v.counts[own]; again {
		return -own
	}
	v.counts[own] = int64(len(v.own))
	v.own = append(v.own, own)
	return v.counts[own]
}

func (s numbered) Transact(ctx context.Context, once *semantics.Once, operations []semantics.Operation) semantics.TransactionOutcome {
	for i := range operations {
		operations[i].Version = s.ownOf(operations[i].Version)
	}
	outcome := s.Store.Transact(ctx, once, operations)
	for i, r := range outcome.Results {
		if outcome.Repeats != nil {
			outcome.Results[i].Version = s.count(r.Version)
		} else {
			outcome.Results[i].Version = s.wasSet(r.Version)
		}
	}
	return outcome
}

func (s numbered) SessionState(ctx context.Context, source semantics.Source) (semantics.SessionState, error) {
	state, err := s.Store.SessionState(ctx, source)
	return s.ofState(state), err
}

func (s numbered) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	session, err := s.Store.AcceptSession(ctx, path, id)
	if session != nil {
		session.State = s.ofState(session.State)
	}
	return session, err
}

func (s numbered) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	session, recheck, err := s.Store.AcceptNextSession(ctx, path, register)
	if session != nil {
		session.State = s.ofState(session.State)
	}
	return session, recheck, err
}

func (s numbered) ListSessions(
	ctx context.Context, path, after string, limit int, filter semantics.SessionFilter,
) ([]semantics.SessionRow, string, error) {
	rows, next, err := s.Store.ListSessions(ctx, path, after, limit, filter)
	for i := range rows {
		rows[i].StateVersion = s.count(rows[i].StateVersion)
	}
	return rows, next, err
}
