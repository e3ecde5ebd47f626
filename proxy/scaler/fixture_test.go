package scaler_test

import (
	"context"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proto/externalscaler"
	"github.com/sidebus/sidebus/proxy/scaler"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// fixture is a scaler over a store in memory, with the queues "orders", and "carts" with sessions, and the subscription
// "eu" of the topic "news". Its calls are at least a second apart, so that each reads the store.
type fixture struct {
	t        *testing.T
	store    *counted
	broker   *broker.Broker
	service  *scaler.Service
	stopping chan struct{}
}

// counted is a store that counts how often it is read, and can fail.
type counted struct {
	*memstore.Store

	mu    sync.Mutex
	reads int
	err   error
}

func (c *counted) Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error) {
	c.mu.Lock()
	c.reads++
	err := c.err
	c.mu.Unlock()
	if err != nil {
		return semantics.Runtime{}, err
	}
	return c.Store.Runtime(ctx, kind, path)
}

func (c *counted) failWith(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func start(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, store: &counted{Store: memstore.New()}, stopping: make(chan struct{})}
	f.broker = broker.New(f.store, broker.WithRules(filter.Compile))
	t.Cleanup(f.broker.Close)
	f.service = scaler.New(f.store, f.stopping)
	f.create(semantics.QueueKind, "orders", semantics.Options{})
	f.create(semantics.QueueKind, "carts", semantics.Options{RequiresSession: true}, "requiresSession")
	f.create(semantics.TopicKind, "news", semantics.Options{})
	f.create(semantics.SubscriptionKind, semantics.SubscriptionPath("news", "eu"), semantics.Options{})
	return f
}

func (f *fixture) create(kind semantics.Kind, name string, options semantics.Options, given ...string) {
	f.t.Helper()
	if _, err := f.broker.CreateEntity(f.t.Context(), kind, name, options, given); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) send(path string, messages ...*semantics.Message) {
	f.t.Helper()
	target := semantics.Target{Path: path, IsTopic: path == "news"}
	if _, err := f.broker.Send(f.t.Context(), target, messages); err != nil {
		f.t.Fatal(err)
	}
}

// asked returns the metadata of a trigger about orders, with changes.
func asked(change map[string]string) *externalscaler.ScaledObjectRef {
	all := map[string]string{"scalerAddress": "scaler:7424", "source": "queues/orders"}
	maps.Copy(all, change)
	return &externalscaler.ScaledObjectRef{Name: "app", Namespace: "shop", ScalerMetadata: all}
}

// value is that of a metric, and whether the source is active, a second later.
func (f *fixture) value(metric string, change map[string]string) (float64, bool) {
	f.t.Helper()
	pass(time.Second)
	got, err := f.service.GetMetrics(f.t.Context(), &externalscaler.GetMetricsRequest{
		MetricName: metric, ScaledObjectRef: asked(change),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	active, err := f.service.IsActive(f.t.Context(), asked(change))
	if err != nil {
		f.t.Fatal(err)
	}
	if n := len(got.GetMetricValues()); n != 1 || got.GetMetricValues()[0].GetMetricName() != metric {
		f.t.Fatalf("got %v", got)
	}
	return got.GetMetricValues()[0].GetMetricValueFloat(), active.GetResult()
}

func (f *fixture) wantValue(metric string, change map[string]string, want float64, wantActive bool) {
	f.t.Helper()
	if got, isActive := f.value(metric, change); got != want || isActive != wantActive {
		f.t.Errorf("%s of %v: got %v, active %t; want %v, %t", metric, change, got, isActive, want, wantActive)
	}
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // takes no time there
}

// of is a message of a session.
func of(session string) *semantics.Message { return &semantics.Message{SessionID: session} }

func (f *fixture) receive(path string, n int) []semantics.LockToken {
	f.t.Helper()
	return f.receiveFrom(semantics.Source{Path: path}, n)
}

func (f *fixture) receiveFrom(source semantics.Source, n int) []semantics.LockToken {
	f.t.Helper()
	got, err := f.broker.Receive(f.t.Context(), source, broker.ReceiveOptions{MaxMessages: n})
	if err != nil || len(got.Tokens()) != n {
		f.t.Fatalf("received %v, %v; want %d messages", got, err, n)
	}
	return got.Tokens()
}

func (f *fixture) settled(codes []semantics.Code, err error) {
	f.t.Helper()
	for _, code := range codes {
		if code != "" {
			f.t.Fatalf("not settled: %s", code)
		}
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) update(queue string, options semantics.Options, names ...string) {
	f.t.Helper()
	if _, err := f.broker.UpdateEntity(f.t.Context(), semantics.QueueKind, queue, options, names); err != nil {
		f.t.Fatal(err)
	}
}
