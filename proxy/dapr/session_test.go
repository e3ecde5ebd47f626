package dapr

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"

	"github.com/sidebus/sidebus/proxy/dapr/internal/inflight"
	"github.com/sidebus/sidebus/proxy/internal/settling"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

var kinds = []string{"topic", "queue"}

func TestDAPR_3_OneOfASessionAtATime(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				r := b.begin("entityKind", kind, "requireSessions", "true", "redeliveryDelayInMs", "1000")
				f := r.subscribe("orders")
				synctest.Wait()
				r.sendTo("orders", "a", "a1", "a2")
				f.wants("a1")
				r.sendTo("orders", "b", "b1", "b2")
				f.wants("b1")
				b.pass(time.Second)
				f.wants("")
				f.ack("a1")
				f.wants("a2")
				f.nack("b1") // the same one comes again, after its pause, and nothing before it
				f.wants("")
				b.pass(time.Second)
				f.wants("b1")
				f.ack("b1", "a2")
				f.wants("b2")
			})
		})
	}
}

// Many sessions, several streams, answers out of order and failures: each session comes in order, one at a time.
func TestDAPR_3_OrderWhateverHappens(t *testing.T) {
	t.Parallel()
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, b *bed) {
				const sessions, each = 12, 10
				r := b.begin("entityKind", kind, "requireSessions", "true", "maxConcurrentSessions", "3", "redeliveryDelayInMs", "10", "maxDeliveryCount", "100")
				log := &sessionLog{t: t, out: map[string]bool{}, next: map[string]int{}}
				for _, f := range append(r.subscribeNumbered("orders", 2), r.subscribe("orders")) {
					go log.work(f)
					defer close(f.comes)
				}
				synctest.Wait()
				for i := range each {
					for s := range sessions {
						r.sendTo("orders", fmt.Sprint("s", s), fmt.Sprint(i))
					}
				}
				b.pass(time.Minute)
				for s := range sessions {
					if got := log.next[fmt.Sprint("s", s)]; got != each {
						t.Errorf("session %d: %d of %d", s, got, each)
					}
				}
			})
		})
	}
}

// sessionLog is an app that works on all it gets at once, each for a time of its own.
type sessionLog struct {
	t    *testing.T
	mu   sync.Mutex
	out  map[string]bool // sessions of which something is worked on
	next map[string]int  // what is to come of each
}

func (l *sessionLog) work(f *feed) {
	var sending sync.Mutex
	for response := range f.comes {
		go func() {
			session := response.GetMetadata()["metadata.SessionId"]
			l.begin(session, string(response.GetData()))
			<-time.After(rand.N(50 * time.Millisecond)) //nolint:gosec // no secret
			var failure *proto.AckMessageError
			if rand.N(10) < 2 { //nolint:gosec // no secret
				failure = &proto.AckMessageError{Message: "no luck"}
			}
			l.end(session, failure == nil)
			sending.Lock()
			defer sending.Unlock()
			_ = f.stream.Send(&proto.PullMessagesRequest{AckMessageId: response.GetId(), AckError: failure})
		}()
	}
}

func (l *sessionLog) begin(session, body string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out[session] {
		l.t.Errorf("two of session %s at a time", session)
	}
	if body != fmt.Sprint(l.next[session]) {
		l.t.Errorf("session %s: %s came, %d was to come", session, body, l.next[session])
	}
	l.out[session] = true
}

func (l *sessionLog) end(session string, isDone bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out[session] = false
	if isDone {
		l.next[session]++
	}
}

func TestDAPR_3_SessionsSideBySideUpToTheirMost(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin()
		f := r.subscribe("orders", "requireSessions", "y", "maxConcurrentSessions", "2", "sessionIdleTimeoutInSec", "10")
		synctest.Wait()
		for session, comes := range map[string]string{"a": "a1", "b": "b1"} {
			r.sendTo("orders", session, session+"1")
			f.wants(comes)
		}
		r.sendTo("orders", "c", "c1")
		f.wants("")
		f.ack("a1")
		f.wants("c1") // at once, though a is held for as long as it may idle
		f.ack("b1", "c1")
		synctest.Wait()
		if n := b.lockedSessions("orders"); n == 0 {
			t.Error("no session is held")
		}
		b.pass(10 * time.Second)
		if n := b.lockedSessions("orders"); n != 0 {
			t.Errorf("%d sessions are held", n)
		}
	})
}

func (b *bed) lockedSessions(topic string) int64 {
	b.t.Helper()
	r, err := b.Runtime(b.t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath(topic, "app"))
	b.ok(err)
	return r.LockedSessions
}

// A message without a session for a subscription that needs one is a dead letter there (SESS-7); to a queue it is
// refused.
func TestDAPR_3_MessageWithoutSession(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("requireSessions", "true")
		r.subscribe("orders")
		synctest.Wait()
		r.send("orders", "1")
		b.wantCounts("orders", "available 0 locked 0 dead 1")
		q := b.runtime("q", "")
		b.ok(q.init("entityKind", "queue", "requireSessions", "true"))
		b.wantReason(q.publish("jobs", "1"), semantics.SessionIDMissing, "session")
	})
}

