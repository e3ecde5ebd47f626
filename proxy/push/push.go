// Package push delivers messages to the app by HTTP requests. It receives the messages of a source, sends each as a
// request, and settles it according to the response (spec: api.md, section 5). Locks are renewed while a call runs. The
// rules are those of stream.Subscription.
package push

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Pusher pushes the messages of its sources. Use New, then Run.
type Pusher struct{ handlers []*handler }

// handler is a running Handler.
type handler struct {
	Handler

	source       semantics.Source
	target       target
	client       *http.Client
	broker       *broker.Broker
	metrics      *obs.Metrics
	logger       *slog.Logger
	failures     obs.FailureLog
	refusals     obs.Refusals
	sourceStatus *settling.SourceStatus
	settler      *settling.Settler
	app          *app
	authorizer   access.Authorizer
}

// New returns a Pusher. It opens nothing and does not block. It fails if a handler is invalid, or two have the same
// source.
func New(
	handlers []Handler, broker *broker.Broker, authorizer access.Authorizer, metrics *obs.Metrics, logger *slog.Logger,
) (*Pusher, error) {
	return newPusher(handlers, broker, authorizer, metrics, logger, (&net.Dialer{Timeout: dialTimeout}).DialContext)
}

func newPusher(
	handlers []Handler, broker *broker.Broker, authorizer access.Authorizer, metrics *obs.Metrics, logger *slog.Logger,
	dial dialer,
) (*Pusher, error) {
	p := &Pusher{}
	taken := map[semantics.Source]bool{}
	for i, given := range handlers {
		checked, err := given.WithDefaults()
		if err != nil {
			return nil, fmt.Errorf("handlers[%d]: %w", i, err)
		}
		h := &handler{Handler: checked, broker: broker, metrics: metrics, authorizer: authorizer}
		h.logger = logger.With("handler", h.Source, "url", h.Shown())
		h.source, _ = sourceOf(h.Source) // checked by WithDefaults
		h.target, _ = targetOf(h.URL)
		h.failures, h.app = obs.NewFailureLog(h.logger), newApp(h.appChanged)
		h.sourceStatus, h.settler = settling.NewSourceStatus(h.logger, nil), settling.NewSettler(metrics, h.logger)
		h.client = newClient(h.target, dial, max(h.MaxConcurrent, h.MaxConcurrentSessions))
		if taken[h.source.Fold()] {
			return nil, fmt.Errorf("handlers[%d]: source %q already has a handler", i, h.Source)
		}
		taken[h.source.Fold()] = true
		p.handlers = append(p.handlers, h)
	}
	return p, nil
}

// Run pushes until ctx ends, or the Broker drains and no message is in flight. Then it cancels running calls, releases
// their messages uncounted, and waits for them. It must be called once.
func (p *Pusher) Run(ctx context.Context) {
	var work sync.WaitGroup
	for _, h := range p.handlers {
		work.Go(func() { h.run(ctx) })
	}
	work.Wait()
}

// run pushes until ctx ends. It retries while the source does not exist, cannot be received from, or the store is down.
func (h *handler) run(ctx context.Context) {
	defer h.client.CloseIdleConnections()
	h.metrics.HandlerReachable.WithLabelValues(h.Source).Set(1)
	h.logger.InfoContext(
		ctx, "handler started", "maxConcurrent", h.MaxConcurrent, "maxConcurrentSessions", h.MaxConcurrentSessions,
		"timeout", h.Timeout,
	)
	for ctx.Err() == nil && !h.broker.Draining() {
		err := h.runSubscription(ctx)
		h.refusals.Note(ctx, h.logger, obs.Push, pushMethod, err)
		if ctx.Err() != nil || h.broker.Draining() {
			return
		}
		select {
		case <-time.After(h.sourceStatus.Failed(err)):
		case <-ctx.Done():
		}
	}
}

// pushMethod is what the audit calls an attempt to receive for the app.
const pushMethod = "Handler.Receive"

// runSubscription pushes the messages of one subscription, and returns the reason for its end.
func (h *handler) runSubscription(ctx context.Context) error {
	if err := h.permitted(); err != nil {
		return err
	}
	options := stream.DefaultOptions()
	options.Credits, options.MaxAutoRenew, options.MaxSessions = 0, h.Timeout, h.MaxConcurrentSessions
	sub, err := h.broker.Subscribe(ctx, h.source, options)
	if err != nil {
		return err
	}
	credits := h.MaxConcurrent
	if sub.HasSessions() {
		credits = h.MaxConcurrentSessions
	}
	s := &subscriber{handler: h, sub: sub, inFlight: map[semantics.LockToken]*push{}}
	s.calls, s.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	h.app.start(credits, func(n int) { _ = sub.SetCredits(n) }) // never out of range
	defer h.sourceStatus.Subscribed()()
	h.refusals.Note(ctx, h.logger, obs.Push, pushMethod, nil)
	permitted, stop := access.While(ctx, h.permitted)
	defer stop()
	if err = s.run(permitted); permitted.Err() != nil && ctx.Err() == nil {
		err = context.Cause(permitted)
	}
	return err
}

// permitted returns an error if the push handlers of this sidecar may not receive from the source (AUTH-4).
func (h *handler) permitted() error {
	return access.PermitProof(
		h.authorizer, access.Proof{Way: access.ByHandler}, access.Right{Claims: access.Listen, Path: h.source.Path},
	)
}

// appChanged updates metrics and logs that the app went down or is up again.
func (h *handler) appChanged(isUp bool, err error, lasted time.Duration) {
	gauge := h.metrics.HandlerReachable.WithLabelValues(h.Source)
	if isUp {
		gauge.Set(1)
		h.logger.Info("the app accepts connections again", "after", lasted.Round(time.Millisecond))
		return
	}
	gauge.Set(0)
	h.client.CloseIdleConnections()
	h.logger.Warn(
		"the app does not accept connections; its messages stay in the queue, unlocked and uncounted", "error",
		plain(err),
	)
}
