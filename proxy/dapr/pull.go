package dapr

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// Pauses while an entity cannot be received from, each twice the last, less up to half by chance.
const (
	minBackoff = 200 * time.Millisecond
	maxBackoff = 10 * time.Second
	// trial is after how long a subscription that has not failed works.
	healthyAfter = 5 * time.Second
)

// pull is one stream of messages to Dapr's runtime. It stands until the runtime ends it, whatever happens here: a
// stream that has ended the runtime does not open again.
type pullStream struct {
	component *component
	broker    *broker.Broker
	metrics   *obs.Metrics

	instance *instance
	topic    string
	settings settings
	stream   proto.PubSub_PullMessagesServer
	logger   *slog.Logger
	work     sync.WaitGroup // settlements
	failures obs.FailureLog

	optionsCompared bool // the entity with the metadata

	mu         sync.Mutex
	sub        *stream.Subscription // that stands, nil for none
	isPaused   bool
	isClosed   bool // nothing is sent any more, and no answer counts
	window     window
	queue      []*outgoing // what the runtime has not answered, in the order in which it got it
	watched    *outgoing   // the one that the app works on, as far as that is known
	timer      *time.Timer // ends the app's time for that one, or what is done while one blocks
	headOfLine headOfLine  // by one that the app has not answered in time

	completions completionBatch
	reported    semantics.Code
	isStalled   bool // the entity cannot be received from
}

// PullMessages sends the messages of a topic to Dapr's runtime and takes its answers.
func (c *component) PullMessages(stream proto.PubSub_PullMessagesServer) error {
	first, err := stream.Recv()
	if err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	if first.GetTopic() == nil {
		return semantics.Errorf(semantics.InvalidArgument, "topic must be in the first request of the stream").
			With(semantics.DetailField, "topic")
	}
	p, err := c.open(stream, first.GetTopic())
	if err != nil {
		return err
	}
	defer c.close(p)
	return p.run()
}

// open begins a stream. Metadata that makes no sense is passed over: to refuse it would leave the app without messages
// for good.
func (c *component) open(stream proto.PubSub_PullMessagesServer, topic *proto.Topic) (*pullStream, error) {
	ctx := stream.Context()
	key := keyOf(ctx)
	p := &pullStream{component: c, broker: c.broker, metrics: c.metrics, topic: topic.GetName(), stream: stream}
	p.logger = c.logger.With("component", cut(key.name), "topic", cut(p.topic))
	p.failures = obs.NewFailureLog(p.logger)
	if err := c.join(p, key); err != nil {
		return nil, err
	}
	s, unknown, wrong := p.settings.apply(topic.GetMetadata(), atSubscription)
	p.settings = s
	for _, name := range unknown {
		p.logger.WarnContext(
			ctx, "metadata of a subscription that Sidebus does not know has no effect", "name", cut(name),
		)
	}
	for _, bad := range wrong {
		c.metrics.DaprBadMetadata.Inc()
		p.logger.ErrorContext(
			ctx, "metadata of a subscription makes no sense and is passed over", "name", bad.name, "error", bad.text,
		)
	}
	c.metrics.DaprStreams.Inc()
	p.logger.InfoContext(ctx, "Dapr's runtime subscribes", "consumer", s.consumer, "sessions", s.requireSessions)
	return p, nil
}

// join adds a stream to those of its instance, which is not paused any more then.
func (c *component) join(p *pullStream, key instanceKey) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runtimeSeen = true
	i, err := c.addInstance(key)
	if err != nil {
		return err
	}
	i.pause(false)
	i.pulls[p] = true
	p.instance, p.settings = i, i.settings
	return nil
}

func (c *component) close(p *pullStream) {
	c.mu.Lock()
	delete(p.instance.pulls, p)
	c.mu.Unlock()
	c.metrics.DaprStreams.Dec()
	p.logger.Info("Dapr's runtime has ended a subscription")
}

// errStops is why a stream ends that the runtime would go on with.
var errStopping = semantics.Errorf(semantics.StoreUnavailable, "this sidecar stops").
	With(semantics.DetailCause, semantics.CauseDraining)

// run sends and takes answers until the runtime ends the stream or Sidebus stops. Then what is out is given back.
func (p *pullStream) run() error {
	ctx, cancel := context.WithCancelCause(p.stream.Context())
	defer cancel(nil)
	answers := make(chan error, 1)
	go func() { // it ends with the call, which nobody waits for
		err := p.readAcks(ctx)
		answers <- err
		cancel(err)
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		p.deliverLoop(ctx)
	}()
	var err error
	select {
	case err = <-answers:
	case <-p.component.stopping:
		err = errStopping
		cancel(err)
	}
	<-sent
	p.closeQueue(ctx)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// takeAnswers takes answers until the stream ends, and gives why.
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

// deliverAll sends messages for as long as ctx lives.
func (p *pullStream) deliverLoop(ctx context.Context) {
	pause := minBackoff
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.setStalled(false)
	}()
	for ctx.Err() == nil {
		began := time.Now()
		err := p.recoverPanic(ctx, p.deliverOnce)
		if ctx.Err() != nil {
			return
		}
		if p.broker.Draining() { // nothing comes any more, but answers may
			<-ctx.Done()
			return
		}
		if time.Since(began) >= healthyAfter {
			pause = minBackoff
		}
		p.receiveFailed(ctx, err)
		select {
		case <-time.After(pause/2 + rand.N(pause/2)): //nolint:gosec // no secret
		case <-ctx.Done():
		}
		pause = min(2*pause, maxBackoff)
	}
}

