package redisstore

import (
	"context"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// mostPeekScripts bounds the scripts of one Peek that finds nothing to show in what it looks at.
const mostPeekScripts = 1000

// Peek implements semantics.Receiver.
func (s *Store) Peek(ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show) ([]*semantics.Received, error) {
	var found []*semantics.Received
	bytes := int64(0)
	from = max(from, 1)
	for range mostPeekScripts {
		page, next, err := s.peekOnce(ctx, source, from, limit-len(found), maxAnswerBytes-bytes, show)
		if err != nil {
			return nil, err
		}
		found = append(found, page...)
		for _, m := range page {
			bytes += m.Size
		}
		if next == 0 || len(found) >= limit || bytes >= maxAnswerBytes {
			return found, nil
		}
		from = next
	}
	return found, nil
}

// groupLetters are the groups of messages as peek.lua knows them.
func groupLetters(show semantics.Show) string {
	letters := ""
	for _, g := range []struct {
		group  semantics.Show
		letter string
	}{
		{semantics.ShowAvailable, "a"}, {semantics.ShowLocked, "l"}, {semantics.ShowDeferred, "d"}, {semantics.ShowScheduled, "s"},
	} {
		if show&g.group != 0 {
			letters += g.letter
		}
	}
	return letters
}

// peekOnce gives what one script shows and the number to go on from, 0 when there is no more.
func (s *Store) peekOnce(ctx context.Context, source semantics.Source, from int64, limit int, maxBytes int64, show semantics.Show) ([]*semantics.Received, int64, error) {
	r, err := s.runOn(ctx, source, "peek", s.keysOf(source).all(), s.now(), prefixOf(source.SubQueue),
		strconv.FormatInt(from, 10), min(limit, maxScriptMessages), maxBytes, groupLetters(show), sessionToken(source), sessionKey(source.Session))
	if err != nil {
		return nil, 0, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, 0, err
	}
	now := r.instant()
	next := r.number()
	entries, deliveries, changes, groups, visible := r.list(), r.list(), r.list(), r.list(), r.list()
	var found []*semantics.Received
	for entries.more() {
		e := readEntry(entries)
		e.failed, e.changes = deliveries.numberOr(0), changes.textOr("")
		group := groups.text()
		if e.scheduled = group == "s"; e.scheduled {
			e.dead, e.sessionSequence = nil, 0 // its further fields are not those of a dead letter
		}
		m, err := e.received()
		if err != nil {
			return nil, 0, err
		}
		m.Locked = group == "l" || group == "x"
		m.Expired = group != "s" && source.SubQueue == semantics.MainQueue && !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt)
		if group == "d" || group == "x" {
			m.State = semantics.Deferred
		}
		if at := visible.instant(); !at.IsZero() {
			m.VisibleAt = at
		}
		found = append(found, m)
	}
	for _, list := range []*reply{entries, deliveries, changes, groups, visible} {
		r.adopt(list)
	}
	return found, next, r.failure()
}
