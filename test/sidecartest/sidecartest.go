// Package sidecartest runs the real sidebus binary in tests. It builds the binary once for a test binary, starts it on
// free ports, calls it over HTTP, and ends it with the test.
package sidecartest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/redisstore/redistest"
)

// Patience bounds all waits of tests. It only ends a test that hangs, so it is far more than a busy machine needs.
const Patience = 2 * time.Minute

var built struct {
	sync.Once

	folder, output string
	err            error
}

// Main is redistest.Main, and removes the binary after the tests.
func Main(m goleak.TestingM, leaks ...goleak.Option) { redistest.Main(runner{m}, leaks...) }

type runner struct{ goleak.TestingM }

// Run runs the tests.
func (r runner) Run() int {
	code := r.TestingM.Run()
	if built.folder != "" {
		_ = os.RemoveAll(built.folder)
	}
	return code
}

// Binary returns the path of the sidebus binary.
func Binary(t testing.TB) string {
	t.Helper()
	built.Do(func() {
		if built.folder, built.err = os.MkdirTemp("", "sidebus-binary-"); built.err != nil { //nolint:usetesting // outlives the first test
			return
		}
		var out []byte
		if out, built.err = exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/sidebus/sidebus").Output(); built.err != nil {
			return
		}
		args := append([]string{"build", "-buildvcs=false", "-o", built.folder}, buildFlags...)
		build := exec.Command("go", append(args, "github.com/sidebus/sidebus/cmd/sidebus")...)
		// for tests in other modules, whose dependencies have other versions
		build.Dir = strings.TrimSpace(string(out))
		out, built.err = build.CombinedOutput()
		built.output = string(out)
	})
	if built.err != nil {
		t.Fatalf("build sidebus: %v\n%s", built.err, built.output)
	}
	return filepath.Join(built.folder, "sidebus")
}

// Sidecar is one "sidebus serve" process.
type Sidecar struct {
	HTTP, GRPC, Admin string // addresses, host:port; empty if the process ended before it listened
	AMQP              string // as above; empty without --amqp-addr

	process
}

// process is a running binary.
type process struct {
	command *exec.Cmd
	log     logFile
	exited  chan struct{}
}

// launch starts a program. The test kills it at its end, and logs what it has written if it failed.
func launch(t testing.TB, program string, args ...string) process {
	t.Helper()
	p := process{command: exec.Command(program, args...), log: newLogFile(t)}
	p.command.Dir = t.TempDir()
	p.command.Env = Environment()
	p.command.Stderr = p.log.file
	p.exited = Begin(t, p.command, func() string { return "log of sidebus " + strings.Join(args, " ") + ":\n" + p.Log() })
	return p
}

// Begin starts a command, and returns a channel that is closed when it has ended. The test kills it at its end, and logs
// what written returns if it failed.
func Begin(t testing.TB, command *exec.Cmd, written func() string) (exited chan struct{}) {
	t.Helper()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	exited = make(chan struct{})
	go func() {
		_ = command.Wait()
		close(exited)
	}()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-exited
		if t.Failed() {
			t.Log(written())
		}
	})
	return exited
}

// Launch starts a sidecar on free ports with further flags, and waits until it listens or has ended. The test kills it
// at its end.
func Launch(t testing.TB, args ...string) *Sidecar {
	t.Helper()
	return LaunchBinary(t, Binary(t), args...)
}

// LaunchBinary is Launch with a binary of the caller's own.
func LaunchBinary(t testing.TB, program string, args ...string) *Sidecar {
	t.Helper()
	const free = "127.0.0.1:0"
	all := append([]string{"serve", "--http-addr", free, "--grpc-addr", free, "--admin-addr", free}, args...)
	s := &Sidecar{process: launch(t, program, all...)}
	Eventually(t, "the sidecar listens or ends", func() bool {
		at, listens := s.log.addresses("Sidebus is listening")
		s.HTTP, s.GRPC, s.Admin, s.AMQP = at.HTTP, at.GRPC, at.Admin, at.AMQP
		return listens || s.HasExited()
	})
	return s
}

// Start is Launch, and waits with "sidebus wait" until the sidecar is ready.
func Start(t testing.TB, args ...string) *Sidecar {
	t.Helper()
	s := Launch(t, args...)
	if code, out := Run(t, "wait", "--admin-addr", s.Admin, "--timeout", Patience.String()); code != 0 {
		t.Fatalf("sidebus wait: exit code %d\n%s", code, out)
	}
	return s
}

// Signal sends a signal to the process.
func (p process) Signal(signal syscall.Signal) { _ = p.command.Process.Signal(signal) }

// Kill ends the process with SIGKILL and waits until it has ended.
func (p process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.exited
}

// Exit waits until the process has ended and returns its exit code, -1 if a signal ended it.
func (p process) Exit(t testing.TB) int {
	t.Helper()
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case <-p.exited:
		return p.command.ProcessState.ExitCode()
	case <-patience.C:
		t.Fatal("the process does not end")
		return -1
	}
}

// HasExited reports whether the process has ended.
func (p process) HasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// PID returns the process id of the process.
func (p process) PID() int { return p.command.Process.Pid }

// Log returns what the process has written to stderr so far.
func (p process) Log() string { return string(p.log.text()) }

// Environment returns the environment of the tests without the settings of a developer for another sidecar.
func Environment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "SIDEBUS_") })
}

// Run runs the binary with a command line until it ends and returns its exit code and its output.
func Run(t testing.TB, args ...string) (code int, output string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*Patience)
	defer cancel()
	command := exec.CommandContext(ctx, Binary(t), args...)
	command.Dir, command.Env = t.TempDir(), Environment()
	out, err := command.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	return code, string(out)
}

// Eventually calls a function at short intervals until it returns true, and fails the test if it never does.
func Eventually(t testing.TB, what string, yes func() bool) {
	t.Helper()
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for !yes() {
		select {
		case <-look.C:
		case <-patience.C:
			t.Fatalf("it did not happen in %s: %s", Patience, what)
		}
	}
}
