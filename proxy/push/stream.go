package push

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Bounds of settling: how long a store that is down is waited for, and how long when the sidecar stops.
const (
	settleTimeout = 30 * time.Second
	stopTimeout   = 5 * time.Second
)

// feed pushes what one subscription delivers.
type subscriber struct {
	*handler

	sub    *stream.Subscription
	calls  context.Context //nolint:containedctx // of the calls
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // the pushes

	mu       sync.Mutex
	inFlight map[semantics.LockToken]*push
}

// push is one message on its way to the app.
type push struct {
	*semantics.Received

	source semantics.Source
	ctx    context.Context //nolint:containedctx // of the call
	cancel context.CancelCauseFunc
}

// run takes events until the subscription ends, or ctx does, and gives the reason. It comes back when all pushes have
// ended.
func (s *subscriber) run(ctx context.Context) error {
	var err error
	for err == nil {
		var e stream.Event
		if e, err = s.sub.Next(ctx); err == nil {
			s.handleEvent(ctx, e)
		}
	}
	s.app.stop()
	switch semantics.CodeOf(err) {
	case semantics.EntityDisabled,
		semantics.InvalidOperation,
		semantics.StoreUnavailable: // what is in hand may still be settled (FWD-2)
	case semantics.Cancelled:
		s.cancel(errStopped)
	default:
		s.cancel(errLockLost)
	}
	stop := context.AfterFunc(
		ctx,
		func() { s.cancel(errStopped) },
	) // a drain ends the subscription first, and ctx when its time is over
	defer stop()
	s.work.Wait()
	if ctx.Err() != nil {
		s.sub.Close(ctx)
	} else {
		s.sub.Detach(ctx) // what the app is to settle later it may
	}
	s.cancel(nil)
	return err
}

func (s *subscriber) handleEvent(ctx context.Context, e stream.Event) {
	switch {
	case e.Delivery != nil:
		s.sourceStatus.recovered()
		s.sub.Delivered(ctx, e)
		s.metrics.Received(e.Delivery.Source(), len(e.Delivery.Messages))
		for _, m := range e.Delivery.Messages {
			s.startPush(m, e.Delivery.Source())
		}
	case e.SessionClosed != nil:
		s.cancelLost(func(p *push) bool { return p.source.SessionLock == e.SessionClosed.Lock })
	case e.LocksLost != nil:
		for _, token := range e.LocksLost {
			s.cancelLost(func(p *push) bool { return p.LockToken == token })
		}
	case e.Failure != nil:
		s.logger.WarnContext(
			ctx, "the handler gets no messages at the moment; it goes on by itself", "error", e.Failure,
		)
	}
}

// begin pushes a message.
func (s *subscriber) startPush(m *semantics.Received, source semantics.Source) {
	p := &push{Received: m, source: source}
	p.ctx, p.cancel = context.WithCancelCause(s.calls)
	s.mu.Lock()
	s.inFlight[m.LockToken] = p
	s.mu.Unlock()
	s.work.Go(func() {
		defer func() {
			if recovered := recover(); recovered != nil {
				s.metrics.Panics.Inc()
				s.logger.Error("panic in a push", "panic", fmt.Sprint(recovered), "stack", string(debug.Stack()))
			}
			p.cancel(nil)
			s.mu.Lock()
			delete(s.inFlight, m.LockToken)
			s.mu.Unlock()
		}()
		s.push(p)
	})
}

// lose ends the calls of messages whose locks are lost.
func (s *subscriber) cancelLost(isLost func(*push) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.inFlight {
		if isLost(p) {
			p.cancel(errLockLost)
		}
	}
}

// push calls the app with a message and settles it.
func (s *subscriber) push(p *push) {
	isProbe, mayGo := s.app.acquire(p.ctx)
	defer s.app.release(isProbe)
	if !mayGo || s.broker.Draining() { // no new calls
		s.settle(p, s.release(obs.Release))
		return
	}
	began := time.Now()
	v, err := s.call(p.ctx, p.Received, p.source, func() { s.app.reached(isProbe) })
	took := time.Since(began)
	switch {
	case v.outcome == unreachable:
		s.app.refused(isProbe, err) // first, so that the message does not come back at once
	case err != nil:
		panic(err)
	case v.outcome == leftToApp:
		s.app.probeWithAllCredits()
	}
	if v.settle != nil {
		v.outcome = s.settle(p, v)
	}
	s.metrics.Pushes.WithLabelValues(s.Source, string(v.outcome)).Inc()
	if v.outcome == unreachable {
		return
	}
	s.metrics.PushDuration.WithLabelValues(s.Source).Observe(took.Seconds())
	switch {
	case v.outcome == lockLost:
		s.logger.Warn(
			"a message's lock does not hold any more; it comes again, unless the app has settled it by itself",
			"sequenceNumber", p.SequenceNumber, "messageId", p.MessageID,
		)
	case v.isFault && v.outcome != unsettled:
		s.failures.Note(p.Received, v.detail)
	}
}

// settle carries out a verdict, and gives what became of it. A store that is down is waited for.
func (s *subscriber) settle(p *push, v settlement) outcome {
	patience := settleTimeout
	if s.calls.Err() != nil {
		patience = stopTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), patience)
	defer cancel()
	wasUnknown := false
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		codes, err := s.sub.Settle(ctx, []semantics.LockToken{p.LockToken}, v.settle)
		switch e := semantics.AsError(err); {
		case err == nil && codes[0] == "":
			s.metrics.Settled(p.source, v.verb, codes)
			return v.outcome
		case err == nil && wasUnknown: // the settlement before has done it (ERR-6)
			s.metrics.Settled(p.source, v.verb, []semantics.Code{""})
			return v.outcome
		case err == nil && v.verb == obs.Release: // there is nothing to give back
			return v.outcome
		case err == nil:
			s.metrics.Settled(p.source, v.verb, codes)
			return lockLost
		case !e.Code.Retryable() || ctx.Err() != nil || s.calls.Err() != nil:
			s.logger.Warn(
				"a message could not be settled; it comes again when its lock ends", "verb", v.verb, "sequenceNumber",
				p.SequenceNumber, "error", err,
			)
			return unsettled
		default:
			wasUnknown = wasUnknown || e.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown
			pause = max(pause, e.RetryAfter)
		}
		select {
		case <-time.After(pause):
		case <-s.calls.Done():
		case <-ctx.Done():
		}
	}
}
