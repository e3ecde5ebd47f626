package push

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// testLock is the LockDuration of the queues of these tests.
const testLock = 30 * time.Second

// fakeApp is an app in the bubble: an HTTP server whose connections are pipes.
type fakeApp struct {
	http.Handler

	isDown  atomic.Bool
	slow    atomic.Int64 // nanoseconds until a connection is there, or refused
	incomes chan net.Conn
	closed  chan struct{}

	mu    sync.Mutex
	dials []time.Time // tries to connect
}

func (a *fakeApp) dial(ctx context.Context, network, address string) (net.Conn, error) {
	a.mu.Lock()
	a.dials = append(a.dials, time.Now())
	a.mu.Unlock()
	if slow := a.slow.Load(); slow > 0 {
		select {
		case <-time.After(time.Duration(slow)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if a.isDown.Load() {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	ours, theirs := net.Pipe()
	select {
	case a.incomes <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *fakeApp) tries() []time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.dials
}

// Accept, Close and Addr make a fakeApp a listener.
func (a *fakeApp) Accept() (net.Conn, error) {
	select {
	case conn := <-a.incomes:
		return conn, nil
	case <-a.closed:
		return nil, net.ErrClosed
	}
}

func (a *fakeApp) Close() error {
	close(a.closed)
	return nil
}

func (a *fakeApp) Addr() net.Addr { return &net.UnixAddr{} }

// bed is a Pusher in a bubble, with a queue "orders", a queue with sessions "tales", and an app.
type bed struct {
	*broker.Broker

	t       *testing.T
	store   *pliantStore
	app     *fakeApp
	log     *syncbuf.Buffer
	metrics *prometheus.Registry
	stop    context.CancelFunc // of the Pusher
	over    chan struct{}      // closed when it has ended
}

// pliantStore fails settlements and loses locks when it is told to.
type pliantStore struct {
	*memstore.Store

	failure atomic.Pointer[semantics.Error]
	loses   atomic.Int64 // locks that are lost when they are to be renewed
}

func (s *pliantStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	failure := s.failure.Load()
	if failure == nil {
		return s.Store.Complete(ctx, source, tokens)
	}
	if failure.Details[semantics.DetailOutcome] == semantics.OutcomeUnknown { // it was done, but without an answer
		_, _ = s.Store.Complete(ctx, source, tokens)
	}
	return nil, failure
}

func (s *pliantStore) RenewLocks(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Renewal, error) {
	renewals, err := s.Store.RenewLocks(ctx, source, tokens)
	for i := range renewals {
		if s.loses.Add(-1) >= 0 {
			renewals[i] = semantics.Renewal{Code: semantics.MessageLockLost}
		}
	}
	return renewals, err
}

func (s *pliantStore) RenewSessionLock(ctx context.Context, source semantics.Source) (time.Time, error) {
	if s.loses.Add(-1) >= 0 {
		return time.Time{}, semantics.SessionFailure(semantics.SessionLockLost, source.Path)
	}
	return s.Store.RenewSessionLock(ctx, source)
}

// inBubble runs a test in a bubble, where time passes only when all goroutines wait. The Pusher begins when the test
// calls begin.
func inBubble(t *testing.T, test func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bed{
			t: t, store: &pliantStore{Store: memstore.New()}, log: &syncbuf.Buffer{}, metrics: prometheus.NewRegistry(), over: make(chan struct{}),
			app: &fakeApp{incomes: make(chan net.Conn), closed: make(chan struct{})},
		}
		b.Broker = broker.New(b.store, broker.WithRules(filter.Compile))
		b.create("orders", semantics.Options{})
		b.create("tales", semantics.Options{RequiresSession: true}, "requiresSession")
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { b.app.ServeHTTP(w, r) })}
		var served sync.WaitGroup
		served.Go(func() { _ = server.Serve(b.app) })
		test(t, b)
		if b.stop != nil {
			b.stop()
			<-b.over
		}
		b.Broker.Close()
		_ = server.Close()
		served.Wait()
	})
}

func (b *bed) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) create(name string, options semantics.Options, given ...string) {
	b.t.Helper()
	options.LockDuration = testLock
	_, err := b.CreateEntity(b.t.Context(), semantics.QueueKind, name, options, append(given, "lockDuration"))
	b.ok(err)
}

