package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// killingLine stands between "dlq edit" and a sidecar. At one of the calls it kills the command with SIGKILL: before
// the sidecar has the call, or after the sidecar has answered.
type killingLine struct {
	sidebusv1.UnimplementedMessagesServer

	sidecar sidebusv1.MessagesClient
	at      string // such as "before Send"
	kill    func()
}

// pass makes one call of the command at the sidecar.
func pass[Q, A any](
	l *killingLine, name string, call func(context.Context, Q, ...grpc.CallOption) (A, error), request Q,
) (A, error) {
	var none A
	if l.at == "before "+name {
		l.kill()
		return none, io.EOF // the sidecar never had it, and no command waits for the answer
	}
	answer, err := call(context.Background(), request)
	if l.at == "after "+name {
		l.kill()
	}
	return answer, err
}

func (l *killingLine) Peek(_ context.Context, r *sidebusv1.PeekRequest) (*sidebusv1.PeekResponse, error) {
	return pass(l, "Peek", l.sidecar.Peek, r)
}

func (l *killingLine) ReceiveBySequence(
	_ context.Context, r *sidebusv1.ReceiveBySequenceRequest,
) (*sidebusv1.ReceiveResponse, error) {
	return pass(l, "ReceiveBySequence", l.sidecar.ReceiveBySequence, r)
}

func (l *killingLine) Send(_ context.Context, r *sidebusv1.SendRequest) (*sidebusv1.SendResponse, error) {
	return pass(l, "Send", l.sidecar.Send, r)
}

func (l *killingLine) Complete(_ context.Context, r *sidebusv1.CompleteRequest) (*sidebusv1.SettleResponse, error) {
	return pass(l, "Complete", l.sidecar.Complete, r)
}

// open listens until the test ends and returns the address.
func (l *killingLine) open(t *testing.T, sidecar string) string {
	t.Helper()
	conn, err := grpc.NewClient(sidecar, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.sidecar = sidebusv1.NewMessagesClient(conn)
	server, ended := grpc.NewServer(), make(chan struct{})
	sidebusv1.RegisterMessagesServer(server, l)
	go func() { _ = server.Serve(listener); close(ended) }()
	t.Cleanup(func() {
		server.Stop()
		<-ended
		_ = conn.Close()
	})
	return listener.Addr().String()
}

// dlqEdit is the command for dead letter 1 of a queue, with an editor that says so when it has changed the file and ends
// when its stdin does.
func dlqEdit(t *testing.T, queue, address string) (command *exec.Cmd, stdin io.WriteCloser, stderr io.Reader) {
	t.Helper()
	editor := filepath.Join(t.TempDir(), "editor")
	const script = "#!/bin/sh\nsed -i 's/text: body/text: edited/' \"$1\"; echo edited >&2; read -r line || exit 0\n"
	if err := os.WriteFile(editor, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	command = exec.Command(sidecartest.Binary(t), "dlq", "edit", queue, "--number=1", "--yes", "--grpc-addr", address)
	command.Env = append(sidecartest.Environment(), "VISUAL="+editor, "TMPDIR="+t.TempDir())
	read, write, err := os.Pipe() // not StderrPipe: the editor holds it too, when the command is gone
	if err != nil {
		t.Fatal(err)
	}
	command.Stderr = write
	if stdin, err = command.StdinPipe(); err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	_ = write.Close()
	t.Cleanup(func() { _ = read.Close() })
	return command, stdin, read
}

// Wherever "dlq edit" is killed, the dead letter or the edited message is there; and the same command again ends with
// the edited message once and no dead letter.
func TestDLQEditKilledAnywhere(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	for _, at := range []string{
		"before Peek", "after Peek", "in the editor", "before ReceiveBySequence", "after ReceiveBySequence",
		"before Send", "after Send", "before Complete", "after Complete",
	} {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			queue := strings.ReplaceAll(at, " ", "-")
			s.Queue(t, queue, `{"lockDuration":"1m"}`)
			s.Send(t, queue, "body")
			token := s.Receive(t, queue, time.Minute)[0].LockToken
			s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:deadLetter", `{"lockTokens":["`+token+`"]}`)
			s.Must(t, http.MethodPatch, "/v1/queues/"+queue, `{"lockDuration":"5s"}`) // of the command that is killed

			var command *exec.Cmd
			var killed atomic.Bool
			started := make(chan struct{})
			line := &killingLine{at: at, kill: func() {
				<-started
				killed.Store(true)
				_ = command.Process.Kill()
				_, _ = command.Process.Wait()
			}}
			command, stdin, stderr := dlqEdit(t, queue, line.open(t, s.GRPC))
			close(started)
			if at == "in the editor" {
				if _, err := io.ReadFull(stderr, make([]byte, len("edited\n"))); err != nil {
					t.Fatal(err)
				}
				line.kill()
			}
			_ = stdin.Close()
			said, _ := io.ReadAll(stderr) // until the command and its editor have ended
			_, _ = command.Process.Wait()
			if !killed.Load() {
				t.Fatalf("it was not killed: %s", said)
			}

			s.Must(t, http.MethodPatch, "/v1/queues/"+queue, `{"lockDuration":"1m"}`) // of the one that is not
			dead, live := peekedTexts(t, s, queue, "DEAD_LETTER"), peekedTexts(t, s, queue, "NONE")
			if dead+live != "body" && dead+live != "edited" && dead+live != "bodyedited" {
				t.Fatalf("dead letter %q, message %q: something is lost or too much", dead, live)
			}
			if dead != "" {
				awaitDeadLetter(t, s, queue)
				again, stdin, stderr := dlqEdit(t, queue, s.GRPC)
				_ = stdin.Close()
				said, _ := io.ReadAll(stderr)
				if err := again.Wait(); err != nil {
					t.Fatalf("again: %v\n%s", err, said)
				}
			}
			dead, live = peekedTexts(t, s, queue, "DEAD_LETTER"), peekedTexts(t, s, queue, "NONE")
			if dead != "" || live != "edited" {
				t.Errorf("in the end: dead letter %q, message %q", dead, live)
			}
		})
	}
}

// peekedTexts are the texts of the messages of a queue, one after the other.
func peekedTexts(t *testing.T, s *sidecartest.Sidecar, queue, subQueue string) string {
	t.Helper()
	answer := s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:peek", `{"maxMessages":10,"subQueue":"`+subQueue+`"}`)
	var got struct{ Messages []sidecartest.Message }
	if err := json.Unmarshal([]byte(answer.Text), &got); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, m := range got.Messages {
		all.WriteString(m.Text)
	}
	return all.String()
}

// awaitDeadLetter returns when the lock of the only dead letter has ended.
func awaitDeadLetter(t *testing.T, s *sidecartest.Sidecar, queue string) {
	t.Helper()
	path := "/v1/queues/" + queue + "/messages:"
	answer := s.Must(t, http.MethodPost, path+"receive", `{"subQueue":"DEAD_LETTER","maxWait":"1m"}`)
	var got struct{ Messages []sidecartest.Message }
	if err := json.Unmarshal([]byte(answer.Text), &got); err != nil || len(got.Messages) != 1 {
		t.Fatalf("the dead letter does not come back: %s", answer.Text)
	}
	s.Must(t, http.MethodPost, path+"release", `{"subQueue":"DEAD_LETTER","lockTokens":["`+got.Messages[0].LockToken+`"]}`)
}
