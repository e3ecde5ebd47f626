package redisstore

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

const (
	maxScriptMessages = 250     // handed out by one script, so that it stays short
	maxAnswerBytes    = 2 << 20 // handed out to one caller, so that a client with default limits can read it

	// Messages asked for that share one receive script.
	fullReceive = 64
	mostReceive = maxScriptMessages
)

// receiveCall is one Receive on its way to the script.
type receiveCall struct {
	source   semantics.Source
	limit    int
	register semantics.Register
	entries  []entry
	bytes    int64
	recheck  time.Duration
	err      error
}

func (c *receiveCall) weight() int { return min(c.limit, maxScriptMessages) }

func (c *receiveCall) satisfied() bool { return len(c.entries) >= c.limit || c.bytes >= maxAnswerBytes }

// Receive implements semantics.Receiver.
func (s *Store) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if !source.SessionLock.IsZero() {
		return s.receiveInSession(ctx, source, limit, register)
	}
	call := &receiveCall{source: source, limit: limit, register: register}
	if err := s.receives.do(ctx, source.Fold().String(), call); err != nil {
		return semantics.Batch{}, err
	}
	if call.err != nil {
		return semantics.Batch{}, call.err
	}
	return batchOf(call.entries, call.recheck)
}

// batchOf decodes what was locked.
func batchOf(entries []entry, recheck time.Duration) (semantics.Batch, error) {
	messages := make([]*semantics.Received, len(entries))
	for i, e := range entries {
		m, err := e.received()
		if err != nil {
			return semantics.Batch{}, err
		}
		m.DeliveryCount++ // this one (MSG-10)
		messages[i] = m
	}
	return semantics.Batch{Messages: messages, RecheckAfter: recheck}, nil
}

// runReceives fills the calls in order of arrival, with as many scripts as that takes.
func (s *Store) runReceives(ctx context.Context, calls []*receiveCall) {
	for len(calls) > 0 {
		found, left, recheck, err := s.receiveOnce(ctx, calls)
		for _, c := range calls {
			// What a caller was given by an earlier script is its own; a failure belongs to those with nothing.
			if err != nil && len(c.entries) == 0 {
				c.err = err
			}
			c.recheck = recheck
			for len(found) > 0 && !c.satisfied() {
				c.entries = append(c.entries, found[0])
				c.bytes += found[0].size
				found = found[1:]
			}
		}
		if err != nil || !left || recheck == 0 {
			return
		}
		for len(calls) > 0 && calls[0].satisfied() {
			calls = calls[1:]
		}
	}
}

// receiveOnce runs the script for the calls that are not satisfied yet. left tells that there is more to be had; a recheck
// of zero that nothing was found only because there was too much to clear away.
func (s *Store) receiveOnce(ctx context.Context, calls []*receiveCall) (found []entry, left bool, recheck time.Duration, err error) {
	source := calls[0].source
	limit, registerBelow := 0, 0
	for _, c := range calls {
		switch c.register {
		case semantics.RegisterAlways:
			registerBelow = math.MaxInt32
		case semantics.RegisterIfEmpty:
			if len(c.entries) == 0 {
				registerBelow = max(registerBelow, limit+1) // it gets nothing when those before it take all
			}
		case semantics.RegisterNever:
		}
		limit += c.limit - len(c.entries)
	}
	nonce := newNonce()
	r, err := s.runOn(ctx, source, "receive", s.keysOf(source).all(), s.now(), prefixOf(source.SubQueue),
		min(limit, maxScriptMessages), maxAnswerBytes, nonce, registerBelow, s.sidecar)
	if err != nil {
		return nil, false, 0, err
	}
	if err := s.onSource(ctx, source, r); err != nil {
		return nil, false, 0, err
	}
	recheck = time.Duration(r.number()) * time.Millisecond
	left = r.number() == 1
	lockedUntil := r.instant()
	back := backAgain{positions: r.list(), deliveries: r.list(), changes: r.list()}
	spans := r.list()
	if err := r.failure(); err != nil {
		return nil, false, 0, err
	}
	found, err = s.readLocked(ctx, source, back, spans)
	for i := range found {
		found[i].nonce, found[i].lockedUntil = nonce, lockedUntil
	}
	if len(found) == 0 && left {
		recheck = 0
	}
	return found, left, recheck, err
}

// backAgain are locked messages that were delivered before: their positions and failed deliveries. changes are of these and
// then of fresh ones, or none at all.
type backAgain struct{ positions, deliveries, changes *reply }

