package verbs

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func statusOf(e *semantics.Error) error { return wireerror.Status(e).Err() }

func mustInstant(t *testing.T, text string) *timestamppb.Timestamp {
	t.Helper()
	at, err := instantOrAge("--before", text, timestamppb.Now().AsTime())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// TestSignalsEndAVerb sends real signals to the real binary while it waits for input.
func TestSignalsEndAVerb(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143} {
		command := exec.CommandContext(t.Context(), sidecartest.Binary(t), "send", "orders", "--lines", "-o", "json", "--grpc-addr", s.grpc)
		command.Env = sidecartest.Environment()
		var stderr bytes.Buffer
		command.Stderr = &stderr
		stdin, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		stdout, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(stdin, "one\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := stdout.Read(make([]byte, 1)); err != nil { // it was sent
			t.Fatal(err)
		}
		if err := command.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		rest, _ := io.ReadAll(stdout)
		_ = command.Wait()
		outcome{command.ProcessState.ExitCode(), string(rest), stderr.String()}.wants(t, want, "sent 1 message to queues/orders", "ended by a signal")
	}
}

// A reader that ends early, as in "sidebus receive orders --complete | head -1", leaves no message locked.
func TestReceiveIntoAPipeThatEnds(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	for _, flag := range []string{"--complete", "--release"} {
		s.ok(t, "send", "orders", "one", "two")
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = read.Close()
		command := exec.CommandContext(t.Context(), sidecartest.Binary(t), "receive", "orders", "--max=2", flag, "--grpc-addr", s.grpc)
		command.Env, command.Stdout = sidecartest.Environment(), write
		var stderr bytes.Buffer
		command.Stderr = &stderr
		_ = command.Run()
		_ = write.Close()
		outcome{command.ProcessState.ExitCode(), "", stderr.String()}.wants(t, cli.Failure, "broken pipe")
		s.take(t, 2) // at once, so they were not locked
	}
}
