package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// served is a sidecar over a store in memory, or what passes for one.
type served struct {
	grpc, http string
	api        *client.Client
}

// serveMemory runs a real sidecar with the queue "orders" until the test ends.
func serveMemory(t *testing.T) *served {
	t.Helper()
	store := memstore.New()
	broker := semantics.NewBroker(store)
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
	s := &served{grpc: sidecar.GRPCAddr().String(), http: sidecar.HTTPAddr().String()}
	s.connect(t)
	s.ok(t, "entity", "create", "orders")
	return s
}

// fake answers calls in place of a sidecar, for what a real one does too rarely.
type fake struct {
	sidebusv1.UnimplementedMessagesServer
	sidebusv1.UnimplementedAdminServer

	send     func(*sidebusv1.SendRequest) (*sidebusv1.SendResponse, error)
	purge    func(*sidebusv1.PurgeRequest) (*sidebusv1.PurgeResponse, error)
	resubmit func(*sidebusv1.ResubmitRequest) (*sidebusv1.ResubmitResponse, error)
	complete func(*sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error)
	counts   *sidebusv1.QueueRuntime
	received []*sidebusv1.ReceivedMessage
	released chan []string
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
	api, err := client.New("passthrough:///"+s.grpc, s.grpc, 20*time.Second)
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
func (s *served) verb(t *testing.T, change func(*terminal), args ...string) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	to := terminal{stdin: strings.NewReader(""), stdout: &stdout, stderr: &stderr, progressEvery: time.Hour}
	if change != nil {
		change(&to)
	}
	code := run(t.Context(), append(slices.Clone(args), "--grpc-addr", s.grpc), to)
	return outcome{code, stdout.String(), stderr.String()}
}

