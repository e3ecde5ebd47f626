package redisstore

import (
	"context"
	"math"
	"strconv"
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
	call := &receiveCall{source: source, limit: limit, register: register}
	if err := s.receives.do(ctx, source.Fold().String(), call); err != nil {
		return semantics.Batch{}, err
	}
	if call.err != nil {
		return semantics.Batch{}, call.err
	}
	messages := make([]*semantics.Received, len(call.entries))
	for i, e := range call.entries {
		m, err := e.received()
		if err != nil {
			return semantics.Batch{}, err
		}
		m.DeliveryCount++ // this one (MSG-10)
		messages[i] = m
	}
	return semantics.Batch{Messages: messages, RecheckAfter: call.recheck}, nil
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
	r, err := s.run(ctx, "receive", s.keys(source.Path).of(source.SubQueue), s.now(), prefixOf(source.SubQueue),
		min(limit, maxScriptMessages), maxAnswerBytes, nonce, registerBelow, s.sidecar)
	if err != nil {
		return nil, false, 0, err
	}
	if err := sourceError(source, r); err != nil {
		return nil, false, 0, err
	}
	recheck = time.Duration(r.number()) * time.Millisecond
	left = r.number() == 1
	lockedUntil := r.instant()
	redelivered, deliveries := r.list(), r.list()
	first, last := r.text(), r.text()
	if err := r.failure(); err != nil {
		return nil, false, 0, err
	}
	found, err = s.readLocked(ctx, source, redelivered, deliveries, first, last)
	for i := range found {
		found[i].nonce, found[i].lockedUntil = nonce, lockedUntil
	}
	if len(found) == 0 && left {
		recheck = 0
	}
	return found, left, recheck, err
}

// readLocked reads the entries that receive has just locked: those delivered before, one by one, then a range. They
// cannot go away meanwhile, but with the whole queue. When the read fails the locks end by themselves.
func (s *Store) readLocked(ctx context.Context, source semantics.Source, redelivered, deliveries *reply, first, last string) ([]entry, error) {
	if len(redelivered.items) == 0 && first == "0" {
		return nil, nil
	}
	log := s.keys(source.Path).of(source.SubQueue)[1]
	var cmds []*redis.Cmd
	_, err := s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for redelivered.more() {
			position := redelivered.text()
			cmds = append(cmds, p.Do(ctx, "XRANGE", log, position, position))
		}
		if first != "0" {
			cmds = append(cmds, p.Do(ctx, "XRANGE", log, first, last))
		}
		return redelivered.failure()
	})
	if err != nil {
		return nil, storeError(err, true)
	}
	var found []entry
	for _, cmd := range cmds {
		items, err := cmd.Slice()
		if err != nil {
			return nil, storeError(err, true)
		}
		failed := int64(0)
		if deliveries.more() {
			failed = deliveries.numberOr(0)
		}
		r := &reply{script: "receive", items: items}
		for r.more() {
			pair := r.list()
			e := readEntry(pair)
			r.adopt(pair)
			if e.dead == nil { // a dead letter has its count with it
				e.failed = failed
			}
			found = append(found, e)
		}
		r.adopt(deliveries)
		if err := r.failure(); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// sourceError turns the statuses that every script on a source may answer into errors.
func sourceError(source semantics.Source, r *reply) error {
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return semantics.NotFound(source.Path)
	case semantics.EntityDisabled:
		return disabled(source.Path, r.text())
	default:
		return nil
	}
}

// Peek implements semantics.Receiver.
func (s *Store) Peek(ctx context.Context, source semantics.Source, from int64, limit int) ([]*semantics.Received, error) {
	var found []*semantics.Received
	bytes := int64(0)
	for {
		some, left, err := s.peekOnce(ctx, source, from, limit-len(found), maxAnswerBytes-bytes)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
		for _, m := range some {
			bytes += m.Size
		}
		if !left || len(some) == 0 || bytes >= maxAnswerBytes {
			return found, nil
		}
		from = some[len(some)-1].SequenceNumber + 1
	}
}

func (s *Store) peekOnce(ctx context.Context, source semantics.Source, from int64, limit int, maxBytes int64) ([]*semantics.Received, bool, error) {
	r, err := s.run(ctx, "peek", s.keys(source.Path).of(source.SubQueue), s.now(), prefixOf(source.SubQueue),
		strconv.FormatInt(max(from, 1), 10), limit, maxBytes)
	if err != nil {
		return nil, false, err
	}
	if err := sourceError(source, r); err != nil {
		return nil, false, err
	}
	now := r.instant()
	left := r.number() == 1
	entries := readEntries(r)
	locked := r.list()
	found := make([]*semantics.Received, len(entries))
	for i, e := range entries {
		m, err := e.received()
		if err != nil {
			return nil, false, err
		}
		m.Locked = locked.number() == 1
		m.Expired = source.SubQueue == semantics.MainQueue && !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt)
		found[i] = m
	}
	r.adopt(locked)
	return found, left, r.failure()
}

// PassOn implements semantics.Receiver.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	keys := s.keys(source.Path).of(source.SubQueue)
	_, err := s.run(ctx, "pass_on", []string{keys[1], keys[3], keys[4]})
	return err
}
