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

// lockedTimeout bounds the reads after a script has locked messages. They do not end with the caller's context.
const lockedTimeout = 10 * time.Second

// span is a range of positions of a log.
type span struct {
	first, last string
	from        string // where the entry begins that has the first one, "" when that is not known
}

func (r span) bounds() (first, last int64, err error) {
	end, _, _ := strings.Cut(r.last, "-") // of an id
	first, err1 := strconv.ParseInt(r.first, 10, 64)
	last, err2 := strconv.ParseInt(end, 10, 64)
	return first, last, errors.Join(err1, err2)
}

// readSpans reads the messages from the first to the last position of each span. It reads large ones alone.
func (s *Store) readSpans(ctx context.Context, keys entityKeys, spans []span) ([][]entry, error) {
	read, err := s.readMessages(ctx, keys, withoutLarge(spans))
	if err != nil {
		return nil, err
	}
	for i, r := range spans {
		if len(read[i]) > 0 || !isSingle(r) {
			continue
		}
		err := s.alone(ctx, func() error {
			large, err := s.readTogether(ctx, keys.key("log"), spans[i:i+1])
			if err == nil {
				read[i] = large[0]
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return read, nil
}

// readMessages reads the messages from the first to the last position of each span.
func (s *Store) readMessages(ctx context.Context, keys entityKeys, spans []span) ([][]entry, error) {
	read, err := s.readTogether(ctx, keys.key("log"), spans)
	if err != nil {
		return nil, err
	}
	for i, r := range spans {
		if read[i], err = r.withoutChunks(read[i]); err != nil {
			return nil, err
		}
	}
	if err := s.readFirstChunks(ctx, keys, spans, read); err != nil {
		return nil, err
	}
	return read, s.addBodies(ctx, keys, read)
}

// readTogether reads the entries of spans with one pipeline. It tries again when a connection breaks, because it
// changes nothing and the messages are locked.
func (s *Store) readTogether(ctx context.Context, log string, spans []span) (read [][]entry, err error) {
	for range 2 {
		cmds := make([]*redis.Cmd, len(spans))
		_, err = s.redis(ctx).Pipelined(ctx, func(p redis.Pipeliner) error {
			for i, r := range spans {
				cmds[i] = p.Do(ctx, "XRANGE", log, cmp.Or(r.from, r.first), r.last)
			}
			return nil
		})
		if err != nil {
			err = storeError(err, true)
			continue
		}
		read = make([][]entry, len(spans))
		for i, cmd := range cmds {
			items, err := cmd.Slice()
			if err != nil {
				return nil, storeError(err, true)
			}
			if read[i], err = readEntries(&reply{script: "XRANGE", items: items}); err != nil {
				return nil, err
			}
		}
		return read, nil
	}
	return nil, err
}

// readEntries reads a list of entries as XRANGE returns it.
func readEntries(r *reply) ([]entry, error) {
	entries := make([]entry, 0, len(r.items))
	for r.more() {
		pair := r.list()
		entries = append(entries, readEntry(pair))
		r.adopt(pair)
	}
	return entries, r.failure()
}

// entriesIn returns entries with what is needed to end the locks of all positions in spans.
func entriesIn(spans []span, nonce uint64) []entry {
	var entries []entry
	for _, r := range spans {
		first, last, err := r.bounds()
		if err != nil {
			continue
		}
		for position := first; position <= last; position++ {
			entries = append(entries, entry{position: position, nonce: nonce})
		}
	}
	return entries
}

// giveBack releases locked messages that no caller gets, so that no delivery is counted (RECV-7, DC-2). If that fails,
// the next receive in their session releases them; without a session the locks expire, and each counts a delivery.
func (s *Store) giveBack(ctx context.Context, source semantics.Source, entries []entry) {
	if len(entries) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockedTimeout)
	defer cancel()
	tokens := make([]semantics.LockToken, len(entries))
	for i := range entries {
		tokens[i] = entries[i].lock().token()
	}
	if _, err := s.Release(ctx, source, tokens); err != nil && !source.SessionLock.IsZero() {
		for i := range entries {
			s.unanswered.note(sessionToken(source), entries[i].lock().text())
		}
	}
}
