package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

const (
	maxScriptSessions = 50 // rows of one script, so that it stays short
	maxListScripts    = 20 // of one call whose filter finds little
)

// ListSessions implements semantics.Sessions.
func (s *Store) ListSessions(
	ctx context.Context, path, after string, limit int, filter semantics.SessionFilter,
) ([]semantics.SessionRow, string, error) {
	var rows []semantics.SessionRow
	for range maxListScripts {
		r, err := s.run(
			ctx, "list_sessions", s.keys(path), s.now(), sessionKey(after), min(limit-len(rows), maxScriptSessions),
			sinceMillis(filter.UpdatedSince), sinceMillis(filter.ActiveSince),
		)
		if err != nil {
			return nil, "", err
		}
		if err := s.onSource(ctx, semantics.Source{Path: path}, r); err != nil {
			return nil, "", err
		}
		after = sessionID(r.text())
		for r.more() {
			row := r.list()
			rows = append(rows, readSessionRow(row))
			r.adopt(row)
		}
		if err := r.failure(); err != nil {
			return nil, "", err
		}
		if after == "" || len(rows) >= limit {
			break
		}
	}
	return rows, after, nil
}

func sinceMillis(at time.Time) int64 {
	if at.IsZero() {
		return -1
	}
	return max(at.UnixMilli(), 0)
}

func readSessionRow(r *reply) semantics.SessionRow {
	return semantics.SessionRow{
		ID: sessionID(r.text()), Available: r.number(), Delayed: r.number(), Locked: r.number(), Deferred: r.number(),
		Scheduled: r.number(), LockedUntil: r.instant(), LastActivity: r.instant(), StateSize: r.number(),
		StateVersion: r.number(), Blocked: r.number() == 1,
	}
}