// ok runs a verb that must succeed and gives what it printed.
func (s *served) ok(t *testing.T, args ...string) string {
	t.Helper()
	got := s.verb(t, nil, args...)
	if got.code != exitClean {
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

func typing(text string) func(*terminal) {
	return func(to *terminal) { to.stdin, to.asks = strings.NewReader(text), true }
}

func piping(text string) func(*terminal) {
	return func(to *terminal) { to.stdin = strings.NewReader(text) }
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

func TestSendForms(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	table := s.ok(t, "send", "orders", "one", "two words", "--message-id=")
	if want := "SEQUENCE  MESSAGE ID"; !strings.HasPrefix(table, want) || strings.Count(table, "  sent\n") != 2 {
		t.Errorf("got %q, want a header and two rows", table)
	}
	got := decoded(t, s.ok(t, "send", "queues/orders", "three", "--message-id=m-3", "-o", "json"))
	if len(got) != 1 || got[0]["sequenceNumber"] != "3" || got[0]["messageId"] != "m-3" || got[0]["deduplicated"] != false {
		t.Errorf("got %v", got)
	}
	s.verb(t, piping("from stdin\n"), "send", "orders").wants(t, exitClean, "sent")
	s.verb(t, piping("from -"), "send", "orders", "-").wants(t, exitClean, "sent")
	s.verb(t, typing("typed"), "send", "orders").wants(t, exitClean, "Ctrl-D")
	s.ok(t, "send", "orders", "--file", writeFile(t, "from a file"))
	s.wantTexts(t, []string{"one", "two words", "three", "from stdin\n", "from -", "typed", "from a file"}, "orders")

	s.ok(t, "send", "orders", "--json", `{"a":  1}`)
	s.verb(t, piping("\xff\x00"), "send", "orders").wants(t, exitClean, "sent")
	last := decoded(t, s.ok(t, "peek", "orders", "--from=8", "-o", "json"))
	if len(last) != 2 || last[0]["json"].(map[string]any)["a"] != 1.0 || last[1]["body"] != "/wA=" {
		t.Errorf("JSON and octets: got %v", last)
	}
	s.verb(t, nil, "send", "orders", "--json", "{").wants(t, exitFailure, "body 1 is not valid JSON; nothing was sent")
	s.verb(t, nil, "send", "orders", "-f", "/nowhere/at all").wants(t, exitFailure, "--file")
}

func TestSendFields(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "update", "orders", "--set", "defaultMessageTimeToLive=P7D")
	s.ok(t, "send", "orders", "x", "--subject=s", "--correlation-id=c", "--session-id=k", "--content-type=text/plain", "--reply-to=r",
		"--to=t", "--ttl=1.5h", "--property=n:int32=5", "-p", "big=7", "-p", "ratio=0.5", "-p", "yes=true", "-p", "none=null",
		"-p", "zip=01234", "-p", `quoted="5"`, "-p", "list=a,b=c", "-p", "wait:timespan=90s", "-p", "a:b:string=x")
	got := decoded(t, s.ok(t, "peek", "orders", "-o", "json"))[0]
	want := map[string]any{
		"subject": "s", "correlationId": "c", "sessionId": "k", "contentType": "text/plain", "replyTo": "r", "to": "t",
		"timeToLive": "5400s", "text": "x",
	}
	for name, value := range want {
		if got[name] != value {
			t.Errorf("%s: got %v, want %v", name, got[name], value)
		}
	}
	properties, err := json.Marshal(got["properties"])
	wanted := `{"a:b":"x","big":7,"list":"a,b=c","n":{"type":"int32","value":5},"none":null,"quoted":"5","ratio":0.5,` +
		`"wait":{"type":"timespan","value":"90s"},"yes":true,"zip":"01234"}`
	if err != nil || string(properties) != wanted {
		t.Errorf("properties: got %s, %v; want %s", properties, err, wanted)
	}
	s.verb(t, nil, "send", "orders", "later", "--in=1h").wants(t, exitClean, "scheduled for 20")
	s.verb(t, nil, "send", "orders", "then", "--at=2100-01-02T03:04:05+01:00").wants(t, exitClean, "scheduled for 2100-01-02T02:04:05Z")
	s.wantTexts(t, []string{"later", "then"}, "orders", "--state=scheduled")
	s.wantTexts(t, []string{"x"}, "orders", "--state=available,locked")
}

func TestSendLines(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	var input strings.Builder
	var want []string
	for i := range 1000 {
		line := strings.Repeat("x", i%97+1)
		want = append(want, line)
		input.WriteString(line + "\r\n")
		if i%100 == 0 {
			input.WriteString("\n")
		}
	}
	got := s.verb(t, func(to *terminal) {
		to.stdin, to.progressEvery = strings.NewReader(input.String()), time.Nanosecond
	}, "send", "orders", "--lines")
	got.wants(t, exitClean, "sent 1000 messages to queues/orders, up to line 1010, sequence numbers 1 to 1000,", "sidebus: sent 1000 messages, ", "/s in ")
	s.wantTexts(t, want, "orders")

	file := writeFile(t, "{\"a\":1}\n2\n\"three\"")
	if rows := decoded(t, s.ok(t, "send", "orders", "--lines", "--json", "--file", file, "-o", "json")); len(rows) != 3 || rows[2]["sequenceNumber"] != "1003" {
		t.Errorf("got %v, want a row for each line", rows)
	}
	s.verb(t, piping("1\n2\nthree\n4\n"), "send", "orders", "--lines", "--json").
		wants(t, exitFailure, "sent 2 messages to queues/orders, up to line 2", "line 3 is not valid JSON; it was not sent")
	s.verb(t, piping(""), "send", "orders", "--lines").wants(t, exitClean, "sent 0 messages")
	watched := s.verb(t, func(to *terminal) { to.stdin, to.isWatched = strings.NewReader("a\n"), true }, "send", "orders", "-l")
	watched.wants(t, exitClean, "sent 1 message ")
	if strings.Contains(watched.stdout, "\x1b") {
		t.Error("the summary is not plain")
	}
}

func TestSendLinesKeepsBatchesSmall(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	line := strings.Repeat("y", 100<<10)
	s.verb(t, piping(strings.Repeat(line+"\n", 5)), "send", "orders", "--lines").wants(t, exitClean, "sent 5 messages")
	s.verb(t, piping("fits\n"+strings.Repeat("z", 300<<10)+"\n"), "send", "orders", "--lines").
		wants(t, exitFailure, "sent 1 message to queues/orders, up to line 1", "MESSAGE_SIZE_EXCEEDED", "at line 2; nothing from line 2 on was sent")
}

func TestSendLinesSaysWhatWentOut(t *testing.T) {
	t.Parallel()
	lost := semantics.Errorf(semantics.StoreUnavailable, "the answer was lost").With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	calls := 0
	s := serveFake(t, &fake{send: func(r *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
		if calls++; calls > 1 {
			return nil, statusOf(lost)
		}
		answer := &sidebusv1.SendResponse{}
		for i := range r.GetMessages() {
			answer.Results = append(answer.Results, &sidebusv1.SendResponse_Result{SequenceNumber: int64(i + 1), Deduplicated: i == 0})
		}
		return answer, nil
	}})
	s.verb(t, piping(strings.Repeat("x\n", 150)), "send", "orders", "--lines").wants(t, exitFailure,
		"sent 100 messages to queues/orders, up to line 100, sequence numbers 2 to 100, 1 duplicate dropped",
		"STORE_UNAVAILABLE: the answer was lost; it may have taken effect", "lines 101 to 150 may have been sent")
}

func TestSignalEndsSendLines(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	input, typist := io.Pipe()
	defer input.Close()
	var stdout, stderr bytes.Buffer
	sent := writerFunc(func(p []byte) (int, error) {
		if bytes.Contains(p, []byte("sequenceNumber")) {
			cancel(interrupted{syscall.SIGINT})
		}
		return stdout.Write(p)
	})
	go func() { _, _ = io.WriteString(typist, "first\nsecond\n") }()
	code := run(ctx, []string{"send", "orders", "--lines", "-o", "json", "--grpc-addr", s.grpc}, terminal{stdin: input, stdout: sent, stderr: &stderr})
	outcome{code, stdout.String(), stderr.String()}.wants(t, 130, "sent 2 messages to queues/orders, up to line 2", "ended by a signal")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestReceiveGivesBackByDefault(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "send", "orders", "one", "two", "three")
	for range 2 {
		got := s.verb(t, nil, "receive", "orders", "--max=2")
		got.wants(t, exitClean, "gave back 2 messages uncounted")
		if rows := strings.Split(strings.TrimSpace(got.stdout), "\n"); len(rows) != 3 || !strings.HasSuffix(rows[1], "one") {
			t.Errorf("got %q", rows)
		}
	}
	got := decoded(t, s.ok(t, "receive", "orders", "--max=1000", "--release", "-o", "json"))
	if len(got) != 3 || got[0]["deliveryCount"] != 1.0 || got[0]["lockToken"] == "" {
		t.Errorf("got %v, want three messages, none of them counted", got)
	}
	s.wantTexts(t, []string{"one", "two", "three"}, "orders", "--state=available")
}

func TestReceiveAndWhatBecomesOfIt(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	var texts []string
	for range 250 {
		texts = append(texts, "x")
	}
	s.ok(t, append([]string{"send", "orders"}, texts...)...)
	if got := s.ok(t, "receive", "orders", "--complete", "--max=5000"); strings.Count(got, "SEQUENCE") != 1 || strings.Count(got, "\n") != 251 {
		t.Errorf("got %d lines, want one header and 250 rows", strings.Count(got, "\n"))
	}
	s.ok(t, "send", "orders", "a", "b", "c")
	s.ok(t, "receive", "orders", "--abandon")
	if got := decoded(t, s.ok(t, "receive", "orders", "--delete", "-o", "json")); len(got) != 1 || got[0]["deliveryCount"] != 2.0 || got[0]["lockToken"] != nil {
		t.Errorf("after an abandon: got %v, want a second delivery without a lock", got)
	}
	s.wantTexts(t, []string{"b", "c"}, "orders")

	_, err := s.api.Defer(t.Context(), &sidebusv1.DeferRequest{Source: "queues/orders", LockTokens: tokens(s.take(t, 1))})
	if err != nil {
		t.Fatal(err)
	}
	s.verb(t, nil, "receive", "orders", "--deferred=252").wants(t, exitClean, "b\n", "gave back 1 message")
	s.wantTexts(t, []string{"b"}, "orders", "--state=deferred")
	s.ok(t, "receive", "orders", "--number=253", "--complete")
	s.verb(t, nil, "receive", "orders", "--number=253,252").wants(t, exitFailure, "MESSAGE_NOT_FOUND")
	s.ok(t, "receive", "orders", "--deferred=252", "--complete")
	s.deadLetter(t, "Late", "dead")
	s.verb(t, nil, "receive", "orders", "--dlq", "--complete").wants(t, exitClean, "DEAD-LETTERED", "Late", "dead")
	s.verb(t, nil, "receive", "orders", "--dead-letter").wants(t, exitClean, "no messages in the dead-letter queue of queues/orders")
}

func TestReceiveThatCannotPrintGivesBack(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "send", "orders", "kept")
	broken := writerFunc(func([]byte) (int, error) { return 0, syscall.EPIPE })
	s.verb(t, func(to *terminal) { to.stdout = broken }, "receive", "orders", "--complete").wants(t, exitFailure, "writing the answer")
	s.wantTexts(t, []string{"kept"}, "orders", "--state=available")
}

func TestReceiveReportsLostLocks(t *testing.T) {
	t.Parallel()
	f := &fake{
		received: []*sidebusv1.ReceivedMessage{{SequenceNumber: 7, LockToken: proto.String("a")}, {SequenceNumber: 8, LockToken: proto.String("b")}},
		complete: func(*sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error) {
			return &sidebusv1.SettleResponse{Results: []*sidebusv1.SettleResponse_Result{
				{LockToken: "a"}, {LockToken: "b", Reason: proto.String("MESSAGE_LOCK_LOST")},
			}}, nil
		},
	}
	serveFake(t, f).verb(t, nil, "receive", "orders", "--complete", "--max=2").
		wants(t, exitFailure, "1 message not completed: MESSAGE_LOCK_LOST: 8")
}

func TestSignalEndsAReceiveThatWaits(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, interrupted{syscall.SIGTERM})
	defer cancel()
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"receive", "orders", "--wait=300s", "--grpc-addr", s.grpc}, terminal{stdout: &stdout, stderr: &stderr})
	outcome{code, stdout.String(), stderr.String()}.wants(t, 143, "ended by a signal: terminated")
}

