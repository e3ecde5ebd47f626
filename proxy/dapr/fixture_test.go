package dapr

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	proto "github.com/dapr/dapr/pkg/proto/components/v1"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// patience bounds what is waited for over sockets, where it is not known when nothing comes any more.
const patience = 2 * time.Minute

// pliantStore fails when it is told to.
type pliantStore struct {
	*memstore.Store

	isDown atomic.Bool                   // every call that is made below fails
	loses  atomic.Int64                  // settlements whose answers are lost
	panics atomic.Int64                  // makings of entities that panic
	holds  atomic.Pointer[chan struct{}] // completions wait for it
}

func (s *pliantStore) down() error {
	if s.isDown.Load() {
		e := semantics.Errorf(semantics.StoreUnavailable, "it is down")
		e.RetryAfter = 100 * time.Millisecond
		return e
	}
	return nil
}

func (s *pliantStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if err := s.down(); err != nil {
		return semantics.Batch{}, err
	}
	return s.Store.Receive(ctx, source, limit, register)
}

func (s *pliantStore) GetEntity(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error) {
	if err := s.down(); err != nil {
		return semantics.Entity{}, err
	}
	return s.Store.GetEntity(ctx, kind, path)
}

func (s *pliantStore) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if s.panics.Add(-1) >= 0 {
		panic("told to")
	}
	if err := s.down(); err != nil {
		return semantics.Entity{}, false, err
	}
	return s.Store.CreateEntity(ctx, kind, path, options)
}

func (s *pliantStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.down(); err != nil {
		return nil, err
	}
	if hold := s.holds.Load(); hold != nil {
		<-*hold
	}
	codes, err := s.Store.Complete(ctx, source, tokens)
	if s.loses.Add(-1) >= 0 {
		e := semantics.Errorf(semantics.StoreUnavailable, "the answer is lost").With(semantics.DetailOutcome, semantics.OutcomeUnknown)
		return nil, e
	}
	return codes, err
}

func (s *pliantStore) Abandon(ctx context.Context, source semantics.Source, tokens []semantics.LockToken, options semantics.AbandonOptions) ([]semantics.Code, error) {
	if err := s.down(); err != nil {
		return nil, err
	}
	return s.Store.Abandon(ctx, source, tokens, options)
}

func (s *pliantStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if err := s.down(); err != nil {
		return nil, err
	}
	return s.Store.Release(ctx, source, tokens)
}

// bed is a Server over a store in memory.
type bed struct {
	*broker.Broker

	t        *testing.T
	store    *pliantStore
	server   *Server
	registry *prometheus.Registry
	log      *syncbuf.Buffer
	config   Config
	listener *pipeListener // in a bubble
	inBubble bool
}

// folder makes a folder with a short path, as sockets need it.
func folder(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "sb") //nolint:usetesting // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	return path
}

func newBed(t *testing.T, change ...func(*Config)) *bed {
	t.Helper()
	b := &bed{t: t, store: &pliantStore{Store: memstore.New()}, log: &syncbuf.Buffer{}}
	b.config = Config{Socket: filepath.Join(folder(t), "sidebus.sock"), MaxMessage: 16 << 20}
	for _, c := range change {
		c(&b.config)
	}
	b.Broker = broker.New(b.store, broker.WithRules(filter.Compile))
	b.build()
	return b
}

// build creates the Server, again after a stop.
func (b *bed) build() {
	b.t.Helper()
	b.registry = prometheus.NewRegistry()
	metrics, err := obs.NewMetrics(b.registry, b.Broker, 10)
	b.ok(err)
	logger := slog.New(slog.NewTextHandler(b.log, nil))
	b.server, err = New(b.config, b.Broker, metrics, obs.NewCalls(metrics, logger), logger)
	b.ok(err)
}

