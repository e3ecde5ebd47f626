package redisstore

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// sessionReceiveCall is one Receive from a held session on its way to the script. Calls for different sessions of a queue ride
// together.
type sessionReceiveCall struct {
	source   semantics.Source
	limit    int
	register semantics.Register

	// What the last script gave.
	positions   []int64
	lockedUntil time.Time
	left        bool

	entries []entry
	bytes   int64
	recheck time.Duration
	err     error
}

func (c *sessionReceiveCall) weight() int { return min(c.limit, maxScriptMessages) }

func (s *Store) receiveInSession(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	call := &sessionReceiveCall{source: source, limit: limit, register: register}
	if err := s.sessionReceives.do(ctx, semantics.Fold(source.Path), call); err != nil {
		return semantics.Batch{}, err
	}
	if call.err != nil {
		return semantics.Batch{}, call.err
	}
	return batchOf(call.entries, call.recheck)
}

// runSessionReceives fills the calls, with as many scripts as that takes.
func (s *Store) runSessionReceives(ctx context.Context, calls []*sessionReceiveCall) {
	for len(calls) > 0 {
		if err := s.receiveInSessionsOnce(ctx, calls); err != nil {
			for _, c := range calls {
				if len(c.entries) == 0 { // what an earlier script gave is the caller's own
					c.err = err
				}
			}
			return
		}
		calls = slices.DeleteFunc(calls, (*sessionReceiveCall).satisfied)
	}
}

// satisfied says that a further script would give the call nothing more. One that found nothing because there was too much to
// clear away is satisfied too: its caller looks again.
func (c *sessionReceiveCall) satisfied() bool {
	return c.err != nil || !c.left || len(c.positions) == 0 || len(c.entries) >= c.limit || c.bytes >= maxAnswerBytes
}

// receiveInSessionsOnce locks with one script and reads what it locked with one pipeline. When that read is lost, the messages
// come back when the session's lock ends.
func (s *Store) receiveInSessionsOnce(ctx context.Context, calls []*sessionReceiveCall) error {
	path, nonce := calls[0].source.Path, newNonce()
	args := []any{s.now(), maxAnswerBytes, nonce, s.sidecar}
	for _, c := range calls {
		register := c.register
		if len(c.entries) > 0 && register == semantics.RegisterIfEmpty {
			register = semantics.RegisterNever
		}
		args = append(args, sessionToken(c.source), min(c.limit-len(c.entries), maxScriptMessages), registerNumber(register))
	}
	r, err := s.run(ctx, "receive_in_sessions", s.keys(path).all(), args...)
	if err != nil {
		return err
	}
	if err := s.onSource(ctx, calls[0].source, r); err != nil {
		return err
	}
	recheck := time.Duration(r.number()) * time.Millisecond
	known := knownOf{deliveries: r.list(), changes: r.list()}
	for _, c := range calls {
		c.readLocks(r.text(), recheck)
	}
	if err := r.failure(); err != nil {
		return err
	}
	return s.readBodies(ctx, path, nonce, calls, known)
}

// knownOf is what the script told about the messages of all calls, in their order; empty lists when there is nothing to tell.
type knownOf struct{ deliveries, changes *reply }

// readLocks reads what the script locked for one call: "<left> <locked until> <position> ...".
func (c *sessionReceiveCall) readLocks(row string, recheck time.Duration) {
	c.positions, c.left = nil, false
	if row == string(semantics.SessionLockLost) {
		if len(c.entries) == 0 {
			c.err = semantics.SessionFailure(semantics.SessionLockLost, c.source.Path)
		}
		return
	}
	left, rest, _ := strings.Cut(row, " ")
	until, rest, more := strings.Cut(rest, " ")
	ends, err := strconv.ParseInt(until, 10, 64)
	for more && err == nil {
		var position string
		position, rest, more = strings.Cut(rest, " ")
		var number int64
		number, err = strconv.ParseInt(position, 10, 64)
		c.positions = append(c.positions, number)
	}
	if err != nil {
		c.err = (&reply{err: err}).failure()
		return
	}
	c.left, c.lockedUntil, c.recheck = left == "1", instantOf(ends), recheck
	if len(c.positions) == 0 && c.left {
		c.recheck = 0
	}
}

// readBodies reads the messages behind the positions of all calls, neighbouring ones with one command.
func (s *Store) readBodies(ctx context.Context, path string, nonce uint64, calls []*sessionReceiveCall, known knownOf) error {
	log := s.keys(path).main.log
	reads := make([][]*redis.Cmd, len(calls))
	asked := false
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range calls {
			for _, span := range spansOf(c.positions) {
				reads[i] = append(reads[i], p.Do(ctx, "XRANGE", log, strconv.FormatInt(span[0], 10), strconv.FormatInt(span[1], 10)))
				asked = true
			}
		}
		return nil
	})
	if asked && err != nil {
		return storeError(err, true)
	}
	for i, c := range calls {
		if c.err == nil {
			c.err = c.readEntries(reads[i], nonce, known)
		}
	}
	return nil
}

func (c *sessionReceiveCall) readEntries(reads []*redis.Cmd, nonce uint64, known knownOf) error {
	var read []entry
	for _, cmd := range reads {
		found, err := readEntries(cmd)
		if err != nil {
			return err
		}
		read = append(read, found...)
	}
	for i := range read { // one for each position, or none when the queue is gone
		e := &read[i]
		e.nonce, e.lockedUntil = nonce, c.lockedUntil
		if known.deliveries.more() {
			e.failed = known.deliveries.numberOr(0)
		}
		if known.changes.more() {
			e.changes = known.changes.textOr("")
		}
	}
	for _, e := range read {
		c.bytes += e.size
	}
	c.entries = append(c.entries, read...)
	known.deliveries.adopt(known.changes)
	return known.deliveries.failure()
}

// spansOf puts ascending positions together to first and last of runs without holes.
func spansOf(positions []int64) [][2]int64 {
	var spans [][2]int64
	for i, p := range positions {
		if i > 0 && p == positions[i-1]+1 {
			spans[len(spans)-1][1] = p
			continue
		}
		spans = append(spans, [2]int64{p, p})
	}
	return slices.Clip(spans)
}
