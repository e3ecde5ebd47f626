package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// served is a sidecar over a store in memory, or what passes for one.
type served struct {
	grpc, http string
	api        *client.Client
	broker     *broker.Broker // nil of a fake
}

// verbsInTurn skips, with -short, a test in which one verb runs after the other. The race detector, which runs with
// -short, finds nothing in them, and takes about a second to parse each command line.
func verbsInTurn(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("one verb runs after the other")
	}
}

// serveMemory runs a real sidecar with the queue "orders" until the test ends.
func serveMemory(t *testing.T) *served {
	t.Helper()
	store := memstore.New()
	broker := broker.New(store, broker.WithRules(filter.Compile))
	t.Cleanup(broker.Close)
	const free = "127.0.0.1:0"
	sidecar, err := proxy.New(proxy.Config{HTTPAddr: free, GRPCAddr: free, AdminAddr: free}, broker, store,
		slog.New(slog.DiscardHandler), prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		if err := sidecar.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		stop()
		running.Wait()
	})
	<-sidecar.Started()
	s := &served{grpc: sidecar.GRPCAddr().String(), http: sidecar.HTTPAddr().String(), broker: broker}
	s.connect(t)
	s.ok(t, "entity", "create", "orders")
	return s
}

// fake answers calls in place of a sidecar, for what a real one does too rarely.
type fake struct {
	sidebusv1.UnimplementedMessagesServer
	sidebusv1.UnimplementedSessionsServer
	sidebusv1.UnimplementedAdminServer

	send     func(*sidebusv1.SendRequest) (*sidebusv1.SendResponse, error)
	purge    func(*sidebusv1.PurgeRequest) (*sidebusv1.PurgeResponse, error)
	resubmit func(*sidebusv1.ResubmitRequest) (*sidebusv1.ResubmitResponse, error)
	complete func(*sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error)
	counts   *sidebusv1.QueueRuntime
	received []*sidebusv1.ReceivedMessage
	released chan []string
	list     func(*sidebusv1.SessionsListRequest) (*sidebusv1.SessionsListResponse, error)
	renewed  chan string // the tokens of renewals; a send blocks
	close    func() error
}

func (f *fake) List(_ context.Context, r *sidebusv1.SessionsListRequest) (*sidebusv1.SessionsListResponse, error) {
	return f.list(r)
}

func (f *fake) Accept(context.Context, *sidebusv1.SessionsAcceptRequest) (*sidebusv1.SessionsAcceptResponse, error) {
	return &sidebusv1.SessionsAcceptResponse{Session: &sidebusv1.Session{SessionId: "s", LockToken: "lock"}}, nil
}

func (f *fake) RenewLock(ctx context.Context, r *sidebusv1.SessionsRenewLockRequest) (*sidebusv1.SessionsRenewLockResponse, error) {
	select {
	case f.renewed <- r.GetLockToken():
	case <-ctx.Done():
	}
	return nil, statusOf(semantics.Errorf(semantics.StoreUnavailable, "the store is away"))
}

func (f *fake) Close(context.Context, *sidebusv1.SessionsCloseRequest) (*sidebusv1.SessionsCloseResponse, error) {
	return &sidebusv1.SessionsCloseResponse{}, f.close()
}

func (f *fake) GetQueue(context.Context, *sidebusv1.GetQueueRequest) (*sidebusv1.Queue, error) {
	return &sidebusv1.Queue{Name: "tales", LockDuration: durationpb.New(30 * time.Millisecond)}, nil
}

func (f *fake) Send(_ context.Context, r *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
	return f.send(r)
}

func (f *fake) Purge(_ context.Context, r *sidebusv1.PurgeRequest) (*sidebusv1.PurgeResponse, error) {
	return f.purge(r)
}

func (f *fake) Resubmit(_ context.Context, r *sidebusv1.ResubmitRequest) (*sidebusv1.ResubmitResponse, error) {
	return f.resubmit(r)
}

func (f *fake) Receive(context.Context, *sidebusv1.ReceiveRequest) (*sidebusv1.ReceiveResponse, error) {
	if f.renewed != nil { // a receive that waits for as long as two renewals take
		<-f.renewed
		<-f.renewed
	}
	return &sidebusv1.ReceiveResponse{Messages: f.received}, nil
}

func (f *fake) Complete(_ context.Context, r *sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error) {
	return f.complete(r)
}