func TestPeekPages(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	var texts []string
	for range 230 {
		texts = append(texts, "p")
	}
	s.ok(t, append([]string{"send", "orders"}, texts...)...)
	s.wantTexts(t, texts, "orders")
	got := s.verb(t, nil, "peek", "orders", "--from=3", "--max=120")
	got.wants(t, exitClean, "there are more; --from 123 goes on")
	if strings.Count(got.stdout, "available") != 120 || strings.Count(got.stdout, "STATE") != 1 {
		t.Errorf("got %d rows", strings.Count(got.stdout, "available"))
	}
	whole := s.verb(t, nil, "peek", "orders", "--max=230")
	if whole.wants(t, exitClean); whole.stderr != "" {
		t.Errorf("got the note %q though there is no more", whole.stderr)
	}
	s.take(t, 2)
	s.wantTexts(t, texts[:2], "orders", "--state=locked")
	s.verb(t, nil, "peek", "orders", "-n1").wants(t, exitClean, "locked")
}

func TestTableIsSafe(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "send", "orders", "a\tb\nc\x1b[31m"+strings.Repeat("é", 100), "--subject=s\u202e")
	got := s.ok(t, "peek", "orders")
	if !strings.Contains(got, `a\tb\nc\x1b[31m`) || !strings.Contains(got, `s\u202e`) || strings.Count(got, "\n") != 2 || !strings.HasSuffix(got, "é...\n") {
		t.Errorf("got %q", got)
	}
}

