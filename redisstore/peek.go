package redisstore

import (
	"context"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// mostPeekScripts bounds the scripts of one Peek whose filter finds nothing.
const mostPeekScripts = 1000

// Peek implements semantics.Receiver.
func (s *Store) Peek(
	ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show,
) ([]*semantics.Received, error) {
	var found []*semantics.Received
	bytes := int64(0) // bytes that the shown messages count for
	from = max(from, 1)
	for range mostPeekScripts {
		page, next, err := s.peekOnce(ctx, source, from, limit-len(found), bytesLeftText(max(bytes, 1)), show)
		if err == nil && next < 0 && len(page)+len(found) == 0 {
			err = s.alone(ctx, func() error {
				page, next, err = s.peekOnce(ctx, source, -next, 1, bytesLeftText(0), show)
				return err
			})
		}
		if err != nil {
			return nil, err
		}
		for i := range page {
			found = append(found, page[i].message)
			bytes += page[i].weight
		}
		if next <= 0 || len(found) >= limit || bytes >= semantics.MaxAnswerBytes {
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
		{semantics.ShowAvailable, "a"},
		{semantics.ShowLocked, "l"},
		{semantics.ShowDeferred, "d"},
		{semantics.ShowScheduled, "s"},
	} {
		if show&g.group != 0 {
			letters += g.letter
		}
	}
	return letters
}

// peeked is a message and what it counts for in the answer.
type peeked struct {
	message *semantics.Received
	weight  int64
}

// peekOnce returns what one script shows and the number to continue from: 0 when there are no more, negative when the
// message at that number does not fit.
func (s *Store) peekOnce(
	ctx context.Context, source semantics.Source, from int64, limit int, bytesLeft string, show semantics.Show,
) ([]peeked, int64, error) {
	r, err := s.runOn(
		ctx, source, "peek", s.keysOf(source), s.now(), prefixOf(source.SubQueue), strconv.FormatInt(from, 10),
		min(limit, maxScriptMessages), bytesLeft, groupLetters(show), sessionToken(source), sessionKey(source.Session),
	)
	if err != nil {
		return nil, 0, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, 0, err
	}
	now := r.instant()
	next := r.number()
	entries, deliveries, changes, groups, visible := r.list(), r.list(), r.list(), r.list(), r.list()
	var found []peeked
	for entries.more() {
		e := readEntry(entries)
		e.failed = deliveries.numberOr(0)
		e.setChanges(changes.textOr(""))
		group := groups.text()
		if e.scheduled = group == "s"; e.scheduled {
			e.dead, e.sessionSequence = nil, 0 // its further fields are not those of a dead letter
		}
		m := e.received(s.sealing)
		m.Locked = group == "l" || group == "x"
		m.Expired = group != "s" && source.SubQueue == semantics.MainQueue && !m.ExpiresAt.IsZero() &&
			!now.Before(m.ExpiresAt)
		if group == "d" || group == "x" {
			m.State = semantics.Deferred
		}
		if at := visible.instant(); !at.IsZero() {
			m.VisibleAt = at
		}
		found = append(found, peeked{m, e.weight})
	}
	for _, list := range []*reply{entries, deliveries, changes, groups, visible} {
		r.adopt(list)
	}
	return found, next, r.failure()
}