// safely lets a panic be a failure like others: the stream must not end by it.
func (p *pullStream) recoverPanic(ctx context.Context, do func(context.Context) error) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			p.metrics.Panics.Inc()
			p.logger.ErrorContext(
				ctx, "panic in a stream of Dapr's runtime, which goes on", "panic", fmt.Sprint(recovered), "stack",
				string(debug.Stack()),
			)
			err = semantics.Errorf(semantics.Internal, "a bug in Sidebus")
		}
	}()
	return do(ctx)
}

// trouble notes that the entity cannot be received from. A reason is told once.
func (p *pullStream) receiveFailed(ctx context.Context, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setStalled(true)
	if code := semantics.CodeOf(err); code != p.reported {
		p.reported = code
		p.logger.WarnContext(
			ctx, "the subscription of Dapr's runtime gets no messages; it is tried again until it does", "error", err,
		)
	}
}

// recovered notes that the entity can be received from.
func (p *pullStream) receiveRecovered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.setStalled(false)
	if p.reported != "" {
		p.reported = ""
		p.logger.Info("the subscription of Dapr's runtime gets messages again")
	}
}

// stuck sets the measure of streams that get nothing. The caller holds the mutex.
func (p *pullStream) setStalled(isStuck bool) {
	if isStuck == p.isStalled {
		return
	}
	p.isStalled = isStuck
	if isStuck {
		p.metrics.DaprStreamsStalled.Inc()
	} else {
		p.metrics.DaprStreamsStalled.Dec()
	}
}

// deliverSome sends what one subscription delivers, and gives why that ended.
func (p *pullStream) deliverOnce(ctx context.Context) error {
	sub, err := p.subscribe(ctx)
	if err != nil {
		return err
	}
	defer p.leave(ctx, sub)
	lives := time.AfterFunc(healthyAfter, p.receiveRecovered) // one that cannot be received from says so at once
	defer lives.Stop()
	for {
		e, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		p.handleEvent(ctx, sub, e)
	}
}

// subscribe makes a subscription to what the topic stands for, and the entity before if there is none.
func (p *pullStream) subscribe(ctx context.Context) (*stream.Subscription, error) {
	defer finishOpening(p.stream.Context())
	s := p.settings
	source, err := sourceOf(p.topic, s)
	if err != nil {
		return nil, err
	}
	if s.manages && source.SubQueue == semantics.MainQueue {
		if err := p.ensure(ctx, s, source.Path); err != nil {
			return nil, err
		}
	}
	options := stream.DefaultOptions()
	options.Credits, options.MaxSessions, options.SessionIdle = 0, s.maxSessions, s.sessionIdle
	options.MaxAutoRenew = 0
	if s.renews {
		options.MaxAutoRenew = stream.MaxAutoRenew // as long as the stream stands, or until the app's time is over
	}
	sub, err := p.broker.Subscribe(ctx, source, options)
	if err != nil {
		return nil, err
	}
	if s.requireSessions && source.SubQueue == semantics.MainQueue && !sub.HasSessions() {
		sub.Close(ctx)
		return nil, semantics.Errorf(
			semantics.SessionNotSupported,
			"%q has no sessions, which requireSessions asks for; delete it to have it made anew with sessions", source,
		)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	isConcurrent := p.window.isConcurrent
	p.sub, p.window = sub, newWindow(s, sub.HasSessions())
	p.window.isConcurrent = isConcurrent
	p.grant()
	return sub, nil
}

// ensure makes the entity, and tells once how one that is there differs from what the metadata asks for.
func (p *pullStream) ensure(ctx context.Context, s settings, path string) error {
	differences, err := p.component.ensureSource(ctx, s, path)
	if err != nil || p.optionsCompared {
		return err
	}
	p.optionsCompared = true
	for _, d := range differences {
		if d.Option != "maxMessageSizeInKilobytes" && d.Option != "requiresSession" {
			p.logger.WarnContext(
				ctx, "the entity has another option than the metadata says; metadata counts only when it is made",
				"entity", path, "option", d.Option, "present", d.Present, "asked", d.Asked,
			)
		}
	}
	return nil
}

func (p *pullStream) setPaused(isPaused bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isPaused = isPaused
	p.grant()
}

// leave ends a subscription. When the stream goes on, what the runtime has may still be answered; else it is given
// back.
func (p *pullStream) leave(ctx context.Context, sub *stream.Subscription) {
	p.mu.Lock()
	p.sub = nil
	p.mu.Unlock()
	if ctx.Err() == nil {
		sub.Detach(ctx)
		return
	}
	_ = sub.SetCredits(0) // so that what is given back does not come here again
	p.closeQueue(ctx)
	sub.Close(ctx)
}