func (b *bed) ok(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// onSockets serves over real sockets for as long as the test lives.
func onSockets(t *testing.T, change ...func(*Config)) *bed {
	t.Helper()
	b := newBed(t, change...)
	t.Cleanup(b.Broker.Close)
	t.Cleanup(b.serve())
	return b
}

// serve serves over real sockets until what it gives is called.
func (b *bed) serve() (stop func()) {
	b.t.Helper()
	b.ok(b.server.Open(b.t.Context()))
	server, over := b.server, make(chan error, 1)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	go func() { over <- server.Serve(ctx) }()
	var once sync.Once
	return func() {
		once.Do(func() {
			cancel()
			server.Stop(context.WithoutCancel(b.t.Context()))
			if err := <-over; err != nil {
				b.t.Errorf("Serve: %v", err)
			}
		})
	}
}

// inBubble runs a test in a bubble, where time passes only when all goroutines wait. The first socket is served over
// pipes.
func inBubble(t *testing.T, test func(t *testing.T, b *bed), change ...func(*Config)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t, change...)
		b.inBubble = true
		stop := b.servePipes()
		defer func() {
			stop()
			b.Broker.Close()
		}()
		test(t, b)
	})
}

func (b *bed) servePipes() (stop func()) {
	server := b.server
	server.endpoints[0].grpc = server.server(server.endpoints[0].component)
	b.listener = &pipeListener{incomes: make(chan net.Conn), closed: make(chan struct{})}
	over := make(chan struct{})
	go func() {
		defer close(over)
		_ = server.endpoints[0].grpc.Serve(b.listener)
	}()
	return sync.OnceFunc(func() {
		server.stop.Do(func() { close(server.stopping) })
		synctest.Wait()
		server.endpoints[0].grpc.Stop()
		<-over
	})
}

// pipeListener accepts pipes.
type pipeListener struct {
	incomes chan net.Conn
	closed  chan struct{}
	once    sync.Once
}

func (l *pipeListener) dial(ctx context.Context, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.incomes <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.incomes:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// fakeRuntime stands for Dapr's: one Component resource of it, with a connection of its own.
type fakeRuntime struct {
	proto.PubSubClient

	b    *bed
	conn *grpc.ClientConn
	ctx  context.Context //nolint:containedctx // of its calls
}

// runtime connects to a socket, the first one when path is "", as a Component resource of a name.
func (b *bed) runtime(name, path string) *fakeRuntime {
	b.t.Helper()
	target, options := "unix://"+path, []grpc.DialOption{
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
	}
	if path == "" {
		target = "unix://" + b.config.Socket
	}
	if b.inBubble {
		target = "passthrough:///pipe"
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return b.listener.dial(ctx, address)
		}))
	}
	conn, err := grpc.NewClient(target, options...)
	b.ok(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(b.t.Context()))
	b.t.Cleanup(func() {
		cancel()
		_ = conn.Close()
	})
	return &fakeRuntime{PubSubClient: proto.NewPubSubClient(conn), b: b, conn: conn, ctx: metadata.AppendToOutgoingContext(ctx, instanceHeader, name)}
}

// begin connects and calls Init with metadata in pairs.
func (b *bed) begin(pairs ...string) *fakeRuntime {
	b.t.Helper()
	r := b.runtime("sb", "")
	b.ok(r.init(pairs...))
	return r
}

func (r *fakeRuntime) init(pairs ...string) error {
	properties := map[string]string{"consumerID": "app"}
	for name, value := range inPairs(pairs) {
		properties[name] = value
	}
	_, err := r.Init(r.ctx, &proto.PubSubInitRequest{Metadata: &proto.MetadataRequest{Properties: properties}})
	return err
}

func inPairs(pairs []string) map[string]string {
	m := map[string]string{}
	for pair := range slices.Chunk(pairs, 2) {
		m[pair[0]] = pair[1]
	}
	return m
}

func (r *fakeRuntime) publish(topic, data string, pairs ...string) error {
	_, err := r.Publish(r.ctx, &proto.PublishRequest{Topic: topic, PubsubName: "sb", Data: []byte(data), Metadata: inPairs(pairs)})
	return err
}

