package dapr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/dapr/internal/inflight"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// pullStream is one message stream to the Dapr runtime. It stays open until the runtime ends it, whatever fails here,
// because the runtime does not reopen a stream that has ended.
type pullStream struct {
	component *component
	broker    *broker.Broker
	metrics   *obs.Metrics

	key      instanceKey
	topic    string
	settings settings
	stream   proto.PubSub_PullMessagesServer
	logger   *slog.Logger
	failures obs.FailureLog
	refusals obs.Refusals
	status   *settling.SourceStatus
	settler  *settling.Settler
	inFlight *inflight.Queue

	source          semantics.Source // of the subscription
	optionsCompared bool             // the options of the entity were compared with the metadata
}

// PullMessages delivers the messages of a topic to the Dapr runtime and takes its acknowledgments.
func (c *component) PullMessages(stream proto.PubSub_PullMessagesServer) error {
	first, err := stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	if first.GetTopic() == nil {
		return semantics.Errorf(semantics.InvalidArgument, "topic is missing; set it in the first request of the stream").
			With(semantics.DetailField, "topic")
	}
	ctx, cancel := context.WithCancelCause(stream.Context())
	defer cancel(nil)
	p, err := c.open(ctx, stream, first.GetTopic())
	if err != nil {
		return err
	}
	defer c.close(p)
	return p.run(ctx, cancel)
}

// open starts a stream that lives until ctx ends. It ignores invalid metadata, because an error would leave the app
// without messages for good.
func (c *component) open(
	ctx context.Context, stream proto.PubSub_PullMessagesServer, topic *proto.Topic,
) (*pullStream, error) {
	p := &pullStream{
		component: c, broker: c.broker, metrics: c.metrics, key: keyOf(ctx), topic: topic.GetName(), stream: stream,
	}
	p.logger = c.logger.With("component", semantics.Shorten(p.key.name), "topic", semantics.Shorten(p.topic))
	p.failures = obs.NewFailureLog(p.logger)
	p.status = settling.NewSourceStatus(p.logger, c.metrics.DaprStreamsStalled)
	p.settler = settling.NewSettler(c.metrics, p.logger)
	p.inFlight = inflight.New(ctx, p.settleFor)
	inherited, err := c.registry.join(p.key, p)
	if err != nil {
		return nil, err
	}
	s, unknown, wrong := inherited.apply(topic.GetMetadata(), atSubscription)
	p.settings = s
	for _, name := range unknown {
		p.logger.WarnContext(ctx, "unknown metadata of a subscription ignored", "name", semantics.Shorten(name))
	}
	for _, bad := range wrong {
		c.metrics.DaprBadMetadata.Inc()
		p.logger.ErrorContext(ctx, "invalid metadata of a subscription ignored", "name", bad.name, "error", bad.text)
	}
	c.metrics.DaprStreams.Inc()
	p.logger.InfoContext(ctx, "Dapr subscription opened", "consumer", s.consumer, "sessions", s.requireSessions)
	return p, nil
}

func (c *component) close(p *pullStream) {
	c.registry.leave(p.key, p)
	c.metrics.DaprStreams.Dec()
	p.logger.Info("Dapr subscription closed")
}

// errStopping ends streams when the sidecar stops.
var errStopping = semantics.Errorf(semantics.StoreUnavailable, "this sidecar is stopping").
	With(semantics.DetailCause, semantics.CauseDraining)

// run delivers messages and takes acknowledgments until the runtime ends the stream or Sidebus stops. Then it cancels
// ctx and settles what is unacknowledged.
func (p *pullStream) run(ctx context.Context, cancel context.CancelCauseFunc) error {
	acks := make(chan error, 1)
	go func() { // it ends with the call
		err := p.readAcks(ctx)
		acks <- err
		cancel(err)
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		p.deliverLoop(ctx)
	}()
	var err error
	select {
	case err = <-acks:
	case <-p.component.stopping:
		err = errStopping
		cancel(err)
	}
	<-sent
	p.closeQueue()
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// readAcks handles acknowledgments until the stream ends, and returns the reason.
func (p *pullStream) readAcks(ctx context.Context) error {
	for {
		request, err := p.stream.Recv()
		if err != nil {
			return err
		}
		if id := request.GetAckMessageId(); id != "" {
			p.handleAck(ctx, id, request.GetAckError())
		}
	}
}

// deliverLoop delivers messages until ctx ends. It subscribes again after each failure.
func (p *pullStream) deliverLoop(ctx context.Context) {
	defer p.status.Ended()
	for ctx.Err() == nil {
		err := p.recoverPanic(ctx, p.deliverOnce)
		if ctx.Err() != nil {
			return
		}
		if p.broker.Draining() { // no more messages, but acknowledgments may come
			<-ctx.Done()
			return
		}
		select {
		case <-time.After(p.status.Failed(err)):
		case <-ctx.Done():
		}
	}
}

// recoverPanic calls do and returns a panic as an error, so that it does not end the stream.
func (p *pullStream) recoverPanic(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			p.metrics.Panics.Inc()
			p.logger.ErrorContext(
				ctx, "panic in a Dapr subscription, which continues", "panic", fmt.Sprint(recovered), "stack",
				string(debug.Stack()),
			)
			err = semantics.Errorf(semantics.Internal, "a bug in Sidebus")
		}
	}()
	return do(ctx)
}

