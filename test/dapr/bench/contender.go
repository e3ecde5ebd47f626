package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	sdk "github.com/dapr/go-sdk/client"
	"github.com/dapr/go-sdk/service/common"
	service "github.com/dapr/go-sdk/service/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

const (
	topic    = "bench"
	bodySize = 1024
	sessions = 100
	patience = 10 * time.Minute
)

// contender is a component that carries messages, with a daprd of its own and an app.
type contender struct {
	name      string
	kind      string            // of the component
	metadata  map[string]string // of the component
	isSession bool
	isRedis   bool // Dapr's own

	client  sdk.Client
	handled atomic.Int64
	target  atomic.Int64
	reached chan struct{} // gets one when as many as target were handled
}

var contenders = []*contender{
	{name: "sidebus-topic", kind: "pubsub.sidebus"},
	{name: "sidebus-queue", kind: "pubsub.sidebus", metadata: map[string]string{"entityKind": "queue"}},
	{name: "sidebus-sessions", kind: "pubsub.sidebus", metadata: map[string]string{
		"entityKind": "queue", "requireSessions": "true", "maxConcurrentSessions": fmt.Sprint(sessions),
	}, isSession: true},
	{name: "pubsub.redis", kind: "pubsub.redis", isRedis: true},
}

// topic keeps those apart that share a namespace of keys.
func (c *contender) topic() string { return topic + "-" + c.name }

// start runs the app, and daprd with the component.
func (c *contender) start(ctx context.Context, b *bed) error {
	c.reached = make(chan struct{}, 1)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	app := service.NewServiceWithListener(listener)
	err = app.AddTopicEventHandler(
		&common.Subscription{PubsubName: "bus", Topic: c.topic()},
		func(context.Context, *common.TopicEvent) (bool, error) {
			if c.handled.Add(1) == c.target.Load() {
				c.reached <- struct{}{}
			}
			return false, nil
		},
	)
	if err != nil {
		return err
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
	return b.subscribed(ctx, c)
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

// round publishes and delivers, and returns what was measured.
func (c *contender) round(ctx context.Context, b *bed, p plan) (map[string]float64, error) {
	before, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	got := map[string]float64{}
	total := p.messages + p.latencies
	if err := c.phase(ctx, "publish", p, p.messages, 1, got); err != nil {
		return nil, err
	}
	if p.batch > 0 {
		calls := p.messages / p.batch
		total += calls * p.batch
		if err := c.phase(ctx, "bulk", p, calls, p.batch, got); err != nil {
			return nil, err
		}
	}
	if err := c.latencies(ctx, p.latencies, got); err != nil {
		return nil, err
	}
	if err := b.drained(ctx, c); err != nil {
		return nil, err
	}
	after, err := b.memory(ctx)
	if err != nil {
		return nil, err
	}
	got["left-bytes/message"] = (after - before) / float64(total)
	return got, nil
}

// phase makes calls that publish as many messages each, and waits until the app has had all.
func (c *contender) phase(ctx context.Context, name string, p plan, calls, batch int, got map[string]float64) error {
	n := float64(calls * batch)
	c.expect(calls * batch)
	began := time.Now()
	err := c.each(p, calls, func(i int) error {
		if name == "bulk" {
			return c.bulk(ctx, i, batch)
		}
		return c.publish(ctx, i)
	})
	if err != nil {
		return err
	}
	got[name+"/s"] = n / time.Since(began).Seconds()
	if err := c.await(ctx); err != nil {
		return err
	}
	got[name+"-delivered/s"] = n / time.Since(began).Seconds()
	return nil
}

// each lets all callers work through n calls.
func (c *contender) each(p plan, n int, call func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var work sync.WaitGroup
	for range p.callers {
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
	return c.client.PublishEvent(ctx, "bus", c.topic(), body,
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
	r := c.client.PublishEvents(ctx, "bus", c.topic(), events)
	if r.Error == nil && len(r.FailedEvents) > 0 {
		r.Error = errors.New("some were not published")
	}
	return r.Error
}

// latencies sends messages one after the other and takes the time until the app has each.
func (c *contender) latencies(ctx context.Context, n int, got map[string]float64) error {
	if n == 0 {
		return nil
	}
	times := make([]float64, n)
	for i := range times {
		c.expect(1)
		began := time.Now()
		if err := c.publish(ctx, i); err != nil {
			return err
		}
		if err := c.await(ctx); err != nil {
			return err
		}
		times[i] = float64(time.Since(began).Microseconds()) / 1000
	}
	slices.Sort(times)
	got["p50-ms"], got["p99-ms"] = times[n/2], times[n*99/100]
	return nil
}