// send publishes bodies, which must be taken.
func (r *fakeRuntime) send(topic string, bodies ...string) {
	r.b.t.Helper()
	for _, body := range bodies {
		r.b.ok(r.publish(topic, body))
	}
}

// sendTo publishes bodies of a session.
func (r *fakeRuntime) sendTo(topic, session string, bodies ...string) {
	r.b.t.Helper()
	for _, body := range bodies {
		r.b.ok(r.publish(topic, body, "SessionId", session))
	}
}

// open opens a stream with metadata in pairs.
func (r *fakeRuntime) open(topic string, pairs ...string) (proto.PubSub_PullMessagesClient, context.CancelFunc) {
	r.b.t.Helper()
	ctx, cancel := context.WithCancel(r.ctx)
	r.b.t.Cleanup(cancel)
	stream, err := r.PullMessages(ctx)
	r.b.ok(err)
	r.b.ok(stream.Send(&proto.PullMessagesRequest{Topic: &proto.Topic{Name: topic, Metadata: inPairs(pairs)}}))
	return stream, cancel
}

// feed is a stream of messages.
type feed struct {
	*fakeRuntime

	stream proto.PubSub_PullMessagesClient
	cancel context.CancelFunc
	comes  chan *proto.PullMessagesResponse
	ended  chan error
	ids    map[string][]string // by body, of what came and was not answered
}

// subscribe opens a stream and reads what comes.
func (r *fakeRuntime) subscribe(topic string, pairs ...string) *feed {
	r.b.t.Helper()
	stream, cancel := r.open(topic, pairs...)
	f := &feed{
		fakeRuntime: r, stream: stream, cancel: cancel, comes: make(chan *proto.PullMessagesResponse, 10000), ended: make(chan error, 1),
		ids: map[string][]string{},
	}
	go func() {
		for {
			response, err := stream.Recv()
			if err != nil {
				f.ended <- err
				return
			}
			f.comes <- response
		}
	}()
	return f
}

// next waits for a message.
func (f *feed) next() *proto.PullMessagesResponse {
	f.b.t.Helper()
	select {
	case response := <-f.comes:
		f.note(response)
		return response
	case err := <-f.ended:
		f.b.t.Fatalf("the stream has ended: %v", err)
	case <-time.After(patience):
		f.b.t.Fatal("no message comes")
	}
	return nil
}

// bodies gives what has come, in a bubble.
func (f *feed) bodies() string {
	f.b.t.Helper()
	synctest.Wait()
	var all []string
	for {
		select {
		case response := <-f.comes:
			f.note(response)
			all = append(all, string(response.GetData()))
		case err := <-f.ended:
			f.b.t.Fatalf("the stream has ended: %v", err)
		default:
			return strings.Join(all, " ")
		}
	}
}

func (f *feed) note(response *proto.PullMessagesResponse) {
	body := string(response.GetData())
	f.ids[body] = append(f.ids[body], response.GetId())
}

// id returns the id under which a body came, of several the first that was not answered.
func (f *feed) id(body string) string {
	f.b.t.Helper()
	ids := f.ids[body]
	if len(ids) == 0 {
		f.b.t.Fatalf("%q has not come, or was answered", body)
	}
	f.ids[body] = ids[1:]
	return ids[0]
}

// wants compares what has come since, in a bubble.
func (f *feed) wants(bodies string) {
	f.b.t.Helper()
	if got := f.bodies(); got != bodies {
		f.b.t.Fatalf("got %q, want %q", got, bodies)
	}
}

// ack answers messages that came, by their bodies, with success.
func (f *feed) ack(bodies ...string) {
	f.b.t.Helper()
	for _, body := range bodies {
		f.b.ok(f.stream.Send(&proto.PullMessagesRequest{AckMessageId: f.id(body)}))
	}
}

