package storetest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

func sortedKeys[K cmp.Ordered, V any](of map[K]V) []K { return slices.Sorted(maps.Keys(of)) }

// listSome lists sessions that a filter chooses, page by page.
func (m *model) listSome(rt *rapid.T) {
	since := func(label string) time.Time {
		return rapid.SampledFrom([]time.Time{{}, {}, m.now, m.now.Add(-ms), m.now.Add(-unit), m.now.Add(-5 * unit)}).Draw(rt, label)
	}
	filter := semantics.SessionFilter{UpdatedSince: since("updated since"), ActiveSince: since("active since")}
	m.compareSessions(rt, m.main.Path, rapid.IntRange(1, 4).Draw(rt, "page"), filter)
}

// compareSessions lists sessions of both stores. Where a page ends is not fixed, but that it is not too long.
func (m *model) compareSessions(rt *rapid.T, path string, page int, filter semantics.SessionFilter) []semantics.SessionRow {
	rows, ok := agree(rt, m, "sessions", func(s semantics.Store) ([]semantics.SessionRow, error) {
		var all []semantics.SessionRow
		for after, pages := "", 0; ; pages++ {
			rows, next, err := s.ListSessions(m.ctx, path, after, page, filter)
			if err != nil {
				return nil, err
			}
			if len(rows) > page || pages > 1000 {
				rt.Fatalf("page %d of %d sessions has %d", pages, page, len(rows))
			}
			all = append(all, rows...)
			if after = next; after == "" {
				return all, nil
			}
		}
	})
	m.looked(ok && path == m.main.Path)
	for i, row := range rows {
		if i > 0 && row.ID <= rows[i-1].ID {
			rt.Fatalf("session %q is listed behind %q", row.ID, rows[i-1].ID)
		}
	}
	return rows
}

// listed returns what the list says of one session; nothing of one that is not listed.
func (m *model) listed(rt *rapid.T, id string) semantics.SessionRow {
	for _, row := range m.compareSessions(rt, m.main.Path, semantics.MaxPageSize, semantics.SessionFilter{}) {
		if row.ID == id {
			return row
		}
	}
	return semantics.SessionRow{}
}

// addSessions adds what the counts of a queue must say of its sessions. How many are ready, and since when, cannot be
// told from what is seen.
func (m *model) addSessions(rt *rapid.T, want *semantics.Runtime, got semantics.Runtime) {
	if !m.options.RequiresSession {
		return
	}
	m.sessionRows = m.compareSessions(rt, m.main.Path, semantics.MaxPageSize, semantics.SessionFilter{})
	listed := map[string]bool{}
	for _, row := range m.sessionRows {
		listed[row.ID] = true
		want.SizeInBytes += row.StateSize
		if row.Blocked {
			want.BlockedSessions++
		}
		m.versions[row.ID] = row.StateVersion
		if until := row.LockedUntil; m.isHeld(row.ID) != !until.IsZero() || m.isHeld(row.ID) && !until.Equal(m.current[row.ID].until) {
			rt.Fatalf("session %q is listed as locked until %s, its lock is %+v", row.ID, until, m.current[row.ID])
		}
	}
	want.Sessions = int64(len(listed))
	for id := range m.current {
		if !m.isHeld(id) {
			continue
		}
		want.LockedSessions++
		if !listed[id] {
			want.Sessions++
		}
	}
	want.ReadySessions, want.AvailableSince = got.ReadySessions, got.AvailableSince
	if got.AvailableSince.IsZero() != (got.ReadySessions == 0) {
		rt.Fatalf("%d sessions are ready, the first since %s", got.ReadySessions, got.AvailableSince)
	}
	if free := want.Sessions - want.LockedSessions; got.ReadySessions > free {
		rt.Fatalf("%d sessions are ready, only %d are free", got.ReadySessions, free)
	}
}

// checkSessions checks that each session has the messages that can be seen of it.
func (m *model) checkSessions(rt *rapid.T) {
	if !m.options.RequiresSession {
		return
	}
	m.checkBooks(rt)
	type counts struct{ available, delayed, locked, deferred, scheduled int64 }
	seen := map[string]counts{}
	for _, row := range m.rows {
		of := seen[row.SessionID]
		switch groupOf(row) {
		case semantics.ShowLocked:
			of.locked++
		case semantics.ShowDeferred:
			of.deferred++
		case semantics.ShowScheduled:
			of.scheduled++
		default:
			of.available++
			if !row.VisibleAt.IsZero() {
				of.delayed++
			}
		}
		seen[row.SessionID] = of
	}
	for _, row := range m.sessionRows {
		got := counts{row.Available, row.Delayed, row.Locked, row.Deferred, row.Scheduled}
		if got != seen[row.ID] {
			rt.Fatalf("session %q is said to have %+v, but has %+v", row.ID, got, seen[row.ID])
		}
		if got == (counts{}) && row.StateVersion == 0 && !row.Blocked {
			rt.Fatalf("session %q is listed and has nothing", row.ID)
		}
		delete(seen, row.ID)
	}
	for id := range seen {
		rt.Fatalf("session %q has messages and is not listed", id)
	}
}

func (m *model) peekSession(rt *rapid.T) {
	at := m.drawSessionAt(rt)
	m.comparePeek(rt, at, rapid.Int64Range(0, m.last+1).Draw(rt, "from"), rapid.IntRange(1, 5).Draw(rt, "limit"),
		semantics.Show(rapid.IntRange(1, int(semantics.ShowAll)).Draw(rt, "show")))
}

func (m *model) purgeSession(rt *rapid.T) {
	show := rapid.SampledFrom([]semantics.Show{semantics.ShowAvailable, semantics.ShowDeferred, semantics.ShowScheduled}).Draw(rt, "group")
	m.purgeStepwise(rt, m.drawSessionAt(rt), show, rapid.IntRange(1, 3).Draw(rt, "most"))
}

// drawSessionAt returns a session as its holder, or by its name without a lock.
func (m *model) drawSessionAt(rt *rapid.T) origin {
	if len(m.holds) > 0 && rapid.Bool().Draw(rt, "as holder") {
		return m.under(m.drawHold(rt))
	}
	return origin{Source: semantics.Source{Path: m.main.Path, Session: m.drawSessionID(rt)}}
}
