package memstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// ListSessions implements semantics.Sessions.
func (s *Store) ListSessions(
	ctx context.Context, path, after string, limit int, filter semantics.SessionFilter,
) ([]semantics.SessionRow, string, error) {
	q, _, unlock, err := s.openSessions(ctx, path)
	defer unlock()
	if err != nil {
		return nil, "", err
	}
	var rows []semantics.SessionRow
	messages := q.bySession()
	for _, id := range slices.Sorted(maps.Keys(q.sessions)) {
		on := q.sessions[id]
		isListed := len(messages[id]) > 0 || on.hasState() || on.blocked
		if id <= after || !isListed || !on.matches(filter) {
			continue
		}
		if len(rows) == limit {
			return rows, rows[limit-1].ID, nil
		}
		rows = append(rows, on.row(messages[id]))
	}
	return rows, "", nil
}

// matches reports whether a filter chooses the session (SESS-37).
func (on *session) matches(filter semantics.SessionFilter) bool {
	chosen := func(at, since time.Time) bool { return since.IsZero() || at.After(since) }
	return (filter.UpdatedSince.IsZero() || on.hasState()) &&
		chosen(on.stateSetAt, filter.UpdatedSince) && chosen(on.lastActivity, filter.ActiveSince)
}

// row is what a list says of the session (SESS-38).
func (on *session) row(messages []*message) semantics.SessionRow {
	row := semantics.SessionRow{
		ID: on.id, LockedUntil: on.lockedUntil, LastActivity: on.lastActivity,
		StateSize: int64(len(on.state.Data)), StateVersion: on.state.Version, Blocked: on.blocked,
	}
	for _, m := range messages {
		switch m.group() {
		case semantics.ShowLocked:
			row.Locked++
		case semantics.ShowDeferred:
			row.Deferred++
		case semantics.ShowScheduled:
			row.Scheduled++
		default:
			row.Available++
			if m.delayed() {
				row.Delayed++
			}
		}
	}
	return row
}
