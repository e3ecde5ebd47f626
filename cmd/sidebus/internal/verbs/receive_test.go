package verbs

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

func TestReceiveGivesBackByDefault(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "send", "orders", "one", "two", "three")
	for range 2 {
		got := s.verb(t, nil, "receive", "orders", "--max=2")
		got.wants(t, cli.Clean, "released 2 messages without counting")
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
	s.verb(t, nil, "receive", "orders", "--deferred=252").wants(t, cli.Clean, "b\n", "released 1 message")
	s.wantTexts(t, []string{"b"}, "orders", "--state=deferred")
	s.ok(t, "receive", "orders", "--number=253", "--complete")
	s.verb(t, nil, "receive", "orders", "--number=253,252").wants(t, cli.Failure, "MESSAGE_NOT_FOUND")
	s.ok(t, "receive", "orders", "--deferred=252", "--complete")
	s.deadLetter(t, "Late", "dead")
	s.verb(t, nil, "receive", "orders", "--dlq", "--complete").wants(t, cli.Clean, "DEAD-LETTERED", "Late", "dead")
	s.verb(t, nil, "receive", "orders", "--dead-letter").wants(t, cli.Clean, "no messages in the dead-letter queue of queues/orders")
}

func TestReceiveThatCannotPrintGivesBack(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "send", "orders", "kept")
	broken := writerFunc(func([]byte) (int, error) { return 0, syscall.EPIPE })
	s.verb(t, func(to *terminal.Streams) { to.Stdout = broken }, "receive", "orders", "--complete").wants(t, cli.Failure, "writing the answer")
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
		wants(t, cli.Failure, "1 message not completed: MESSAGE_LOCK_LOST: 8")
}

func TestSignalEndsAReceiveThatWaits(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	ctx, cancel := context.WithCancelCause(t.Context()) // as a signal does it: a deadline would travel to the sidecar
	defer time.AfterFunc(50*time.Millisecond, func() { cancel(cli.Interrupted{By: syscall.SIGTERM}) }).Stop()
	var stdout, stderr bytes.Buffer
	code := cli.Run(ctx, &Grammar{}, []string{"receive", "orders", "--wait=300s", "--grpc-addr", s.grpc}, terminal.Streams{Stdout: &stdout, Stderr: &stderr})
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
	got.wants(t, cli.Clean, "there are more; --from 123 shows the next ones")
	if strings.Count(got.stdout, "available") != 120 || strings.Count(got.stdout, "STATE") != 1 {
		t.Errorf("got %d rows", strings.Count(got.stdout, "available"))
	}
	whole := s.verb(t, nil, "peek", "orders", "--max=230")
	if whole.wants(t, cli.Clean); whole.stderr != "" {
		t.Errorf("got the note %q though there is no more", whole.stderr)
	}
	s.take(t, 2)
	s.wantTexts(t, texts[:2], "orders", "--state=locked")
	s.verb(t, nil, "peek", "orders", "-n1").wants(t, cli.Clean, "locked")
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