func TestDeadLetterVerbs(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "create", "other")
	s.deadLetter(t, "Late", "a", "b", "c")
	s.deadLetter(t, "Bad", "d", "e")
	if got := s.ok(t, "dlq", "orders", "count"); got != "5\n" {
		t.Errorf("count: got %q", got)
	}
	if got := s.ok(t, "dlq", "orders", "count", "-o", "json"); got != `{"deadLetterMessageCount":"5"}`+"\n" {
		t.Errorf("count as JSON: got %q", got)
	}
	s.verb(t, nil, "dlq", "orders", "list", "--max=1").wants(t, exitClean, "REASON", "Late", "--from 2")
	if got := decoded(t, s.ok(t, "dlq", "orders", "list", "-o", "json")); len(got) != 5 || got[4]["deadLetterReason"] != "Bad" {
		t.Errorf("list as JSON: got %v", got)
	}
	s.verb(t, nil, "dlq", "orders", "resubmit", "--number=1,99").
		wants(t, exitFailure, "stays: MESSAGE_NOT_FOUND", "resubmitted 1 message to queues/orders, 1 stay", "not resubmitted: MESSAGE_NOT_FOUND: 99")
	s.wantTexts(t, []string{"a"}, "orders")
	got := decoded(t, s.ok(t, "dlq", "orders", "resubmit", "--number=2", "--to=queues/other", "--new-ids", "-o", "json"))
	if len(got) != 1 || got[0]["sequenceNumber"] != "2" || got[0]["newSequenceNumber"] != "1" {
		t.Errorf("resubmit as JSON: got %v", got)
	}
	s.verb(t, nil, "dlq", "orders", "resubmit", "--filter=DeadLetterReason = 'Late'", "--to", "other").
		wants(t, exitClean, "resubmitted 1 message to queues/other")
	s.wantTexts(t, []string{"b", "c"}, "other")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--filter=no sql").wants(t, exitFailure, "FILTER_INVALID")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all").wants(t, exitUsage, "--yes")
	s.verb(t, typing("no\n"), "dlq", "orders", "resubmit", "--all").wants(t, exitFailure, "sends 2 dead letters of queues/orders to queues/orders", "not confirmed")
	s.verb(t, typing("y\n"), "dlq", "orders", "resubmit", "--all", "--keep-expiry", "--bypass-duplicates").wants(t, exitClean, "resubmitted 2 messages")
	s.verb(t, typing(""), "dlq", "orders", "resubmit", "--all").wants(t, exitClean, "resubmitted 0 messages")
	s.wantTexts(t, []string{"a", "d", "e"}, "orders")

	s.ok(t, "purge", "orders", "--yes")
	s.deadLetter(t, "Late", "f", "g", "h", "i")
	s.verb(t, nil, "dlq", "orders", "delete", "--number=99").wants(t, exitFailure, "99", "not removed: MESSAGE_NOT_FOUND: 99")
	first := decoded(t, s.ok(t, "dlq", "orders", "list", "-o", "json"))[0]["sequenceNumber"].(string)
	s.verb(t, nil, "dlq", "orders", "delete", "--number", first).wants(t, exitClean, "removed")
	s.verb(t, nil, "dlq", "orders", "delete", "--all").wants(t, exitUsage, "--yes")
	s.verb(t, typing("orders\n"), "dlq", "orders", "delete", "--all").wants(t, exitClean, "up to 3 messages", "removed 3 messages from the dead-letter queue of queues/orders")
	s.verb(t, nil, "dlq", "orders", "resubmit").wants(t, exitUsage, "--number, --filter or --all")
	s.verb(t, nil, "dlq", "orders", "delete").wants(t, exitUsage, "--number or --all")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all", "--number=1").wants(t, exitUsage, "--number")
}

