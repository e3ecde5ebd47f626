package redisstore

import (
	"context"
	"math"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

const (
	maxScriptMessages = 250     // handed out by one script, so that it stays short
	maxAnswerBytes    = 2 << 20 // handed out to one caller, so that a client with default limits can read it
	maxJoinedReceive  = 1000    // messages asked for in one shared call
)

// receiveCall is one Receive on its way to the script.
type receiveCall struct {
	source   semantics.Source
	limit    int
	register semantics.Register
	batch    semantics.Batch
	bytes    int64
	err      error
}

func (c *receiveCall) weight() int { return c.limit }

func (c *receiveCall) satisfied() bool {
	return c.err != nil || len(c.batch.Messages) >= c.limit || c.bytes >= maxAnswerBytes
}

// Receive implements semantics.Receiver.
func (s *Store) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	call := &receiveCall{source: source, limit: limit, register: register}
	if err := s.receives.do(ctx, source.Fold().String(), call); err != nil {
		return semantics.Batch{}, err
	}
	return call.batch, call.err
}

// runReceives fills the calls in order of arrival, with as many scripts as that takes.
func (s *Store) runReceives(ctx context.Context, _ string, calls []*receiveCall) {
	for len(calls) > 0 {
		found, left, recheck, err := s.receiveOnce(ctx, calls)
		for _, c := range calls {
			if err != nil {
				// What this caller was given already is its own; the failure belongs to the next one's turn.
				if len(c.batch.Messages) == 0 {
					c.err = err
				}
				continue
			}
			c.batch.RecheckAfter = recheck
			for len(found) > 0 && !c.satisfied() {
				c.batch.Messages = append(c.batch.Messages, found[0])
				c.bytes += found[0].Size
				found = found[1:]
			}
		}
		if err != nil {
			return
		}
		got := len(calls)
		for len(calls) > 0 && calls[0].satisfied() {
			calls = calls[1:]
		}
		if !left || (got == len(calls) && recheck == 0) {
			return
		}
	}
}

func (s *Store) receiveOnce(ctx context.Context, calls []*receiveCall) (found []*semantics.Received, left bool, recheck time.Duration, err error) {
	source := calls[0].source
	limit, registerBelow := 0, 0
	for _, c := range calls {
		switch c.register {
		case semantics.RegisterAlways:
			registerBelow = math.MaxInt32
		case semantics.RegisterIfEmpty:
			if len(c.batch.Messages) == 0 {
				registerBelow = max(registerBelow, limit+1) // it gets nothing when those before it take all
			}
		case semantics.RegisterNever:
		}
		limit += c.limit - len(c.batch.Messages)
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
	entries, deliveries := r.list(), r.list()
	for entries.more() {
		e := readEntry(entries.list(), source.SubQueue)
		failed := e.failed
		if deliveries.more() { // only for those delivered before, which come first
			failed = deliveries.numberOr(0)
		}
		m, err := e.received()
		if err != nil {
			return nil, false, 0, err
		}
		m.DeliveryCount = int(failed) + 1
		m.LockToken = lock{position: e.position, size: e.size, nonce: nonce}.token()
		m.LockedUntil = lockedUntil
		found = append(found, m)
	}
	r.adopt(entries)
	r.adopt(deliveries)
	if len(found) == 0 && left {
		recheck = 0
	}
	return found, left, recheck, r.failure()
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
	r, err := s.run(ctx, "peek", s.keys(source.Path).of(source.SubQueue), s.now(), prefixOf(source.SubQueue),
		strconv.FormatInt(max(from, 1), 10), limit, maxAnswerBytes)
	if err != nil {
		return nil, err
	}
	if err := sourceError(source, r); err != nil {
		return nil, err
	}
	now := r.instant()
	entries, deliveries, locked := r.list(), r.list(), r.list()
	var found []*semantics.Received
	for entries.more() {
		e := readEntry(entries.list(), source.SubQueue)
		failed := e.failed
		if deliveries.more() {
			failed = deliveries.numberOr(0)
		}
		m, err := e.received()
		if err != nil {
			return nil, err
		}
		m.DeliveryCount = int(failed)
		m.Locked = locked.number() == 1
		m.Expired = source.SubQueue == semantics.MainQueue && !m.ExpiresAt.IsZero() && !now.Before(m.ExpiresAt)
		found = append(found, m)
	}
	r.adopt(entries)
	r.adopt(deliveries)
	r.adopt(locked)
	return found, r.failure()
}

// PassOn implements semantics.Receiver.
func (s *Store) PassOn(ctx context.Context, source semantics.Source) error {
	keys := s.keys(source.Path).of(source.SubQueue)
	_, err := s.run(ctx, "pass_on", []string{keys[1], keys[3], keys[4]})
	return err
}
