package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/dapr/go-sdk/client"
	"github.com/dapr/go-sdk/service/common"
	service "github.com/dapr/go-sdk/service/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidebus/sidebus/test/dapr/daprtest"
	"github.com/sidebus/sidebus/test/figures"
)

const (
	topic    = "bench"
	bodySize = 1024
	bulkSize = 100 // messages of a call that publishes many
	sessions = 100
	streams  = 10 // side by side; pubsub.redis passes on as many messages at a time
	patience = 10 * time.Minute
)

// contender is a component that carries messages, with a daprd of its own and an app.
type contender struct {
	kind      string            // of the component
	metadata  map[string]string // of the component
	isSession bool
	isRedis   bool // Dapr's own
	isFloor   bool // a component that stores nothing
	// How many streams daprd has for the subscription, and whether the app opens them itself. Without, it is called.
	streams     int
	isStreaming bool

	callers int
	client  sdk.Client
	handled atomic.Int64
	target  atomic.Int64
	reached chan struct{} // gets one when as many as target were handled
}

var contenders = map[string]*contender{
	"sidebus-topic": {kind: "pubsub.sidebus"},
	"sidebus-queue": {kind: "pubsub.sidebus", metadata: map[string]string{"entityKind": "queue"}},
	"sidebus-sessions": {kind: "pubsub.sidebus", metadata: map[string]string{
		"entityKind": "queue", "requireSessions": "true", "maxConcurrentSessions": fmt.Sprint(sessions),
	}, isSession: true},
	"sidebus-sessions-lanes": {kind: "pubsub.sidebus", metadata: map[string]string{
		"entityKind": "queue", "requireSessions": "true", "maxConcurrentSessions": fmt.Sprint(sessions / streams),
	}, isSession: true, streams: streams},
	"sidebus-lanes":   {kind: "pubsub.sidebus", streams: streams},
	"sidebus-streams": {kind: "pubsub.sidebus", streams: streams, isStreaming: true},
	"redis":           {kind: "pubsub.redis", isRedis: true},
	"floor":           {kind: "pubsub.sidebus", isFloor: true},
}

// start runs the app, and daprd with the component.
func (c *contender) start(ctx context.Context, b *bed, callers int) error {
	c.callers, c.reached = callers, make(chan struct{}, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	app := service.NewServiceWithListener(listener)
	names := c.topics()
	if c.isStreaming {
		names = nil
	}
	for _, name := range names {
		if err := app.AddTopicEventHandler(&common.Subscription{PubsubName: "bus", Topic: name}, c.handle); err != nil {
			return err
		}
	}
	go func() { _ = app.Start() }()
	address, err := b.daprd(ctx, c, listener.Addr().(*net.TCPAddr).Port)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	c.client = sdk.NewClientWithConnection(conn)
	if c.isStreaming {
		if err := c.openStreams(ctx); err != nil {
			return err
		}
	}
	return b.subscribed(ctx, c)
}

// topics returns the topics of the subscription, by each of which daprd opens a stream.
func (c *contender) topics() []string {
	names := []string{topic}
	for n := 2; n <= c.streams; n++ {
		names = append(names, fmt.Sprintf("%s;lane=%d", topic, n))
	}
	return names
}

// openStreams opens the streams of an app that daprd does not call. daprd before 1.16 permits one for each name, newer
// ones any number.
func (c *contender) openStreams(ctx context.Context) error {
	for _, name := range c.topics() {
		if daprtest.IsNewest() {
			name = topic
		}
		s, err := c.client.Subscribe(ctx, sdk.SubscriptionOptions{PubsubName: "bus", Topic: name})
		if err != nil {
			return err
		}
		go func() {
			for m, err := s.Receive(); err == nil; m, err = s.Receive() {
				_, _ = c.handle(ctx, m.TopicEvent)
				_ = m.Success()
			}
		}()
	}
	return nil
}

// handle is the handler of the app.
func (c *contender) handle(context.Context, *common.TopicEvent) (retry bool, err error) {
	if c.handled.Add(1) == c.target.Load() {
		c.reached <- struct{}{}
	}
	return false, nil
}

// expect sets how many messages from now on are awaited.
func (c *contender) expect(n int) { c.target.Store(c.handled.Load() + int64(n)) }

func (c *contender) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-c.reached:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%d of %d messages came: %w", c.handled.Load(), c.target.Load(), ctx.Err())
	}
}

// do publishes messages, waits until the app has had all and all are acknowledged, and returns what was measured.
func (c *contender) do(ctx context.Context, b *bed, verb string, messages int) (map[string]float64, error) {
	if verb == "latency" {
		return c.latencies(ctx, messages)
	}
	before, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	batch := 1
	if verb == "bulk" {
		batch = bulkSize
	}
	calls := max(1, messages/batch)
	c.expect(calls * batch)
	began := time.Now()
	err = c.each(calls, func(i int) error {
		if batch > 1 {
			return c.bulk(ctx, i, batch)
		}
		return c.publish(ctx, i)
	})
	if err != nil {
		return nil, err
	}
	published := time.Since(began)
	if err := c.await(ctx); err != nil {
		return nil, err
	}
	if err := b.drained(ctx, c); err != nil {
		return nil, err
	}
	after, err := b.memory(ctx)
	n := float64(calls * batch)
	return map[string]float64{"publish/s": n / published.Seconds(), "left bytes/message": (after - before) / n}, err
}

// each lets all callers work through n calls.
func (c *contender) each(n int, call func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var work sync.WaitGroup
	for range c.callers {
		work.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := call(i); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	work.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

var body = strings.Repeat("x", bodySize)

func (c *contender) metadataOf(i int) map[string]string {
	if !c.isSession {
		return nil
	}
	return map[string]string{"SessionId": fmt.Sprint("session-", i%sessions)}
}

func (c *contender) publish(ctx context.Context, i int) error {
	return c.client.PublishEvent(ctx, "bus", topic, body,
		sdk.PublishEventWithContentType("text/plain"), sdk.PublishEventWithMetadata(c.metadataOf(i)))
}

func (c *contender) bulk(ctx context.Context, i, batch int) error {
	events := make([]any, batch)
	for n := range events {
		events[n] = sdk.PublishEventsEvent{
			EntryID:     fmt.Sprint(n),
			Data:        []byte(body),
			ContentType: "text/plain",
			Metadata:    c.metadataOf(i*batch + n),
		}
	}
	r := c.client.PublishEvents(ctx, "bus", topic, events)
	if r.Error == nil && len(r.FailedEvents) > 0 {
		r.Error = errors.New("some were not published")
	}
	return r.Error
}

// latencies publishes messages one after the other and takes the time until the app has each, in ms.
func (c *contender) latencies(ctx context.Context, n int) (map[string]float64, error) {
	times := make([]float64, n)
	for i := range times {
		c.expect(1)
		began := time.Now()
		if err := c.publish(ctx, i); err != nil {
			return nil, err
		}
		if err := c.await(ctx); err != nil {
			return nil, err
		}
		times[i] = float64(time.Since(began).Microseconds()) / 1000
	}
	return map[string]float64{"p50 ms": figures.Percentile(times, 50), "p99 ms": figures.Percentile(times, 99)}, nil
}
