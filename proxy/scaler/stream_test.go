package scaler_test

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"google.golang.org/grpc"

	"github.com/sidebus/sidebus/proto/externalscaler"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// stream is an open StreamIsActive.
type stream struct {
	grpc.ServerStream

	ctx    context.Context //nolint:containedctx // of the stream
	cancel context.CancelFunc
	ended  chan struct{}
	err    error // once ended

	mu   sync.Mutex
	sent []bool
}

func (s *stream) Context() context.Context { return s.ctx }

func (s *stream) Send(r *externalscaler.IsActiveResponse) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, r.GetResult())
	return nil
}

// open opens a stream as a caller.
func (f *fixture) open(caller access.Caller, change map[string]string) *stream {
	f.t.Helper()
	s := &stream{ended: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(access.WithCaller(f.t.Context(), caller))
	f.t.Cleanup(func() {
		s.cancel()
		<-s.ended
	})
	go func() {
		defer close(s.ended)
		s.err = f.service.StreamIsActive(asked(change), s)
	}()
	return s
}

// want checks all that was sent within the next two seconds and before.
func (s *stream) want(t *testing.T, sent ...bool) {
	t.Helper()
	pass(2 * time.Second)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.sent, sent) {
		t.Fatalf("sent %v, want %v", s.sent, sent)
	}
}

func (s *stream) wantEnd(t *testing.T, code semantics.Code) {
	t.Helper()
	pass(10 * time.Second)
	select {
	case <-s.ended:
	default:
		t.Fatal("the stream is open")
	}
	if got := semantics.CodeOf(s.err); got != code {
		t.Fatalf("the stream ended with %v, want %q", s.err, code)
	}
}

func TestCOMP_8_StreamSaysWhenWorkComesAndEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		s := f.open(access.AllowAll{}, map[string]string{"messages": "5"})
		s.want(t, false)
		s.want(t, false) // once
		f.send("orders", &semantics.Message{})
		s.want(t, false, true)
		got := f.receive("orders", 1)
		s.want(t, false, true)
		f.settled(f.broker.Complete(t.Context(), semantics.Source{Path: "orders"}, got))
		s.want(t, false, true, false)
		close(f.stopping)
		s.wantEnd(t, "")
	})
}

// A stream outlives an outage of the store, and begins before its source: its end would cost KEDA up to a minute.
func TestCOMP_8_StreamStaysWhenTheStoreDoesNot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.send("orders", &semantics.Message{})
		s := f.open(access.AllowAll{}, map[string]string{"messages": "5"})
		early := f.open(access.AllowAll{}, map[string]string{"messages": "5", "source": "queues/early"})
		s.want(t, true)
		f.store.failWith(semantics.Errorf(semantics.StoreUnavailable, "gone"))
		s.want(t, true)
		f.settled(f.broker.Complete(t.Context(), semantics.Source{Path: "orders"}, f.receive("orders", 1)))
		s.want(t, true)
		f.store.failWith(nil)
		s.want(t, true, false)
		early.want(t)
		f.create(semantics.QueueKind, "early", semantics.Options{})
		f.send("early", &semantics.Message{})
		early.want(t, true)
	})
}

func TestCOMP_8_StreamOfBadMetadataIsRefused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		f.open(access.AllowAll{}, map[string]string{"messages": "none"}).wantEnd(t, semantics.InvalidArgument)
		f.open(access.AllowAll{}, map[string]string{"sessions": "1"}).wantEnd(t, semantics.SessionNotSupported)
	})
}

// changing is a caller whose rights may end.
type changing struct {
	access.AllowAll

	mu     sync.Mutex
	denied bool
	asked  []access.Right
}

func (c *changing) Permit(right access.Right) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, right)
	if c.denied {
		return semantics.Errorf(semantics.PermissionDenied, "no more")
	}
	return nil
}

func (c *changing) deny() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.denied = true
}

func TestAUTH_4_StreamEndsWithItsRight(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		caller := &changing{}
		s := f.open(caller, map[string]string{"messages": "5"})
		s.want(t, false)
		caller.deny()
		s.wantEnd(t, semantics.PermissionDenied)
		if want := (access.Right{Claims: access.Listen, Path: "orders"}); caller.asked[0] != want {
			t.Errorf("it asked for %+v, want %+v", caller.asked[0], want)
		}
		f.open(caller, map[string]string{"messages": "5"}).wantEnd(t, semantics.PermissionDenied)
	})
}

// KEDA passes on certificates and more that a trigger does not need. What others send is not kept for as long as a
// stream lasts.
func TestCOMP_8_StreamsDoNotKeepTheMetadata(t *testing.T) {
	t.Parallel()
	f := start(t)
	ctx, cancel := context.WithCancel(access.WithCaller(t.Context(), access.AllowAll{}))
	s := &stream{ctx: ctx, cancel: cancel, ended: make(chan struct{})}
	var isFreed atomic.Bool
	open := func() {
		memory := new([1 << 20]byte)
		runtime.AddCleanup(memory, func(freed *atomic.Bool) { freed.Store(true) }, &isFreed)
		ref := asked(map[string]string{"messages": "5", "caCert": unsafe.String(&memory[0], len(memory))})
		go func(ref *externalscaler.ScaledObjectRef) {
			defer close(s.ended)
			_ = f.service.StreamIsActive(ref, s) // it ends when it is cancelled
		}(ref)
	}
	open()
	for end := time.Now().Add(time.Minute); !isFreed.Load(); runtime.GC() {
		if time.Now().After(end) {
			t.Fatal("the certificate is still in memory")
		}
	}
	select {
	case <-s.ended:
		t.Error("the stream has ended")
	default:
	}
	cancel()
	<-s.ended
}
