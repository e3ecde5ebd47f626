package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/filetest"
)

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
	s.verb(t, piping("from stdin\n"), "send", "orders").wants(t, cli.Clean, "sent")
	s.verb(t, piping("from -"), "send", "orders", "-").wants(t, cli.Clean, "sent")
	s.verb(t, typing("typed"), "send", "orders").wants(t, cli.Clean, "Ctrl-D")
	s.ok(t, "send", "orders", "--file", filetest.Write(t, "from a file"))
	s.wantTexts(t, []string{"one", "two words", "three", "from stdin\n", "from -", "typed", "from a file"}, "orders")

	s.ok(t, "send", "orders", "--json", `{"a":  1}`)
	s.verb(t, piping("\xff\x00"), "send", "orders").wants(t, cli.Clean, "sent")
	last := decoded(t, s.ok(t, "peek", "orders", "--from=8", "-o", "json"))
	if len(last) != 2 || last[0]["json"].(map[string]any)["a"] != 1.0 || last[1]["body"] != "/wA=" {
		t.Errorf("JSON and octets: got %v", last)
	}
	s.verb(t, nil, "send", "orders", "--json", "{").wants(t, cli.Failure, "body 1 is not valid JSON; nothing was sent")
	s.verb(t, nil, "send", "orders", "-f", "/nowhere/at all").wants(t, cli.Failure, "--file")
}

func TestIDEM_1_SendUnderARequestID(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	first := s.verb(t, nil, "send", "orders", "one", "two", "--request-id=r")
	first.wants(t, cli.Clean, "sent")
	again := s.verb(t, nil, "send", "orders", "one", "two", "--request-id=r")
	again.wants(t, cli.Clean, "sent", "this is the first answer")
	if again.stdout != first.stdout {
		t.Errorf("got %q, want %q", again.stdout, first.stdout)
	}
	s.wantTexts(t, []string{"one", "two"}, "orders")
	s.verb(t, nil, "send", "orders", "one", "--request-id=r").wants(t, cli.Failure, "INVALID_ARGUMENT", "requestId")
	s.verb(t, nil, "send", "orders", "one", "--request-id=").wants(t, cli.Usage, "--request-id is empty, must have 1 to 128 characters")
	s.verb(t, piping("x"), "send", "orders", "--lines", "--request-id=r").wants(t, cli.Usage, "--request-id")
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
	s.verb(t, nil, "send", "orders", "later", "--in=1h").wants(t, cli.Clean, "scheduled for 20")
	s.verb(t, nil, "send", "orders", "then", "--at=2100-01-02T03:04:05+01:00").wants(t, cli.Clean, "scheduled for 2100-01-02T02:04:05Z")
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
	got := s.verb(t, func(to *terminal.Streams) {
		to.Stdin, to.ProgressEvery = strings.NewReader(input.String()), time.Nanosecond
	}, "send", "orders", "--lines", "--progress")
	got.wants(t, cli.Clean, "sent 1000 messages to queues/orders, up to line 1010, sequence numbers 1 to 1000,", "sidebus: sent 1000 messages, ", "/s in ")
	s.wantTexts(t, want, "orders")

	file := filetest.Write(t, "{\"a\":1}\n2\n\"three\"")
	if rows := decoded(t, s.ok(t, "send", "orders", "--lines", "--json", "--file", file, "-o", "json")); len(rows) != 3 || rows[2]["sequenceNumber"] != "1003" {
		t.Errorf("got %v, want a row for each line", rows)
	}
	s.verb(t, piping("1\n2\nthree\n4\n"), "send", "orders", "--lines", "--json").
		wants(t, cli.Failure, "sent 2 messages to queues/orders, up to line 2", "line 3 is not valid JSON; it was not sent")
	s.verb(t, piping(""), "send", "orders", "--lines").wants(t, cli.Clean, "sent 0 messages")
	watched := s.verb(t, func(to *terminal.Streams) { to.Stdin, to.IsWatched = strings.NewReader("a\n"), true }, "send", "orders", "-l")
	watched.wants(t, cli.Clean, "sent 1 message ")
	if strings.Contains(watched.stdout, "\x1b") {
		t.Error("the summary is not plain")
	}
}

func TestSendLinesKeepsBatchesSmall(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	line := strings.Repeat("y", 100<<10)
	s.verb(t, piping(strings.Repeat(line+"\n", 5)), "send", "orders", "--lines").wants(t, cli.Clean, "sent 5 messages")
	s.verb(t, piping("fits\n"+strings.Repeat("z", 300<<10)+"\n"), "send", "orders", "--lines").
		wants(t, cli.Failure, "sent 1 message to queues/orders, up to line 1", "MESSAGE_SIZE_EXCEEDED", "at line 2; nothing from line 2 on was sent")
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
	s.verb(t, piping(strings.Repeat("x\n", 150)), "send", "orders", "--lines").wants(t, cli.Failure,
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
			cancel(cli.Interrupted{By: syscall.SIGINT})
		}
		return stdout.Write(p)
	})
	go func() { _, _ = io.WriteString(typist, "first\nsecond\n") }()
	code := cli.Run(ctx, &Grammar{}, []string{"send", "orders", "--lines", "-o", "json", "--grpc-addr", s.grpc}, terminal.Streams{Stdin: input, Stdout: sent, Stderr: &stderr})
	outcome{code, stdout.String(), stderr.String()}.wants(t, 130, "sent 2 messages to queues/orders, up to line 2", "ended by a signal")
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
