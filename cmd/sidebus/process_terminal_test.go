package main

import (
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/sidebus/sidebus/test/sidecartest"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// onTerminal runs a verb on a terminal. Once it shows the text, keys are typed.
func onTerminal(t *testing.T, env, text, keys string, args ...string) (shown string, code int) {
	t.Helper()
	command := exec.Command(sidecartest.Binary(t), args...)
	command.Env = append(sidecartest.Environment(), "TERM=xterm", env)
	master, err := pty.StartWithSize(command, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	defer master.Close() //nolint:errcheck // the process has ended
	var s syncbuf.Buffer
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(&s, master) }) // it ends with an error when the process does
	sidecartest.Eventually(t, "the terminal shows "+text, func() bool { return strings.Contains(s.String(), text) })
	if _, err := io.WriteString(master, keys); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait()
	reading.Wait()
	return s.String(), command.ProcessState.ExitCode()
}

func TestVerbsOnATerminal(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory")
	s.Queue(t, "orders", `{}`)
	s.Send(t, "orders", "one")
	for key, want := range map[string]int{"q": 0, "\x03": 130} {
		shown, code := onTerminal(t, "A=b", "orders", key, "top", "--every=100ms", "--grpc-addr", s.GRPC)
		if code != want || !strings.Contains(shown, "q to quit\x1b[K\r\n") {
			t.Errorf("top and %q: exit code %d and %q", key, code, shown)
		}
	}
	shown, code := onTerminal(t, "A=b", "to confirm: ", "orders\r", "purge", "orders", "--grpc-addr", s.GRPC)
	if code != 0 || !strings.Contains(shown, "removed 1 message") {
		t.Errorf("purge: exit code %d and %q", code, shown)
	}
	const header = "\x1b[1mNAME"
	if shown, _ := onTerminal(t, "A=b", "orders", "", "entity", "list", "--grpc-addr", s.GRPC); !strings.Contains(shown, header) {
		t.Errorf("with colours: got %q", shown)
	}
	if shown, _ := onTerminal(t, "NO_COLOR=1", "orders", "", "entity", "list", "--grpc-addr", s.GRPC); strings.Contains(shown, "\x1b") {
		t.Errorf("with NO_COLOR: got %q", shown)
	}
}
