package proxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// patience bounds every wait for something that must happen.
const patience = 2 * time.Minute

const orders = "queues/orders"

// store is what a sidecar needs of a store.
type store interface {
	semantics.Store
	semantics.Checker
}

// sidecar is a running Proxy with a client on each wire, and the queue "orders".
type sidecar struct {
	t        *testing.T
	broker   *broker.Broker
	proxy    *proxy.Proxy
	log      *syncbuf.Buffer
	stop     context.CancelFunc
	done     chan struct{} // closed when Run has returned
	err      error         // what Run returned
	http     *http.Client
	conn     *grpc.ClientConn
	shared   grpc.ClientConnInterface // calls of the Go client share a stream
	messages sidebusv1.MessagesClient
	sessions sidebusv1.SessionsClient
	admin    sidebusv1.AdminClient

	base    string                     // of the URLs of the HTTP API
	tokenOf func(rule string) string   // of a sidecar that checks credentials
	as      func(rule string) *sidecar // with the connections of a caller that has the claims of a rule
}

// start runs a sidecar over store until the test ends.
func start(t *testing.T, over store, change ...func(*proxy.Config)) *sidecar {
	t.Helper()
	s := launch(t, over, change...)
	wait(t, "start", s.proxy.Started())
	mustPut(t, s, "/v1/queues/orders", `{}`)
	return s
}

// launch runs a sidecar and does not wait for the store to be fit.
func launch(t *testing.T, over store, change ...func(*proxy.Config)) *sidecar {
	t.Helper()
	return launchBroker(t, broker.New(over, broker.WithRules(filter.Compile)), over, change...)
}

func launchBroker(t *testing.T, broker *broker.Broker, over store, change ...func(*proxy.Config)) *sidecar {
	t.Helper()
	config := proxy.Config{HTTPAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0"}
	for _, c := range change {
		c(&config)
	}
	s := &sidecar{t: t, broker: broker, log: &syncbuf.Buffer{}, done: make(chan struct{}), tokenOf: tokenOf}
	t.Cleanup(s.broker.Close)
	logger := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var err error
	registry := prometheus.NewRegistry()
	if s.proxy, err = proxy.New(config, s.broker, over, logger, registry); err != nil {
		t.Fatal(err)
	}
	var ctx context.Context
	ctx, s.stop = context.WithCancel(t.Context())
	go func() {
		defer close(s.done)
		s.err = s.proxy.Run(ctx)
	}()
	t.Cleanup(func() {
		s.stop()
		wait(t, "end of Run", s.done)
		allGivenBack(t, registry)
	})
	select {
	case <-s.proxy.Opened():
	case <-s.done:
		select {
		case <-s.proxy.Opened(): // it ended later
		default:
			t.Fatalf("Run: %v", s.err)
		}
	}
	s.base, s.as = "http://"+s.proxy.HTTPAddr().String(), func(string) *sidecar { return s }
	transport := &http.Transport{}
	s.http = &http.Client{Transport: transport}
	t.Cleanup(transport.CloseIdleConnections)
	s.conn = dial(t, s.proxy.GRPCAddr().String())
	s.shared = multiplexed(t, s.proxy)
	s.messages, s.sessions = sidebusv1.NewMessagesClient(s.conn), sidebusv1.NewSessionsClient(s.conn)
	s.admin = sidebusv1.NewAdminClient(s.conn)
	return s
}

// allGivenBack checks that a sidecar that has stopped holds no memory and no connections any more, as its metrics have
// it.
func allGivenBack(t *testing.T, registry *prometheus.Registry) {
	t.Helper()
	var held []string
	defer func() {
		if len(held) > 0 {
			t.Log(held)
		}
	}()
	eventually(t, "all memory and connections are given back", func() bool {
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		held = nil
		for _, family := range families {
			if !slices.Contains([]string{"sidebus_request_memory_bytes", "sidebus_answer_memory_bytes", "sidebus_connections"}, family.GetName()) {
				continue
			}
			for _, metric := range family.GetMetric() {
				if metric.GetGauge().GetValue() != 0 {
					held = append(held, family.GetName()+" "+metric.String())
				}
			}
		}
		return len(held) == 0
	})
}

func dial(t *testing.T, target string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()))
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func wait(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		t.Fatalf("%s did not happen within %s", what, patience)
	}
}

// answer is what came over HTTP.
type answer struct {
	status int
	header http.Header
	body   string
}

func (a answer) reason(t *testing.T) (reason, field string) {
	t.Helper()
	var body struct {
		Reason    string
		Message   string
		Retryable *bool
		Details   map[string]string
	}
	if err := json.Unmarshal([]byte(a.body), &body); err != nil {
		t.Fatalf("answer %d is no error body: %v\n%s", a.status, err, a.body)
	}
	if body.Message == "" || strings.Contains(body.Message, "proto:") || body.Retryable == nil {
		t.Errorf("error body is not what it should be: %s", a.body)
	}
	return body.Reason, body.Details["field"]
}

