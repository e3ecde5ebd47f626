// Package push calls the app with messages: it takes those of a source as they come, makes each an HTTP request, and
// settles it by the answer (spec: api.md, section 5). Locks are renewed while a call runs. There are no rules here,
// they are those of a stream.Subscription.
package push

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Pusher pushes the messages of some sources. Make it with New and let Run live its life.
type Pusher struct{ handlers []*handler }

// handler is one Handler at work.
type handler struct {
	Handler

	source       semantics.Source
	target       target
	client       *http.Client
	broker       *broker.Broker
	metrics      *obs.Metrics
	logger       *slog.Logger
	failures     obs.FailureLog
	sourceStatus sourceStatus
	app          *app
}

// New makes a Pusher. It opens nothing and does not block. It fails when a handler makes no sense, or two have the same
// source.
func New(handlers []Handler, broker *broker.Broker, metrics *obs.Metrics, logger *slog.Logger) (*Pusher, error) {
	return newPusher(handlers, broker, metrics, logger, (&net.Dialer{Timeout: dialTimeout}).DialContext)
}

func newPusher(
	handlers []Handler, broker *broker.Broker, metrics *obs.Metrics, logger *slog.Logger, dial dialer,
) (*Pusher, error) {
	p := &Pusher{}
	taken := map[semantics.Source]bool{}
	for i, given := range handlers {
		checked, err := given.WithDefaults()
		if err != nil {
			return nil, fmt.Errorf("handlers[%d]: %w", i, err)
		}
		h := &handler{Handler: checked, broker: broker, metrics: metrics}
		h.logger = logger.With("handler", h.Source, "url", h.Shown())
		h.source, _ = sourceOf(h.Source) // they were checked
		h.target, _ = targetOf(h.URL)
		h.failures, h.app = obs.NewFailureLog(h.logger), newApp(h.appChanged)
		h.sourceStatus.logger = h.logger
		h.client = newClient(h.target, dial, max(h.MaxConcurrent, h.MaxConcurrentSessions))
		if taken[h.source.Fold()] {
			return nil, fmt.Errorf("handlers[%d]: source %q has a handler already", i, h.Source)
		}
		taken[h.source.Fold()] = true
		p.handlers = append(p.handlers, h)
	}
	return p, nil
}

// Run pushes until ctx ends, or the Broker drains and nothing is in hand. Then it waits for calls that run: they are
// told to end, and their messages are given back uncounted. It must be called once.
func (p *Pusher) Run(ctx context.Context) {
	var work sync.WaitGroup
	for _, h := range p.handlers {
		work.Go(func() { h.run(ctx) })
	}
	work.Wait()
}

// run pushes messages for as long as ctx lives, and waits for what does not last: a source that does not exist yet, or
// must not be received from, or a store that is down.
func (h *handler) run(ctx context.Context) {
	defer h.client.CloseIdleConnections()
	h.metrics.HandlerReachable.WithLabelValues(h.Source).Set(1)
	h.logger.InfoContext(
		ctx, "the handler begins", "maxConcurrent", h.MaxConcurrent, "maxConcurrentSessions", h.MaxConcurrentSessions,
		"timeout", h.Timeout,
	)
	for ctx.Err() == nil && !h.broker.Draining() {
		err := h.runSubscription(ctx)
		if ctx.Err() != nil || h.broker.Draining() {
			return
		}
		select {
		case <-time.After(h.sourceStatus.failed(err)):
		case <-ctx.Done():
		}
	}
}

// once pushes what one subscription delivers, and gives the reason of its end.
func (h *handler) runSubscription(ctx context.Context) error {
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
	h.app.start(credits, func(n int) { _ = sub.SetCredits(n) }) // n is within the bounds
	lives := time.AfterFunc(
		healthyAfter, h.sourceStatus.recovered,
	) // a source that must not be received from says so at once
	defer lives.Stop()
	return s.run(ctx)
}

// sourceTrial is after how long a subscription that has not failed works.
const healthyAfter = 5 * time.Second

// trouble is what is known of why a source cannot be received from.
type sourceStatus struct {
	logger *slog.Logger

	mu       sync.Mutex
	reported semantics.Code // of the last line about it; "": there is none
	pause    backoff
}

// met notes that a subscription failed, and gives after which pause to try again. A reason is told once.
func (t *sourceStatus) failed(err error) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if code := semantics.CodeOf(err); code != t.reported {
		t.logger.Warn("the handler's source cannot be received from; it is tried again until it can", "error", err)
		t.reported = code
	}
	return t.pause.next()
}

// over notes that the source can be received from.
func (t *sourceStatus) recovered() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reported != "" {
		t.logger.Info("the handler's source can be received from again")
	}
	t.reported, t.pause = "", backoff{}
}

// tellOfApp notes that the app went away, or is back.
func (h *handler) appChanged(isUp bool, err error, lasted time.Duration) {
	gauge := h.metrics.HandlerReachable.WithLabelValues(h.Source)
	if isUp {
		gauge.Set(1)
		h.logger.Info("the app takes connections again", "after", lasted.Round(time.Millisecond))
		return
	}
	gauge.Set(0)
	h.client.CloseIdleConnections()
	h.logger.Warn(
		"the app takes no connections; its messages wait in the queue, not under lock and not counted", "error",
		plain(err),
	)
}
