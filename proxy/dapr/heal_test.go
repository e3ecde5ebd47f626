package dapr

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	runtimeproto "github.com/dapr/dapr/pkg/proto/runtime/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// fakeDaprd is the API of Dapr's runtime.
type fakeDaprd struct {
	runtimeproto.UnimplementedDaprServer

	about    *runtimeproto.GetMetadataResponse // nil: it does not say
	refusals int                               // of a shut-down
	address  string

	mu        sync.Mutex
	shutDowns int
}

// aboutDaprd has one Component resource and subscriptions to these.
func aboutDaprd(name, kind string, subscriptions ...string) *runtimeproto.GetMetadataResponse {
	about := &runtimeproto.GetMetadataResponse{Id: "app", RegisteredComponents: []*runtimeproto.RegisteredComponents{{Name: name, Type: kind}}}
	for _, s := range subscriptions {
		about.Subscriptions = append(about.Subscriptions, &runtimeproto.PubsubSubscription{PubsubName: s, Topic: "orders"})
	}
	return about
}

func newFakeDaprd(t *testing.T, d *fakeDaprd) *fakeDaprd {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	runtimeproto.RegisterDaprServer(server, d)
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Stop()
		<-over
	})
	d.address = listener.Addr().String()
	return d
}

func (d *fakeDaprd) GetMetadata(ctx context.Context, _ *runtimeproto.GetMetadataRequest) (*runtimeproto.GetMetadataResponse, error) {
	if values := metadata.ValueFromIncomingContext(ctx, tokenHeader); len(values) != 1 || values[0] != "secret" {
		return nil, status.Error(codes.Unauthenticated, "no token")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.about == nil {
		return nil, status.Error(codes.Internal, "no answer")
	}
	return d.about, nil
}

func (d *fakeDaprd) Shutdown(context.Context, *runtimeproto.ShutdownRequest) (*emptypb.Empty, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.refusals > 0 {
		d.refusals--
		return nil, status.Error(codes.Internal, "not now")
	}
	d.shutDowns++
	return &emptypb.Empty{}, nil
}

func (d *fakeDaprd) say(about *runtimeproto.GetMetadataResponse) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.about = about
}

func (d *fakeDaprd) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shutDowns
}

func healing(d *fakeDaprd) func(*Config) {
	return func(c *Config) { c.HealAddr, c.APIToken = d.address, "secret" }
}

// quick does not let a test wait.
func quick(c *Config) { c.healGrace, c.healPause = time.Millisecond, time.Millisecond }

// A runtime that had subscriptions before Sidebus began has lost them and is shut down, once.
func TestDAPR_6_HealsARuntimeThatLostItsStreams(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{about: aboutDaprd("sb", "pubsub.sidebus", "sb"), refusals: 1})
	b := onSockets(t, healing(d), quick)
	b.eventually(func() bool { return b.metric("sidebus_dapr_heals_total", "outcome=restarted") == 1 })
	if d.count() != 1 {
		t.Errorf("%d times", d.count())
	}
	b.wantLog("shut down")
}

// It is left alone when it has nothing to heal, does not say, or is about to begin.
func TestDAPR_6_LeavesOtherRuntimesAlone(t *testing.T) {
	t.Parallel()
	for name, about := range map[string]*runtimeproto.GetMetadataResponse{
		"without subscriptions":   aboutDaprd("sb", "pubsub.sidebus"),
		"subscriptions elsewhere": aboutDaprd("sb", "pubsub.sidebus", "other"),
		"another type":            aboutDaprd("sb", "pubsub.redis", "sb"),
		"no components yet":       {},
		"no answer":               nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFakeDaprd(t, &fakeDaprd{about: about})
			h := newTestHealer(t, d)
			if isThere, err := h.hasSubscriptions(t.Context()); isThere || (err != nil) != (about == nil) {
				t.Errorf("got %v, %v", isThere, err)
			}
			if h.needsRestart(t.Context()) {
				t.Error("it takes the runtime for deaf")
			}
		})
	}
}

func newTestHealer(t *testing.T, d *fakeDaprd) *healer {
	t.Helper()
	b := newBed(t, healing(d))
	t.Cleanup(b.Broker.Close)
	h, err := newHealer(b.server)
	b.ok(err)
	t.Cleanup(h.runtime.Close)
	return h
}

// A runtime that has restarted meanwhile is not shut down.
func TestDAPR_6_LeavesARuntimeAloneThatHasBegun(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{about: aboutDaprd("sb", "pubsub.sidebus", "sb")})
	b := onSockets(t, healing(d), func(c *Config) { c.healGrace = time.Hour })
	b.begin()
	h, err := newHealer(b.server)
	b.ok(err)
	defer h.runtime.Close()
	if h.needsRestart(t.Context()) {
		t.Error("it takes a runtime for deaf that has begun")
	}
}

// A runtime that has stopped meanwhile is not looked for.
func TestDAPR_6_TheRuntimeWasRestartedBySomebodyElse(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{about: aboutDaprd("sb", "pubsub.sidebus", "sb")})
	h := newTestHealer(t, d)
	if isThere, err := h.hasSubscriptions(t.Context()); err != nil || !isThere {
		t.Fatal(isThere, err)
	}
	d.say(aboutDaprd("sb", "pubsub.sidebus"))
	if h.needsRestart(t.Context()) {
		t.Error("it takes a runtime for deaf that has no subscriptions")
	}
}

func TestDAPR_6_NoRuntimeThere(t *testing.T) {
	t.Parallel()
	b := newBed(t, func(c *Config) { c.HealAddr = "127.0.0.1:1" })
	t.Cleanup(b.Broker.Close)
	h, err := newHealer(b.server)
	b.ok(err)
	defer h.runtime.Close()
	if isThere, err := h.hasSubscriptions(t.Context()); isThere || err == nil {
		t.Errorf("got %v, %v", isThere, err)
	}
}

func TestDAPR_6_RuntimeThatDoesNotShutDown(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{about: aboutDaprd("sb", "pubsub.sidebus", "sb"), refusals: 1000})
	b := onSockets(t, healing(d), quick)
	b.eventually(func() bool { return b.metric("sidebus_dapr_heals_total", "outcome=failed") == 1 })
	b.wantLog("until it is restarted")
}