// call makes one request to the JSON API.
func (s *sidecar) call(t *testing.T, method, path, body string) answer {
	t.Helper()
	a := s.request(t, method, "http://"+s.proxy.HTTPAddr().String()+path, body)
	checkDocumented(t, method, path, a.status)
	return a
}

// ask makes one request to the admin address.
func (s *sidecar) ask(t *testing.T, method, path string) answer {
	t.Helper()
	return s.request(t, method, "http://"+s.proxy.AdminAddr().String()+path, "")
}

func (s *sidecar) request(t *testing.T, method, url, body string) answer {
	t.Helper()
	return s.exchange(t, newRequest(t, method, url, body))
}

func newRequest(t *testing.T, method, url, body string) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	return request
}

// exchange makes a request that is prepared and reads the answer to its end, which in the native API is a newline.
func (s *sidecar) exchange(t *testing.T, request *http.Request) answer {
	t.Helper()
	response, err := s.http.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close() //nolint:errcheck // only read from
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	native := strings.HasPrefix(request.URL.Path, "/v1") && response.Header.Get("Content-Type") == "application/json"
	body, ended := strings.CutSuffix(string(text), "\n")
	switch {
	case !native:
		body = string(text)
	case !ended && body != "": // HEAD has none
		t.Errorf("%s %s: the answer does not end with a newline: %s", request.Method, request.URL, body)
	}
	return answer{response.StatusCode, response.Header, body}
}

func mustPut(t *testing.T, s *sidecar, path, body string) {
	t.Helper()
	if a := s.call(t, http.MethodPut, path, body); a.status != http.StatusOK {
		t.Fatalf("PUT %s: %d %s", path, a.status, a.body)
	}
}

// mustPatch changes options of "orders".
func mustPatch(t *testing.T, s *sidecar, body string) {
	t.Helper()
	if a := s.call(t, http.MethodPatch, "/v1/queues/orders", body); a.status != http.StatusOK {
		t.Fatalf("PATCH %s: %d %s", body, a.status, a.body)
	}
}

// eventuallyMeasured waits for a line among the metrics; a call is recorded after its answer.
func (s *sidecar) eventuallyMeasured(t *testing.T, want string) {
	t.Helper()
	eventually(t, want, func() bool { return strings.Contains(s.ask(t, http.MethodGet, "/metrics").body, want+"\n") })
}

// eventuallyCounts waits until the series of a counter that have all the labels sum up to want.
func (s *sidecar) eventuallyCounts(t *testing.T, want int, name string, labels ...string) {
	t.Helper()
	sum := 0.0
	defer func() {
		if t.Failed() {
			t.Logf("%s %v: the last sum was %v", name, labels, sum)
		}
	}()
	eventually(t, fmt.Sprint(name, labels, " ", want), func() bool {
		sum = s.sum(t, name, labels...)
		return sum == float64(want)
	})
}

// sum adds up the series of a metric that have all the labels.
func (s *sidecar) sum(t *testing.T, name string, labels ...string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(s.ask(t, http.MethodGet, "/metrics").body) {
		series, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		is, rest, _ := strings.Cut(series, "{")
		if is != name || slices.ContainsFunc(labels, func(label string) bool { return !strings.Contains(rest, label) }) {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		sum += n
	}
	return sum
}

// post calls a verb on the queue "orders" and gives the body of a good answer.
func (s *sidecar) post(t *testing.T, verb, body string) string {
	t.Helper()
	a := s.call(t, http.MethodPost, "/v1/queues/orders/messages:"+verb, body)
	if a.status != http.StatusOK {
		t.Fatalf("%s: %d %s", verb, a.status, a.body)
	}
	return a.body
}

// send stores one message in "orders".
func (s *sidecar) send(t *testing.T, text string) {
	t.Helper()
	_, err := s.messages.Send(t.Context(), &sidebusv1.SendRequest{
		Target: orders, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: text}}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// receive takes what is in "orders" now.
func (s *sidecar) receive(t *testing.T) []*sidebusv1.ReceivedMessage {
	t.Helper()
	response, err := s.messages.Receive(t.Context(), receiveNow())
	if err != nil {
		t.Fatal(err)
	}
	return response.GetMessages()
}

func receiveNow() *sidebusv1.ReceiveRequest {
	return &sidebusv1.ReceiveRequest{Source: orders, MaxMessages: proto.Int32(1000), MaxWait: &durationpb.Duration{}}
}

func (s *sidecar) runtime(t *testing.T) *sidebusv1.QueueRuntime {
	t.Helper()
	counts, err := s.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: orders})
	if err != nil {
		t.Fatal(err)
	}
	counts.AccessedAt = nil // a refused call may count as use
	return counts
}