// nack answers with a failure.
func (f *feed) nack(bodies ...string) {
	f.b.t.Helper()
	for _, body := range bodies {
		f.b.ok(f.stream.Send(&proto.PullMessagesRequest{AckMessageId: f.id(body), AckError: &proto.AckMessageError{Message: "no luck"}}))
	}
}

// pass lets time pass in a bubble.
func (b *bed) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// wantCounts compares the counts of a queue, or of the subscription "app" of a topic.
func (b *bed) wantCounts(path, want string) {
	b.t.Helper()
	if b.inBubble {
		synctest.Wait()
	}
	if got := b.counts(path); got != want {
		b.t.Errorf("%s: got %q, want %q", path, got, want)
	}
}

func (b *bed) counts(path string) string {
	b.t.Helper()
	kind := semantics.QueueKind
	if _, err := b.GetEntity(b.t.Context(), semantics.TopicKind, path); err == nil {
		kind, path = semantics.SubscriptionKind, semantics.SubscriptionPath(path, "app")
	}
	r, err := b.Runtime(b.t.Context(), kind, path)
	b.ok(err)
	return fmt.Sprintf("available %d locked %d dead %d", r.Available, r.Locked, r.DeadLetter)
}

// peek looks at the messages of a queue, or of the subscription "app" of a topic.
func (b *bed) peek(path string, sub semantics.SubQueue) []*semantics.Received {
	b.t.Helper()
	if _, err := b.GetEntity(b.t.Context(), semantics.TopicKind, path); err == nil {
		path = semantics.SubscriptionPath(path, "app")
	}
	messages, err := b.Peek(b.t.Context(), semantics.Source{Path: path, SubQueue: sub}, 0, 100, 0)
	b.ok(err)
	return messages
}

// wantLog looks for a text in what was logged.
func (b *bed) wantLog(text string) {
	b.t.Helper()
	if !strings.Contains(b.log.String(), text) {
		b.t.Errorf("no %q in the log:\n%s", text, b.log)
	}
}

// metric returns a measure, summed up over labels unless one is given as name=value.
func (b *bed) metric(name string, label ...string) float64 {
	b.t.Helper()
	families, err := b.registry.Gather()
	b.ok(err)
	sum := 0.0
	for _, family := range families {
		for _, m := range family.GetMetric() {
			isWanted := family.GetName() == name
			for _, l := range m.GetLabel() {
				isWanted = isWanted && (len(label) == 0 || slices.Contains(label, l.GetName()+"="+l.GetValue()))
			}
			if isWanted {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
			}
		}
	}
	return sum
}

// wantReason checks the reason that an error carries, and a text in its message.
func (b *bed) wantReason(err error, reason semantics.Code, text string) {
	b.t.Helper()
	got := ""
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			got = info.GetReason()
		}
	}
	if got != string(reason) || !strings.Contains(status.Convert(err).Message(), text) {
		b.t.Errorf("got %q: %v, want %s with %q", got, err, reason, text)
	}
}

// eventually asks in short intervals until the answer is yes, over sockets.
func (b *bed) eventually(holds func() bool) {
	b.t.Helper()
	end := time.NewTimer(patience)
	defer end.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !holds() {
		select {
		case <-look.C:
		case <-end.C:
			b.t.Fatalf("it does not come about; log:\n%s", b.log)
		}
	}
}

// twiceNamed names the Component resource twice, as Dapr's runtime does when it publishes a dead letter.
func twiceNamed(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, instanceHeader, "sb")
}

// kindOf returns the kind of an entity that can be received from, "" if it cannot be received from yet.
func (b *bed) kindOf(path string) string {
	if _, err := b.GetEntity(b.t.Context(), semantics.QueueKind, path); err == nil {
		return "queue"
	}
	if _, err := b.GetEntity(b.t.Context(), semantics.SubscriptionKind, semantics.SubscriptionPath(path, "app")); err == nil {
		return "topic"
	}
	return ""
}

// Turn is by Complete and Receive, with what they do here.
func (s *pliantStore) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	return semantics.TakeTurns(ctx, s, path, turns)
}