func TestResubmitEndsWhenNothingMoves(t *testing.T) {
	t.Parallel()
	calls := 0
	s := serveFake(t, &fake{
		counts: &sidebusv1.QueueRuntime{DeadLetterMessageCount: 5},
		resubmit: func(*sidebusv1.ResubmitRequest) (*sidebusv1.ResubmitResponse, error) {
			calls++
			answer := &sidebusv1.ResubmitResponse{More: true, Results: []*sidebusv1.ResubmitResponse_Result{
				{SequenceNumber: 1, Reason: proto.String("ENTITY_FULL")},
			}}
			if calls == 1 {
				answer.Results = append(answer.Results, &sidebusv1.ResubmitResponse_Result{SequenceNumber: 2, NewSequenceNumber: proto.Int64(9)},
					&sidebusv1.ResubmitResponse_Result{SequenceNumber: 3, NewSequenceNumber: proto.Int64(8), Deduplicated: true})
			}
			return answer, nil
		},
	})
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all", "--yes").wants(t, exitFailure,
		"resubmitted 1 message to queues/orders, 1 duplicate dropped, 1 stay", "1 message not resubmitted: ENTITY_FULL: 1")
	if calls != 2 {
		t.Errorf("got %d calls, want 2", calls)
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	fill := func() {
		s.deadLetter(t, "Late", "dead")
		s.ok(t, "send", "orders", "a", "b")
		s.ok(t, "send", "orders", "--in=1h", "later")
	}
	fill()
	s.verb(t, nil, "purge", "orders").wants(t, exitUsage, "--yes")
	s.verb(t, typing("\n"), "purge", "orders").wants(t, exitFailure, "not confirmed; nothing was changed")
	s.verb(t, typing(""), "purge", "orders").wants(t, exitUsage, "--yes")
	s.verb(t, nil, "purge", "orders", "--yes", "--before=1h").wants(t, exitClean, "removed 0 messages")
	s.verb(t, nil, "purge", "orders", "--yes", "--before=2001-02-03T04:05:06Z").wants(t, exitClean, "removed 0 messages", "before 2001-02-03T04:05:06Z")
	s.verb(t, typing("ORDERS\n"), "purge", "queues/orders").wants(t, exitClean, "up to 2 messages of queues/orders without a trace: 2 available.", "removed 2 messages from queues/orders")
	s.verb(t, typing("yes\n"), "purge", "orders", "--include=scheduled,deferred", "--include", "dead-letter").
		wants(t, exitClean, "up to 2 messages of queues/orders without a trace: 0 available, 0 deferred, 1 scheduled, 1 dead-lettered.", "removed 2 messages")
	fill()
	got := decoded(t, s.ok(t, "purge", "orders", "--dlq", "--yes", "-o", "json"))
	if len(got) != 1 || got[0]["deleted"] != "1" || got[0]["more"] != false || got[0]["before"] == nil {
		t.Errorf("got %v", got)
	}
	s.wantTexts(t, []string{"a", "b", "later"}, "orders")
	s.verb(t, nil, "purge", "orders", "-y", "--before=soon").wants(t, exitUsage, "--before")
}

func TestPurgeGoesOnWithTheSameInstant(t *testing.T) {
	t.Parallel()
	var requests []*sidebusv1.PurgeRequest
	answers := []*sidebusv1.PurgeResponse{{Deleted: 3, More: true}, {Deleted: 2, More: true}, {Deleted: 1}}
	s := serveFake(t, &fake{purge: func(r *sidebusv1.PurgeRequest) (*sidebusv1.PurgeResponse, error) {
		requests = append(requests, r)
		answer := proto.CloneOf(answers[len(requests)-1])
		if answer.Before = r.GetBefore(); answer.Before == nil {
			answer.Before = mustInstant(t, "2030-01-02T03:04:05Z")
		}
		return answer, nil
	}})
	s.verb(t, func(to *terminal) { to.progressEvery = time.Nanosecond }, "purge", "orders", "--yes").
		wants(t, exitClean, "removed 3 messages, ", "removed 6 messages from queues/orders, enqueued before 2030-01-02T03:04:05Z")
	if len(requests) != 3 || requests[0].GetBefore() != nil || requests[2].GetBefore().GetSeconds() != requests[1].GetBefore().GetSeconds() {
		t.Errorf("got %v, want the instant of the first answer in the later requests", requests)
	}
}