// readLocked reads the messages that a script has just locked: those delivered before one by one, then spans of fresh ones.
// They cannot go away meanwhile, but with the whole queue. When the read fails the locks end by themselves. The result is
// in order of position.
func (s *Store) readLocked(ctx context.Context, source semantics.Source, back backAgain, spans *reply) ([]entry, error) {
	if !back.positions.more() && !spans.more() {
		return nil, nil
	}
	log := s.keysOf(source).of(source.SubQueue).log
	var ones, ranges []*redis.Cmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for back.positions.more() {
			position := back.positions.text()
			ones = append(ones, p.Do(ctx, "XRANGE", log, position, position))
		}
		for spans.more() {
			first, last := spans.text(), spans.text()
			ranges = append(ranges, p.Do(ctx, "XRANGE", log, first, last))
		}
		back.positions.adopt(spans)
		return back.positions.failure()
	})
	if err != nil {
		return nil, storeError(err, true)
	}
	var found []entry
	for _, cmd := range ones {
		entries, err := readEntries(cmd)
		if err != nil {
			return nil, err
		}
		failed := back.deliveries.numberOr(0)
		for _, e := range entries { // one, or none when the queue is gone
			e.failed = failed
			found = append(found, e)
		}
	}
	for _, cmd := range ranges {
		entries, err := readEntries(cmd)
		if err != nil {
			return nil, err
		}
		found = append(found, entries...)
	}
	for i := range found {
		if back.changes.more() {
			found[i].changes = back.changes.textOr("")
		}
	}
	back.deliveries.adopt(back.changes)
	if len(ones) > 0 && len(ranges) > 0 {
		slices.SortFunc(found, func(a, b entry) int { return cmp.Compare(a.position, b.position) })
	}
	return found, back.deliveries.failure()
}

func readEntries(cmd *redis.Cmd) ([]entry, error) {
	items, err := cmd.Slice()
	if err != nil {
		return nil, storeError(err, true)
	}
	entries := make([]entry, 0, len(items))
	r := &reply{script: "XRANGE", items: items}
	for r.more() {
		pair := r.list()
		entries = append(entries, readEntry(pair))
		r.adopt(pair)
	}
	return entries, r.failure()
}

// ReceiveByNumber implements semantics.Receiver.
func (s *Store) ReceiveByNumber(ctx context.Context, source semantics.Source, state semantics.State, numbers []int64) ([]*semantics.Received, error) {
	nonce := newNonce()
	word := "active"
	if state == semantics.Deferred {
		word = "deferred"
	}
	args := appendNumbers([]any{s.now(), prefixOf(source.SubQueue), word, nonce, sessionToken(source)}, onceEach(numbers))
	r, err := s.runOn(ctx, source, "receive_by_number", s.keysOf(source).all(), args...)
	if err != nil {
		return nil, err
	}
	if err := s.onNumbers(ctx, source, word, r); err != nil {
		return nil, err
	}
	lockedUntil := r.instant()
	back := backAgain{positions: r.list(), deliveries: r.list(), changes: r.list()}
	if err := r.failure(); err != nil {
		return nil, err
	}
	found, err := s.readLocked(ctx, source, back, &reply{})
	if err != nil {
		return nil, err
	}
	messages := make([]*semantics.Received, len(found))
	for i, e := range found {
		e.nonce, e.lockedUntil = nonce, lockedUntil
		if messages[i], err = e.received(); err != nil {
			return nil, err
		}
		messages[i].DeliveryCount++ // this one (MSG-10)
		messages[i].State = state
	}
	return messages, nil
}

// Reactivate implements semantics.Receiver.
func (s *Store) Reactivate(ctx context.Context, source semantics.Source, numbers []int64) error {
	args := appendNumbers([]any{s.now(), prefixOf(source.SubQueue), sessionToken(source)}, onceEach(numbers))
	r, err := s.runOn(ctx, source, "reactivate", s.keysOf(source).all(), args...)
	if err != nil {
		return err
	}
	return s.onNumbers(ctx, source, "deferred", r)
}

// PassOn implements semantics.Receiver.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	if !source.SessionLock.IsZero() || source.Session != "" {
		return nil // there is nobody else whom it concerns
	}
	keys := s.keysOf(source)
	k := keys.of(source.SubQueue)
	_, err := s.run(ctx, "pass_on", []string{k.log, k.locks, k.waiting, k.delayed, k.deferred, keys.entity, keys.sessions.ready},
		prefixOf(source.SubQueue))
	return err
}
