package push

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/proxy/internal/traces"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
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
	traced *traces.Processing
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
		s.sourceStatus.Received()
		s.sub.Delivered(ctx, e)
		s.metrics.Received(ctx, e.Delivery.Source(), e.Delivery.Messages)
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
		s.logger.WarnContext(ctx, "the handler cannot receive at the moment; retrying", "error", e.Failure)
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
	p.traced = s.metrics.Traces.Process(s.calls, p.source, p.Received)
	v, err := s.call(p, func() { s.app.reached(isProbe) })
	took := time.Since(began)
	switch {
	case v.Outcome == unreachable:
		s.app.refused(isProbe, err) // before settling, so that the message is not received again at once
	case err != nil:
		panic(err)
	case v.Outcome == leftToApp:
		s.app.probeWithAllCredits()
	}
	if v.Verb != "" {
		v.Outcome = s.settle(p, v)
	}
	p.traced.End(string(v.Outcome), v.Fault != "" || v.Outcome == unreachable)
	s.metrics.Pushes.WithLabelValues(s.Source, string(v.Outcome)).Inc()
	if v.Outcome == unreachable {
		return
	}
	s.metrics.PushDuration.WithLabelValues(s.Source).Observe(took.Seconds())
	switch {
	case v.Outcome == settling.LockLost:
		s.logger.Warn(
			"the lock of a message was lost; it will be delivered again unless the app has settled it",
			"sequenceNumber", p.SequenceNumber, "messageId", p.MessageID,
		)
	case v.Fault != "" && v.Outcome != settling.Unsettled:
		s.failures.Note(p.Received, v.Fault)
	}
}

// settle settles a message and returns the outcome.
func (s *subscriber) settle(p *push, v settling.Settlement) settling.Outcome {
	return s.settler.Settle(p.traced.In(s.calls), s.sub, p.source, []*semantics.Received{p.Received}, v)[0]
}