func TestEntityVerbs(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.verb(t, nil, "entity", "create", "made", "--set", "lockDuration=45s", "-s", "status=send_disabled", "--set", "userMetadata=a,b=c",
		"--set", "defaultMessageTimeToLive=never").wants(t, exitClean, "created queues/made")
	s.verb(t, nil, "entity", "create", "made").wants(t, exitFailure, "ENTITY_ALREADY_EXISTS", "entity update")
	show := s.verb(t, nil, "entity", "show", "queues/made")
	show.wants(t, exitClean, "SEND_DISABLED", "45s", "a,b=c", "10m0s", "never")
	got := decoded(t, s.ok(t, "entity", "show", "made", "-o", "json"))[0]
	if got["lockDuration"] != "45s" || got["status"] != "SEND_DISABLED" || got["userMetadata"] != "a,b=c" {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "entity", "update", "made", "--set", "maxDeliveryCount=3", "--set", "lockDuration=").wants(t, exitClean, "updated queues/made")
	got = decoded(t, s.ok(t, "entity", "update", "made", "--set", "deadLetterTtl=14d", "-o", "json"))[0]
	if got["lockDuration"] != "60s" || got["maxDeliveryCount"] != 3.0 || got["status"] != "SEND_DISABLED" || got["deadLetterTtl"] != "1209600s" {
		t.Errorf("after updates: got %v", got)
	}
	s.verb(t, nil, "entity", "ensure", "made", "--set", "maxDeliveryCount=4").
		wants(t, exitClean, "queues/made exists and differs", "maxDeliveryCount", "nothing was changed")
	s.verb(t, nil, "entity", "ensure", "orders").wants(t, exitClean, "queues/orders exists as asked for")
	if got := decoded(t, s.ok(t, "entity", "ensure", "fresh", "-o", "json")); len(got) != 1 || got[0]["created"] != true {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "entity", "list").wants(t, exitClean, "NAME", "fresh", "made", "orders")
	if got := decoded(t, s.ok(t, "entity", "list", "-o", "json")); len(got) != 1 || len(got[0]["queues"].([]any)) != 3 {
		t.Errorf("got %v, want one document", got)
	}
	s.ok(t, "send", "orders", "x")
	s.verb(t, nil, "entity", "delete", "orders").wants(t, exitUsage, "--yes")
	s.verb(t, typing("n\n"), "entity", "delete", "orders").wants(t, exitFailure, "This deletes queues/orders with 1 message in it, 0 of them dead-lettered.", "not confirmed")
	s.verb(t, typing("orders\n"), "entity", "delete", "orders").wants(t, exitClean, "deleted queues/orders with 1 message in it")
	if got := s.ok(t, "entity", "delete", "made", "--yes", "-o", "json"); got != "{}\n" {
		t.Errorf("got %q", got)
	}
	s.ok(t, "entity", "delete", "fresh", "-y")
	s.verb(t, nil, "entity", "list").wants(t, exitClean, "there are no queues")
	s.verb(t, nil, "stats").wants(t, exitClean, "there are no queues")
	if got := s.ok(t, "stats", "-o", "json"); got != `{"queues":[]}`+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestStats(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "create", "other")
	s.ok(t, "send", "orders", strings.Repeat("x", 3000), "b")
	s.take(t, 1)
	got := s.ok(t, "stats")
	if rows := strings.Split(strings.TrimSpace(got), "\n"); len(rows) != 3 || !strings.HasPrefix(strings.Join(strings.Fields(rows[1]), " "), "orders 2 1 1 0 0 0 3.0 KiB 20") {
		t.Errorf("got %q", rows)
	}
	if got := s.ok(t, "stats", "other"); strings.Contains(got, "orders") {
		t.Errorf("got %q, want one queue", got)
	}
	document := decoded(t, s.ok(t, "stats", "orders", "queues/other", "-o", "json"))[0]["queues"].([]any)
	first := document[0].(map[string]any)
	if len(document) != 2 || first["name"] != "orders" || first["lockedCount"] != "1" || first["availableCount"] != "1" {
		t.Errorf("got %v", document)
	}
	s.verb(t, nil, "stats", "orders", "none").wants(t, exitFailure, "ENTITY_NOT_FOUND")
	s.verb(t, nil, "stats", "--watch=1ms").wants(t, exitUsage, "--watch")
}

func TestStatsWatch(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, isScreen := range []bool{false, true} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var stdout, stderr bytes.Buffer
		watching := writerFunc(func(p []byte) (int, error) {
			n, err := stdout.Write(p)
			if strings.Count(stdout.String(), "QUEUE ") == 2 {
				cancel(interrupted{syscall.SIGINT})
			}
			return n, err
		})
		code := run(ctx, []string{"stats", "--watch=100ms", "--grpc-addr", s.grpc}, terminal{stdout: watching, stderr: &stderr, isScreen: isScreen})
		outcome{code, stdout.String(), stderr.String()}.wants(t, 130, "every 100ms", "orders")
		if strings.Contains(stdout.String(), "\x1b[2J") != isScreen {
			t.Errorf("screen %t: got %q", isScreen, stdout.String())
		}
	}
}