// begin lets a Pusher with one handler run, over app.
func (b *bed) begin(h Handler, app http.HandlerFunc) {
	b.t.Helper()
	if h.URL == "" {
		h.URL = "http://app.test:8080/on-order"
	}
	if h.Source == "" {
		h.Source = "queues/orders"
	}
	b.app.Handler = app
	metrics, err := obs.NewMetrics(b.metrics, b.Broker, 10)
	b.ok(err)
	pusher, err := newPusher([]Handler{h}, b.Broker, access.AllowAll{}, metrics, slog.New(slog.NewTextHandler(b.log, nil)), b.app.dial)
	b.ok(err)
	var ctx context.Context
	ctx, b.stop = context.WithCancel(b.t.Context())
	go func() {
		defer close(b.over)
		pusher.Run(ctx)
	}()
}

// send stores one message for each text; "a/1" is of session "a".
func (b *bed) send(queue string, texts ...string) {
	b.t.Helper()
	for _, text := range texts {
		session, _, isOfSession := strings.Cut(text, "/")
		if !isOfSession {
			session = ""
		}
		b.sendMessage(queue, &semantics.Message{SessionID: session, Body: []byte(text)})
	}
}

func (b *bed) sendMessage(queue string, m *semantics.Message) {
	b.t.Helper()
	_, err := b.Send(b.t.Context(), semantics.ToQueue(queue), []*semantics.Message{m})
	b.ok(err)
}

// wantCounts compares how many messages of a queue are in which state.
func (b *bed) wantCounts(queue, want string) {
	b.t.Helper()
	r, err := b.Runtime(b.t.Context(), semantics.QueueKind, queue)
	b.ok(err)
	got := fmt.Sprintf("available %d delayed %d locked %d deferred %d dead %d", r.Available, r.Delayed, r.Locked, r.Deferred, r.DeadLetter)
	if got != want {
		b.t.Errorf("%s: %s, want %s", queue, got, want)
	}
}

// pass lets time of the bubble pass.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

const nothing = "available 0 delayed 0 locked 0 deferred 0 dead 0"

// peek returns the messages of a queue or its dead letters.
func (b *bed) peek(source semantics.Source) []*semantics.Received {
	b.t.Helper()
	messages, err := b.Peek(b.t.Context(), source, 0, 250, 0)
	b.ok(err)
	return messages
}

// wantMeasured looks for a line among the metrics of the Pusher.
func (b *bed) wantMeasured(name string, value float64, labels ...string) {
	b.t.Helper()
	families, err := b.metrics.Gather()
	b.ok(err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			matches := family.GetName() == name
			for _, label := range m.GetLabel() {
				if len(labels) > 0 && label.GetName() == "outcome" {
					matches = matches && label.GetValue() == labels[0]
				}
			}
			if matches {
				if got := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount()); got != value {
					b.t.Errorf("%s %v: got %v, want %v", name, labels, got, value)
				}
				return
			}
		}
	}
	b.t.Errorf("%s %v: nothing", name, labels)
}

// wantLogged counts the lines of the log that have a text.
func (b *bed) wantLogged(text string, times int) {
	b.t.Helper()
	if got := strings.Count(b.log.String(), text); got != times {
		b.t.Errorf("%q is logged %d times, want %d:\n%s", text, got, times, b.log)
	}
}

// answering is an app that always answers the same.
func answering(status int, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
	}
}

// held is an app that answers each call when it is told to, by text.
type held struct {
	mu    sync.Mutex
	calls map[string]chan int // status to answer
	order []string
	gone  []string // callers that went away
}

func (h *held) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	answer := make(chan int)
	h.mu.Lock()
	if h.calls == nil {
		h.calls = map[string]chan int{}
	}
	h.calls[string(body)] = answer
	h.order = append(h.order, string(body))
	h.mu.Unlock()
	select {
	case status := <-answer:
		w.WriteHeader(status)
	case <-r.Context().Done():
		h.mu.Lock()
		h.gone = append(h.gone, string(body))
		h.mu.Unlock()
	}
}

// seen are the texts of the calls so far, in their order.
func (h *held) seen() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.order, " ")
}

func (h *held) left() string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.gone, " ")
}

// answer answers the last call with a text.
func (h *held) answer(text string, status int) {
	synctest.Wait()
	h.mu.Lock()
	call := h.calls[text]
	h.mu.Unlock()
	call <- status
	synctest.Wait()
}

// Turn is by Complete and Receive, with what they do here.
func (s *pliantStore) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