// deliverOnce delivers the messages of one subscription and returns the reason for its end. It authenticates the
// runtime each time, because the stream may outlive the policy that knows it.
func (p *pullStream) deliverOnce(ctx context.Context) error {
	ctx, err := p.component.authenticate(ctx)
	if err == nil {
		err = p.deliverUntilEnd(ctx)
	}
	p.refusals.Note(ctx, p.logger, obs.Dapr, pullMethod, err)
	return err
}

var pullMethod = obs.Method(proto.PubSub_PullMessages_FullMethodName)

// deliverUntilEnd delivers the messages of one subscription until it ends, or the caller in ctx loses its right.
func (p *pullStream) deliverUntilEnd(ctx context.Context) error {
	sub, err := p.subscribe(ctx)
	if err != nil {
		return err
	}
	defer p.leave(ctx, sub)
	defer p.status.Subscribed()()
	p.refusals.Note(ctx, p.logger, obs.Dapr, pullMethod, nil)
	permitted, stop := access.While(ctx, func() error { return p.permitted(ctx) })
	defer stop()
	for {
		e, err := sub.Next(permitted)
		if err != nil {
			if ctx.Err() == nil && permitted.Err() != nil {
				err = context.Cause(permitted)
			}
			return err
		}
		p.handleEvent(ctx, sub, e)
	}
}

// subscribe subscribes to the entity of the topic, and creates it if it is missing.
func (p *pullStream) subscribe(ctx context.Context) (*stream.Subscription, error) {
	defer finishOpening(p.stream.Context())
	s := p.settings
	topic, err := withoutNumber(p.topic)
	if err != nil {
		return nil, err
	}
	source, err := sourceOf(topic, s)
	if err != nil {
		return nil, err
	}
	p.source = source
	if err := p.permitted(ctx); err != nil {
		return nil, err
	}
	if s.manages && source.SubQueue == semantics.MainQueue && mayCreate(ctx, source.Path) {
		if err := p.ensure(ctx, s, source.Path); err != nil {
			return nil, err
		}
	}
	options := stream.DefaultOptions()
	options.Credits, options.MaxSessions, options.SessionIdle = 0, s.maxSessions, s.sessionIdle
	options.MaxAutoRenew = 0
	if s.renews {
		options.MaxAutoRenew = stream.MaxAutoRenew // while the stream is open, or until handlerTimeout
	}
	sub, err := p.broker.Subscribe(ctx, source, options)
	if err != nil {
		return nil, err
	}
	if s.requireSessions && source.SubQueue == semantics.MainQueue && !sub.HasSessions() {
		sub.Close(ctx)
		return nil, semantics.Errorf(
			semantics.SessionNotSupported,
			"%q does not require sessions, but the metadata requireSessions is set; delete the entity to recreate it with sessions", source,
		)
	}
	p.inFlight.Subscribed(sub, s.window(sub.HasSessions()), s.handlerTimeout)
	return sub, nil
}

// window returns the window of a new subscription.
func (s settings) window(bySession bool) inflight.Window {
	return inflight.NewWindow(
		inflight.Limits{MaxActive: s.maxActive, MaxHandlers: s.maxHandlers, MaxSessions: s.maxSessions}, bySession,
	)
}

// ensure creates the entity. The first time, it logs how an existing one differs from the metadata.
func (p *pullStream) ensure(ctx context.Context, s settings, path string) error {
	differences, err := p.component.ensureSource(ctx, s, path)
	if err != nil || p.optionsCompared {
		return err
	}
	p.optionsCompared = true
	for _, d := range differences {
		if d.Option != "maxMessageSizeInKilobytes" && d.Option != "requiresSession" {
			p.logger.WarnContext(
				ctx, "an option of the existing entity differs from the metadata, which only has an effect at creation",
				"entity", path, "option", d.Option, "current", d.Present, "requested", d.Asked,
			)
		}
	}
	return nil
}

// leave ends a subscription. If the stream continues, messages that the runtime has can still be acknowledged;
// otherwise they are settled.
func (p *pullStream) leave(ctx context.Context, sub *stream.Subscription) {
	p.inFlight.Unsubscribed()
	if ctx.Err() == nil {
		sub.Detach(ctx)
		return
	}
	_ = sub.SetCredits(0) // released messages must not be delivered here again
	p.closeQueue()
	sub.Close(ctx)
}

// closeQueue ends the queue and settles what is unacknowledged. It abandons what the runtime had received if the
// connection is lost, because the app may have begun; otherwise it releases it.
func (p *pullStream) closeQueue() {
	p.inFlight.Close(lostConnection(p.stream.Context()))
	p.inFlight.Settlements.Wait()
}
