package redisstore

import (
	"context"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// nextCall is one CompleteAndReceive on its way to the script.
type nextCall struct {
	complete   settleCall
	receive    receiveCall
	isReceived bool // else the caller still has to receive
}

// weight is that of the half which weighs more, because each has a bound of its own in a script.
func (c *nextCall) weight() int { return max(len(c.complete.tokens), c.receive.weight()) }

// CompleteAndReceive implements semantics.Receiver.
func (s *Store) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register,
) (next semantics.NextBatch, err error) {
	if !s.completesAndReceives(source) {
		return semantics.CompleteThenReceive(ctx, s, source, tokens, limit, register)
	}
	call := &nextCall{
		complete: settleCall{verb: &completeVerb, source: source, tokens: tokens},
		receive:  receiveCall{source: source, answer: answer{limit: limit, register: register}},
	}
	if err := s.nexts.do(ctx, source.Fold().String(), call); err != nil {
		return next, err
	}
	switch next.Codes, next.Failure = call.complete.codes, call.receive.err; {
	case call.complete.err != nil:
		return semantics.NextBatch{}, call.complete.err
	case !call.isReceived:
		next.Batch, next.Failure = s.Receive(ctx, source, limit, register)
	case next.Failure == nil:
		next.Batch, next.Failure = s.batchFor(ctx, source, call.receive.entries, call.receive.recheck)
	}
	return next, nil
}

// completesAndReceives reports whether the script may do both: on the main side of a queue without sessions that did
// not refuse the last calls, for a caller that waits for no durability.
func (s *Store) completesAndReceives(source semantics.Source) bool {
	return source.SubQueue == semantics.MainQueue && source.SessionLock.IsZero() && source.Session == "" &&
		!s.mayFence() && isOver(s.apart, semantics.Fold(source.Path))
}

// runNexts runs the script for the calls. If it does nothing, the calls are completed by the other script.
func (s *Store) runNexts(ctx context.Context, calls []*nextCall) {
	settles, receives := make([]*settleCall, len(calls)), make([]*receiveCall, len(calls))
	for i, c := range calls {
		settles[i], receives[i] = &c.complete, &c.receive
	}
	source, nonce := calls[0].receive.source, newNonce()
	r, err := s.run(ctx, "complete_and_receive", s.keys(source.Path), nextArgs(
		s.now(), completionsOf(settles), boundsOf(receives), nonce, s.sidecar,
	)...)
	switch {
	case err != nil:
		for _, c := range settles {
			c.codes, c.err = nil, err
		}
	case r.status == "SEPARATE":
		s.apart.put(semantics.Fold(source.Path), time.Now().Add(separateFor))
		s.runCompletes(ctx, settles)
	case r.status == "OK":
		for _, c := range calls {
			c.isReceived = true
		}
		s.apply(ctx, keptAt(source), r)
		s.runReceives(ctx, served(receives)(s.handOut(ctx, source, nonce, receives, r)))
	}
}

// nextArgs returns the arguments of the script.
func nextArgs(now string, all completions, b receiveBounds, nonce uint64, sidecar string) []any {
	args := append(
		make([]any, 0, 16), now, len(all), all.sizes(), b.limit, b.safe, nonce, b.registerBelow, sidecar,
	)
	return appendRuns(args, len(all), func(i int) lock { return all[i].lock })
}