// A subscription that relies on sessions gets nothing from an entity that has none, and says so; the other way round it
// gets order on top.
func TestDAPR_3_EntityOfTheOtherKind(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, b *bed) {
		r := b.begin("entityKind", "queue")
		b.make("plain", semantics.Options{}, nil)
		b.make("tales", semantics.Options{RequiresSession: true}, []string{"requiresSession"})
		f, g := r.subscribe("plain", "requireSessions", "true"), r.subscribe("tales")
		synctest.Wait()
		r.sendTo("plain", "a", "1")
		r.sendTo("tales", "a", "1", "2")
		f.wants("")
		g.wants("1")
		b.wantLog("SESSION_NOT_SUPPORTED")
		if got := b.metric("sidebus_dapr_streams_stalled"); got != 1 {
			t.Errorf("%v stalled", got)
		}
		b.ok(b.DeleteEntity(t.Context(), semantics.QueueKind, "plain")) // it is recreated
		b.pass(settling.MaxBackoff)
		r.sendTo("plain", "a", "2")
		f.wants("2")
		b.pass(settling.HealthyAfter)
		if got := b.metric("sidebus_dapr_streams_stalled"); got != 0 {
			t.Errorf("%v stalled", got)
		}
	})
}

func (b *bed) make(queue string, options semantics.Options, given []string) {
	b.t.Helper()
	_, err := b.CreateEntity(b.t.Context(), semantics.QueueKind, queue, options, given)
	b.ok(err)
}

func TestDAPR_3_WindowFollowsTheRuntime(t *testing.T) {
	t.Parallel()
	at := time.Unix(1000, 0)
	serial := func(w *inflight.Window, gap time.Duration, n int) {
		for range n {
			w.Sent(w.Size())
			at = at.Add(gap)
			w.Answered(true, w.Size(), at)
		}
	}
	s := Sidebus.defaults()
	w := s.window(false)
	if w.Size() != inflight.MinWindow {
		t.Fatalf("it begins with %d", w.Size())
	}
	serial(&w, time.Millisecond, 20)
	if w.Size() != inflight.MaxSerialWindow {
		t.Errorf("a quick app gets %d", w.Size())
	}
	at = at.Add(time.Hour) // it had nothing to do
	w.Answered(true, 1, at)
	if w.Size() != inflight.MaxSerialWindow {
		t.Errorf("after a break it gets %d", w.Size())
	}
	serial(&w, 20*time.Millisecond, 40)
	if w.Size() < 9 || w.Size() > 11 {
		t.Errorf("an app that needs 20ms gets %d", w.Size())
	}
	serial(&w, time.Second, 20)
	if w.Size() != inflight.MinWindow {
		t.Errorf("a slow app gets %d", w.Size())
	}
	for range 12 { // an answer overtakes another one
		w.Sent(w.Size())
		w.Answered(false, w.Size(), at)
	}
	if w.Size() != defaultMaxActive {
		t.Errorf("a runtime that hands on all at once gets %d", w.Size())
	}
	w.Answered(false, w.Size()-1, at)
	serial(&w, time.Hour, 3)
	if w.Size() != defaultMaxActive {
		t.Errorf("and then %d", w.Size())
	}
}

func TestDAPR_3_WindowAsTheMetadataSays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		metadata  string
		bySession bool
		want      int
	}{
		{"", false, inflight.MinWindow},
		{"maxActiveMessages=1", false, 1},
		{"maxConcurrentHandlers=50", false, 50},
		{"maxConcurrentHandlers=50 maxActiveMessages=20", false, 20},
		{"concurrency=7 queueDepth=100", false, 7},
		{"maxConcurrentHandlers=5000 maxActiveMessages=5000", false, stream.MaxCredits},
		{"", true, 8},
		{"maxConcurrentSessions=3", true, 3},
		{"maxConcurrentSessions=30 maxConcurrentHandlers=4", true, 4},
		{"maxConcurrentSessions=30 maxActiveMessages=5", true, 5},
	} {
		metadata := map[string]string{}
		for _, pair := range strings.Fields(c.metadata) {
			name, value, _ := strings.Cut(pair, "=")
			metadata[name] = value
		}
		s, unknown, wrong := Sidebus.defaults().apply(metadata, atSubscription)
		if len(unknown)+len(wrong) > 0 {
			t.Errorf("%s: %v %v", c.metadata, unknown, wrong)
		}
		w := s.window(c.bySession)
		before := w.Size()
		w.Sent(w.Size())
		if strings.Contains(c.metadata, "Concurrent") || c.bySession {
			w.Answered(false, 1, time.Unix(1, 0))
		}
		if before != c.want || w.Size() != before {
			t.Errorf("%s: %d and then %d, want %d", c.metadata, before, w.Size(), c.want)
		}
	}
}