// infoOf finds the ErrorInfo of a gRPC failure.
func infoOf(t *testing.T, err error) *errdetails.ErrorInfo {
	t.Helper()
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	t.Fatalf("%v has no ErrorInfo", err)
	return nil
}

// spyStore is a memstore whose steps a test can watch, hold up and break.
type spyStore struct {
	*memstore.Store

	// beforeReceive, when set, runs before each receive. The receive itself then goes on even if the caller went away.
	beforeReceive func(ctx context.Context)
	// onPeek, when set, runs before each peek.
	onPeek func()
	// beforeAccept is as beforeReceive for what accepts sessions.
	beforeAccept func(ctx context.Context)
	// onComplete, when set, runs before each completion.
	onComplete func()

	closed    chan struct{} // of each CloseSession that succeeded
	released  chan int      // of each Release, the number of messages that were given back
	completed chan int      // of each Complete, the number of messages that were removed

	mu      sync.Mutex
	checkup error // what Check fails with
	outage  error // what Receive fails with
}

func newSpyStore() *spyStore {
	return &spyStore{
		Store: memstore.New(), closed: make(chan struct{}, 100), released: make(chan int, 100), completed: make(chan int, 100),
	}
}

func (s *spyStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if s.beforeReceive != nil {
		s.beforeReceive(ctx)
		ctx = context.WithoutCancel(ctx)
	}
	s.mu.Lock()
	outage := s.outage
	s.mu.Unlock()
	if outage != nil {
		return semantics.Batch{}, outage
	}
	return s.Store.Receive(ctx, source, limit, register)
}

func (s *spyStore) CompleteAndReceive(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register) (semantics.NextBatch, error) {
	return semantics.CompleteThenReceive(ctx, s, source, tokens, limit, register)
}

func (s *spyStore) ReceiveByNumber(ctx context.Context, source semantics.Source, state semantics.State, numbers []int64) ([]*semantics.Received, error) {
	if s.beforeReceive != nil {
		s.beforeReceive(ctx)
		ctx = context.WithoutCancel(ctx)
	}
	return s.Store.ReceiveByNumber(ctx, source, state, numbers)
}

func (s *spyStore) Peek(ctx context.Context, source semantics.Source, from int64, limit int, show semantics.Show) ([]*semantics.Received, error) {
	if s.onPeek != nil {
		s.onPeek()
	}
	return s.Store.Peek(ctx, source, from, limit, show)
}

func (s *spyStore) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	if s.beforeAccept != nil {
		s.beforeAccept(ctx)
		ctx = context.WithoutCancel(ctx)
	}
	return s.Store.AcceptSession(ctx, path, id)
}

func (s *spyStore) AcceptNextSession(ctx context.Context, path string, register semantics.Register) (*semantics.Session, time.Duration, error) {
	if s.beforeAccept != nil {
		s.beforeAccept(ctx)
		ctx = context.WithoutCancel(ctx)
	}
	return s.Store.AcceptNextSession(ctx, path, register)
}

func (s *spyStore) CloseSession(ctx context.Context, source semantics.Source) error {
	err := s.Store.CloseSession(ctx, source)
	if err == nil {
		s.closed <- struct{}{}
	}
	return err
}

func (s *spyStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	codes, err := s.Store.Release(ctx, source, tokens)
	s.released <- done(codes)
	return codes, err
}

func (s *spyStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if s.onComplete != nil {
		s.onComplete()
	}
	codes, err := s.Store.Complete(ctx, source, tokens)
	s.completed <- done(codes)
	return codes, err
}

func done(codes []semantics.Code) (n int) {
	for _, code := range codes {
		if code == "" {
			n++
		}
	}
	return n
}

func (s *spyStore) Check(ctx context.Context) (semantics.Health, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.checkup != nil {
		return semantics.Health{}, s.checkup
	}
	return s.Store.Check(ctx)
}

func (s *spyStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.checkup = err
}

// failReceives makes Receive fail, or succeed again.
func (s *spyStore) failReceives(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outage = err
}

var errDown = semantics.Errorf(semantics.StoreUnavailable, "the store is down")

// awaitCount waits for a number on a channel of a spyStore.
func awaitCount(t *testing.T, what string, counts <-chan int, want int) {
	t.Helper()
	select {
	case got := <-counts:
		if got != want {
			t.Errorf("%s %d messages, want %d", what, got, want)
		}
	case <-time.After(patience):
		t.Fatalf("nothing was %s within %s", what, patience)
	}
}

// eventually asks again until it is true.
func eventually(t *testing.T, what string, isTrue func() bool) {
	t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !isTrue() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

var errStop = errors.New("stop")

// Turn is by Complete and Receive, with what they do here.
func (s *spyStore) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