func TestVerbsRefuse(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	tests := map[string]struct {
		args []string
		code int
		text string
	}{
		"no queue":             {[]string{"send"}, exitUsage, "<queue>"},
		"unknown queue":        {[]string{"send", "none", "x"}, exitFailure, `sidebus: ENTITY_NOT_FOUND: entity "none" does not exist; create it first` + "\n"},
		"bad name":             {[]string{"peek", "a b"}, exitFailure, "INVALID_ARGUMENT: name"},
		"a topic":              {[]string{"peek", "topics/t"}, exitFailure, `must be "queues/" and the name of a queue`},
		"bad output":           {[]string{"stats", "-o", "xml"}, exitUsage, "--output"},
		"no time":              {[]string{"stats", "--timeout=0s"}, exitUsage, "--timeout"},
		"bad property":         {[]string{"send", "orders", "x", "-p", "n:int=5"}, exitUsage, "the types are null, string"},
		"bad number":           {[]string{"send", "orders", "x", "-p", "n:byte=many"}, exitUsage, "the value is no byte"},
		"property of no range": {[]string{"send", "orders", "x", "-p", "n:byte=256"}, exitFailure, "INVALID_ARGUMENT"},
		"property twice":       {[]string{"send", "orders", "x", "-p", "n=1", "-p", "n=2"}, exitUsage, "twice"},
		"bad ttl":              {[]string{"send", "orders", "x", "--ttl=soon"}, exitUsage, "--ttl is"},
		"zero ttl":             {[]string{"send", "orders", "x", "--ttl=0"}, exitFailure, "ARGUMENT_OUT_OF_RANGE"},
		"bad at":               {[]string{"send", "orders", "x", "--at=noon"}, exitUsage, "--at is"},
		"bad in":               {[]string{"send", "orders", "x", "--in=noon"}, exitUsage, "--in is"},
		"at and in":            {[]string{"send", "orders", "x", "--in=1s", "--at=2030-01-01T00:00:00Z"}, exitUsage, "--at"},
		"lines and bodies":     {[]string{"send", "orders", "x", "--lines"}, exitUsage, "--lines"},
		"file and bodies":      {[]string{"send", "orders", "x", "--file=y"}, exitUsage, "--file"},
		"one id for many":      {[]string{"send", "orders", "x", "y", "--message-id=m"}, exitUsage, "--message-id"},
		"too few":              {[]string{"receive", "orders", "--max=0"}, exitUsage, "--max"},
		"too many":             {[]string{"receive", "orders", "--max=1001"}, exitUsage, "--complete or --delete"},
		"two ends":             {[]string{"receive", "orders", "--complete", "--abandon"}, exitUsage, "--abandon"},
		"too long":             {[]string{"receive", "orders", "--wait=301s"}, exitFailure, "ARGUMENT_OUT_OF_RANGE"},
		"unlike states":        {[]string{"peek", "orders", "--state=odd"}, exitUsage, "--state"},
		"negative":             {[]string{"peek", "orders", "--max=-1"}, exitUsage, "--max"},
		"unknown option":       {[]string{"entity", "create", "q", "--set", "lockduration=3s"}, exitUsage, "the options are lockDuration"},
		"bad option":           {[]string{"entity", "create", "q", "--set", "lockDuration=never"}, exitUsage, "lockDuration is"},
		"option twice":         {[]string{"entity", "create", "q", "--set", "status=ACTIVE", "--set", "status=DISABLED"}, exitUsage, "twice"},
		"bad status":           {[]string{"entity", "create", "q", "--set", "status=odd"}, exitUsage, "ACTIVE, DISABLED"},
		"out of range":         {[]string{"entity", "create", "q", "--set", "lockDuration=1h"}, exitFailure, "ARGUMENT_OUT_OF_RANGE: lockDuration"},
		"immutable":            {[]string{"entity", "update", "orders", "--set", "requiresDuplicateDetection=true"}, exitFailure, "PROPERTY_IMMUTABLE"},
		"nothing to update":    {[]string{"entity", "update", "orders"}, exitUsage, "--set"},
		"a name of the API":    {[]string{"entity", "create", "q", "--set", "createdAt=2030-01-01T00:00:00Z"}, exitUsage, "no option"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s.verb(t, nil, test.args...).wants(t, test.code, test.text)
		})
	}
	s.ok(t, "entity", "create", "closed", "--set", "status=DISABLED")
	s.verb(t, nil, "send", "closed", "x").wants(t, exitFailure, "ENTITY_DISABLED", `"sidebus entity update closed --set status=ACTIVE" does that`)
}

func TestOddNames(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, name := range []string{"a/b", "queues/list", "Case.d-x_1/2"} {
		resource := "queues/" + name
		s.verb(t, nil, "entity", "create", resource).wants(t, exitClean, "created "+resource)
		s.ok(t, "send", resource, "in "+name)
		escaped := "queues/" + strings.ReplaceAll(name, "/", "%2F")
		s.wantTexts(t, []string{"in " + name}, escaped)
		s.verb(t, typing(name+"\n"), "purge", escaped).wants(t, exitClean, "removed 1 message from "+resource)
		if got := s.ok(t, "dlq", resource, "count"); got != "0\n" {
			t.Errorf("%s: got %q", name, got)
		}
		if got := decoded(t, s.ok(t, "stats", escaped, "-o", "json")); got[0]["queues"].([]any)[0].(map[string]any)["name"] != name {
			t.Errorf("%s: got %v", name, got)
		}
	}
	s.verb(t, nil, "entity", "show", "100%").wants(t, exitFailure, "INVALID_ARGUMENT")
}

func TestEmptyResults(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, args := range [][]string{
		{"receive", "orders"},
		{"receive", "orders", "--dlq", "--delete"},
		{"peek", "orders"},
		{"peek", "orders", "--state=locked"},
		{"dlq", "orders", "list"},
	} {
		for _, form := range []string{"table", "json"} {
			got := s.verb(t, nil, append(args, "-o", form)...)
			if got.wants(t, exitClean, "no messages in "); got.stdout != "" {
				t.Errorf("%q: got %q, want nothing", args, got.stdout)
			}
		}
	}
}

