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

// How long settling retries while the store is down: while the sidecar runs, and while it stops.
const (
	settleTimeout = 30 * time.Second
	stopTimeout   = 5 * time.Second
)

// subscriber pushes the messages of one subscription.
type subscriber struct {
	*handler

	sub    *stream.Subscription
	calls  context.Context //nolint:containedctx // of the calls
	cancel context.CancelCauseFunc
	work   sync.WaitGroup // running pushes

	mu       sync.Mutex
	inFlight map[semantics.LockToken]*push
}

// push is one message that is being pushed.
type push struct {
	*semantics.Received

	source semantics.Source
	ctx    context.Context //nolint:containedctx // of the call
	cancel context.CancelCauseFunc
}

// run handles events until the subscription or ctx ends, waits for all pushes, and returns the reason.
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
		semantics.StoreUnavailable: // messages in flight may still be settled (FWD-2)
	case semantics.Cancelled:
		s.cancel(errStopped)
	default:
		s.cancel(errLockLost)
	}
	stop := context.AfterFunc(ctx, func() { s.cancel(errStopped) }) // after the drain timeout
	defer stop()
	s.work.Wait()
	if ctx.Err() != nil {
		s.sub.Close(ctx)
	} else {
		s.sub.Detach(ctx) // the app may still settle later
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
			ctx, "the handler cannot receive at the moment; retrying", "error", e.Failure,
		)
	}
}

// startPush pushes a message in a goroutine.
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

// cancelLost cancels the pushes whose locks are lost.
func (s *subscriber) cancelLost(isLost func(*push) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.inFlight {
		if isLost(p) {
			p.cancel(errLockLost)
		}
	}
}

// push sends a message to the app and settles it.
func (s *subscriber) push(p *push) {
	isProbe, ok := s.app.acquire(p.ctx)
	defer s.app.release(isProbe)
	if !ok || s.broker.Draining() { // no new calls
		s.settle(p, s.release(obs.Release))
		return
	}
	began := time.Now()
	v, err := s.call(p.ctx, p.Received, p.source, func() { s.app.reached(isProbe) })
	took := time.Since(began)
	switch {
	case v.outcome == unreachable:
		s.app.refused(isProbe, err) // before settling, so that the message is not received again at once
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
			"the lock of a message was lost; it will be delivered again unless the app has settled it",
			"sequenceNumber", p.SequenceNumber, "messageId", p.MessageID,
		)
	case v.isFault && v.outcome != unsettled:
		s.failures.Note(p.Received, v.detail)
	}
}

// settle settles a message and returns the outcome. It retries while the store is down.
func (s *subscriber) settle(p *push, v settlement) outcome {
	timeout := settleTimeout
	if s.calls.Err() != nil {
		timeout = stopTimeout
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), timeout)
	defer cancel()
	wasUnknown := false
	for pause := minBackoff; ; pause = min(2*pause, maxBackoff) {
		codes, err := s.sub.Settle(ctx, []semantics.LockToken{p.LockToken}, v.settle)
		switch e := semantics.AsError(err); {
		case err == nil && codes[0] == "":
			s.metrics.Settled(p.source, v.verb, codes)
			return v.outcome
		case err == nil && wasUnknown: // a previous attempt with unknown outcome has settled it (ERR-6)
			s.metrics.Settled(p.source, v.verb, []semantics.Code{""})
			return v.outcome
		case err == nil && v.verb == obs.Release: // the lock is lost, so it is released already
			return v.outcome
		case err == nil:
			s.metrics.Settled(p.source, v.verb, codes)
			return lockLost
		case !e.Code.Retryable() || ctx.Err() != nil || s.calls.Err() != nil:
			s.logger.Warn(
				"cannot settle a message; it will be delivered again when its lock expires", "verb", v.verb, "sequenceNumber",
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