func (f *fake) Release(_ context.Context, r *sidebusv1.ReleaseRequest) (*sidebusv1.SettleResponse, error) {
	f.released <- r.GetLockTokens()
	return &sidebusv1.SettleResponse{}, nil
}

func (f *fake) GetQueueRuntime(context.Context, *sidebusv1.GetQueueRuntimeRequest) (*sidebusv1.QueueRuntime, error) {
	return f.counts, nil
}

func serveFake(t *testing.T, f *fake) *served {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	sidebusv1.RegisterMessagesServer(server, f)
	sidebusv1.RegisterSessionsServer(server, f)
	sidebusv1.RegisterAdminServer(server, f)
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		running.Wait()
	})
	return &served{grpc: listener.Addr().String()}
}

func (s *served) connect(t *testing.T) {
	t.Helper()
	api, err := client.New("passthrough:///"+s.grpc, s.grpc, time.Minute, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	s.api = api
}

// outcome is what a verb did.
type outcome struct {
	code           int
	stdout, stderr string
}

// verb runs a verb with a terminal of the test's making.
func (s *served) verb(t *testing.T, change func(*terminal.Streams), args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	to := terminal.Streams{Stdin: strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, ProgressEvery: time.Hour}
	if change != nil {
		change(&to)
	}
	code := cli.Run(t.Context(), &Grammar{}, append(slices.Clone(args), "--grpc-addr", s.grpc), to)
	return outcome{code, stdout.String(), stderr.String()}
}

// ok runs a verb that must succeed and gives what it printed.
func (s *served) ok(t *testing.T, args ...string) string {
	t.Helper()
	got := s.verb(t, nil, args...)
	if got.code != cli.Clean {
		t.Fatalf("sidebus %q: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return got.stdout
}

// wants checks exit code and pieces of both outputs together.
func (o outcome) wants(t *testing.T, code int, pieces ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d", o.code, code)
	}
	for _, piece := range pieces {
		if !strings.Contains(o.stdout+o.stderr, piece) {
			t.Errorf("it does not say %q", piece)
		}
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", o.stdout, o.stderr)
	}
}

func typing(text string) func(*terminal.Streams) {
	return func(to *terminal.Streams) { to.Stdin, to.CanAsk = strings.NewReader(text), true }
}

func piping(text string) func(*terminal.Streams) {
	return func(to *terminal.Streams) { to.Stdin = strings.NewReader(text) }
}

// decoded reads lines of JSON.
func decoded(t *testing.T, text string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(text) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		all = append(all, one)
	}
	return all
}

// peeked gives the texts in a queue.
func (s *served) peeked(t *testing.T, args ...string) []string {
	t.Helper()
	var texts []string
	for _, m := range decoded(t, s.ok(t, append([]string{"peek", "--max=0", "-o", "json"}, args...)...)) {
		text, _ := m["text"].(string)
		texts = append(texts, text)
	}
	return texts
}

func (s *served) wantTexts(t *testing.T, want []string, args ...string) {
	t.Helper()
	if got := s.peeked(t, args...); !slices.Equal(got, want) {
		t.Errorf("in %q: got %q, want %q", args, got, want)
	}
}

// take receives n messages under lock.
func (s *served) take(t *testing.T, n int32) []*sidebusv1.ReceivedMessage {
	t.Helper()
	answer, err := s.api.Receive(t.Context(), &sidebusv1.ReceiveRequest{
		Source: "queues/orders", MaxMessages: proto.Int32(n), MaxWait: &durationpb.Duration{},
	})
	if err != nil || len(answer.GetMessages()) != int(n) {
		t.Fatalf("receive: got %v, %v; want %d messages", answer, err, n)
	}
	return answer.GetMessages()
}

func tokens(messages []*sidebusv1.ReceivedMessage) []string {
	var all []string
	for _, m := range messages {
		all = append(all, m.GetLockToken())
	}
	return all
}

// deadLetter sends texts and dead-letters them.
func (s *served) deadLetter(t *testing.T, reason string, texts ...string) {
	t.Helper()
	s.ok(t, append([]string{"send", "orders"}, texts...)...)
	_, err := s.api.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
		Source: "queues/orders", LockTokens: tokens(s.take(t, int32(len(texts)))), Reason: &reason,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// deadLetterRequest dead-letters messages of the queue orders.
func deadLetterRequest(locks []string) *sidebusv1.DeadLetterRequest {
	return &sidebusv1.DeadLetterRequest{Source: "queues/orders", LockTokens: locks, Reason: proto.String("Late")}
}