func TestNobodyAnswers(t *testing.T) {
	t.Parallel()
	const hint = `start one with "sidebus serve"`
	gone := &served{grpc: "127.0.0.1:1"}
	gone.verb(t, nil, "stats").wants(t, exitFailure, "no sidecar answers at 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused; "+hint)
	socket := &served{grpc: "unix://" + t.TempDir() + "/none.sock"}
	socket.verb(t, nil, "peek", "q").wants(t, exitFailure, "no sidecar answers at "+socket.grpc, hint)
	(&served{grpc: "nowhere"}).verb(t, nil, "stats").wants(t, exitFailure, `--grpc-addr is "nowhere", must be host:port or unix:///path`)

	other := &served{grpc: serveMemory(t).http}
	other.verb(t, nil, "stats").wants(t, exitFailure, "no sidecar answers at "+other.grpc)

	deaf, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	(&served{grpc: deaf.Addr().String()}).verb(t, nil, "stats", "--timeout=50ms").wants(t, exitFailure, "did not answer within 50ms", "--timeout")
	serveFake(t, &fake{}).verb(t, nil, "entity", "list").wants(t, exitFailure, "does not know this verb")
}

func TestUnixSocketAndEnvironment(t *testing.T) {
	s := serveMemory(t)
	t.Setenv("SIDEBUS_GRPC_ADDR", s.grpc)
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"stats"}, terminal{stdout: &stdout, stderr: &stderr}); code != exitClean || !strings.Contains(stdout.String(), "orders") {
		t.Errorf("got exit code %d, %s%s", code, &stdout, &stderr)
	}
	file := writeFile(t, "store: memory\ngrpc-addr: "+s.grpc+"\n")
	t.Setenv("SIDEBUS_GRPC_ADDR", "")
	if code := run(t.Context(), []string{"stats", "--config", file}, terminal{stdout: &stdout, stderr: &stderr}); code != exitClean {
		t.Errorf("with a file: got exit code %d, %s", code, &stderr)
	}
}

// TestJSONIsThatOfTheAPI compares what the verbs print with what the sidecar answers over HTTP.
func TestJSONIsThatOfTheAPI(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "update", "orders", "--set", "redeliveryDelay=1.5s", "--set", "deadLetterTtl=1h", "--set", "userMetadata=\"<é>\u2028")
	post := func(path, body string) string { return s.call(t, http.MethodPost, path, body) }
	post("/v1/queues/orders/messages:send", `{"messages":[{"messageId":"m<1>","json":{"a": [1, 2.50]},"timeToLive":"1.25s","properties":{
		"s":"t<\u0001\ud83d\ude00","b":true,"n":null,"i":-5,"d":1.5,"two":2.0,"huge":1e300,
		"u":{"type":"uuid","value":"00000000-0000-0000-0000-000000000001"},"by":{"type":"byte","value":7},"c":{"type":"char","value":"é"},
		"i16":{"type":"int16","value":-3},"u64":{"type":"uint64","value":"18446744073709551615"},"f":{"type":"float","value":0.1},
		"nan":{"type":"double","value":"NaN"},"inf":{"type":"float","value":"-Infinity"},"dec":{"type":"decimal","value":"1.50"},
		"uri":{"type":"uri","value":"http://x"},"dt":{"type":"datetime","value":"2026-01-02T03:04:05Z"},
		"ts":{"type":"timespan","value":"-1.5s"},"half":{"type":"char","value":55296},"oct":{"type":"bytes","value":"/w=="}}},
		{"body":"AAE="},{"text":"x","scheduledEnqueueTime":"2100-01-02T03:04:05.25Z"}]}`)
	peeked := post("/v1/queues/orders/messages:peek", `{"maxMessages":10}`)
	lines := strings.TrimSpace(s.ok(t, "peek", "orders", "-o", "json"))
	if want, got := compacted(t, peeked), `{"messages":[`+strings.ReplaceAll(lines, "\n", ",")+"]}"; got != want {
		t.Errorf("peek: got\n%s\nwant\n%s", got, want)
	}
	for what, pair := range map[string][2]string{
		"queue":   {s.call(t, http.MethodGet, "/v1/queues/orders", ""), s.ok(t, "entity", "show", "orders", "-o", "json")},
		"queues":  {s.call(t, http.MethodGet, "/v1/queues", ""), s.ok(t, "entity", "list", "-o", "json")},
		"runtime": {s.call(t, http.MethodGet, "/v1/queues/orders/runtime", ""), unwrapped(s.ok(t, "stats", "orders", "-o", "json"))},
	} {
		if want, got := compacted(t, pair[0]), compacted(t, pair[1]); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
		}
	}
}

// unwrapped takes the counts of one queue out of the document of stats.
func unwrapped(text string) string {
	text = strings.TrimPrefix(strings.TrimSpace(text), `{"queues":[{"name":"orders",`)
	return "{" + strings.TrimSuffix(text, "]}")
}

// compacted gives JSON without spaces and with one way of escaping.
func compacted(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return strings.ReplaceAll(out.String(), "\u2028", `\u2028`)
}

func (s *served) call(t *testing.T, method, path, body string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "http://"+s.http+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true
	response, err := (&http.Transport{}).RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %d %s %v", method, path, response.StatusCode, text, err)
	}
	return string(text)
}
