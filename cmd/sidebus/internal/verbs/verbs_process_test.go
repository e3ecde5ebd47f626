package verbs

import (
	"bytes"
	"io"
	"os/exec"
	"syscall"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

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
