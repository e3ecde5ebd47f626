package compat_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/compat"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

// stand is a compat Handler behind a real HTTP server, with the queue "orders".
type stand struct {
	t      *testing.T
	broker *broker.Broker
	store  *spyStore
	base   string // address of the server
	client *http.Client
}

// spyStore reports releases, completions and receives that begin to wait, and may delay receives or fail.
type spyStore struct {
	semantics.Store

	released, completed, watched chan int
	beforeReceive                func(ctx context.Context)

	mu     sync.Mutex
	outage error
}

func (s *spyStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	codes, err := s.Store.Release(ctx, source, tokens)
	s.released <- len(codes)
	return codes, err
}

func (s *spyStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	codes, err := s.Store.Complete(ctx, source, tokens)
	s.completed <- len(codes)
	return codes, err
}

func (s *spyStore) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	if err := s.failure(); err != nil {
		return nil, err
	}
	return s.Store.Send(ctx, path, messages)
}

func (s *spyStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if s.beforeReceive != nil {
		s.beforeReceive(ctx)
		ctx = context.WithoutCancel(ctx)
	}
	if err := s.failure(); err != nil {
		return semantics.Batch{}, err
	}
	return s.Store.Receive(ctx, source, limit, register)
}

func (s *spyStore) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	watch, err := s.Store.Watch(ctx, source)
	s.watched <- 1
	return watch, err
}

func (s *spyStore) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outage
}

func (s *spyStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = err
}

// start runs a stand until the test ends.
func start(t *testing.T, change ...func(*compat.Config)) *stand {
	t.Helper()
	return startOver(t, memstore.New(), change...)
}

// startOver is start over a store.
func startOver(t *testing.T, over semantics.Store, change ...func(*compat.Config)) *stand {
	t.Helper()
	store := &spyStore{Store: over, released: make(chan int, 100), completed: make(chan int, 100), watched: make(chan int, 100)}
	broker := broker.New(store, broker.WithRules(filter.Compile))
	t.Cleanup(broker.Close)
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), broker, 10)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	responses := response.NewTracker(logger)
	config := compat.Config{
		Broker: broker, Responses: responses, Calls: obs.NewCalls(metrics, logger), Metrics: metrics,
		Next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }), Authorizer: access.AllowAll{},
	}
	for _, c := range change {
		c(&config)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: compat.New(config), ConnContext: compat.Spelled, MaxHeaderBytes: 512 << 10, ReadHeaderTimeout: patience}
	var served sync.WaitGroup
	served.Go(func() { _ = server.Serve(compat.NewListener(listener)) })
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		served.Wait()
		responses.Wait()
	})
	s := &stand{t: t, broker: broker, store: store, base: "http://" + listener.Addr().String(), client: &http.Client{Transport: transport}}
	s.create(semantics.QueueKind, "orders", semantics.Options{})
	return s
}

func (s *stand) create(kind semantics.Kind, name string, options semantics.Options, given ...string) {
	s.t.Helper()
	if _, err := s.broker.CreateEntity(s.t.Context(), kind, name, options, given); err != nil {
		s.t.Fatal(err)
	}
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   string
}

// broker returns the broker properties of an answer.
func (a answer) broker(t *testing.T) map[string]any {
	t.Helper()
	var properties map[string]any
	if err := json.Unmarshal([]byte(a.header.Get("BrokerProperties")), &properties); err != nil {
		t.Fatalf("broker properties: %v in %d %v %s", err, a.status, a.header, a.body)
	}
	return properties
}

// call makes a request; pairs are headers, written as they are given.
func (s *stand) call(method, path, body string, pairs ...string) answer {
	s.t.Helper()
	request, err := http.NewRequestWithContext(s.t.Context(), method, s.base+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for i := 0; i < len(pairs); i += 2 {
		request.Header[pairs[i]] = append(request.Header[pairs[i]], pairs[i+1])
	}
	response, err := s.client.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(text)}
}

// want makes a request that has to have a status.
func (s *stand) want(status int, method, path, body string, pairs ...string) answer {
	s.t.Helper()
	a := s.call(method, path, body, pairs...)
	if a.status != status {
		s.t.Fatalf("%s %s: got %d %s, want %d", method, path, a.status, a.body, status)
	}
	return a
}

// send sends one message over the native API.
func (s *stand) send(m *semantics.Message) {
	s.t.Helper()
	if _, err := s.broker.Send(s.t.Context(), semantics.ToQueue("orders"), []*semantics.Message{m}); err != nil {
		s.t.Fatal(err)
	}
}

// stored peeks at the messages of a source.
func (s *stand) stored(path string) []*semantics.Received {
	s.t.Helper()
	messages, err := s.broker.Peek(s.t.Context(), semantics.Source{Path: path}, 0, 250, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	return messages
}

// lockPath returns the path of the lock that an answer names.
func (s *stand) lockPath(a answer) string {
	s.t.Helper()
	path, ok := strings.CutPrefix(a.header.Get("Location"), s.base)
	if !ok {
		s.t.Fatalf("location %q", a.header.Get("Location"))
	}
	return path
}

// awaitCount waits for a number on a channel of the store.
func awaitCount(t *testing.T, what string, counts <-chan int) {
	t.Helper()
	select {
	case got := <-counts:
		if got != 1 {
			t.Errorf("%d messages were %s, want 1", got, what)
		}
	case <-time.After(patience):
		t.Fatalf("nothing was %s within %s", what, patience)
	}
}

// Turn is by Complete and Receive, with what they do here.
func (s *spyStore) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
