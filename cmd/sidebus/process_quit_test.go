package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// The app of a Job ends the sidecar, which stops as a signal stops it: what the app still holds is given back uncounted.
func TestTheAppEndsTheSidecar(t *testing.T) {
	t.Parallel()
	store, namespace := redistest.URL(t), redistest.Namespace()
	first := sidecartest.Start(t, "--store", store, "--namespace", namespace, "--exit-with-app", "--drain-timeout", "3s")
	first.Queue(t, "orders", `{"lockDuration":"5m"}`)
	first.Send(t, "orders", "held")
	wantMessage(t, first, "orders", "held")
	if a := first.Probe(t.Context(), http.MethodPost, "/quitquitquit"); a.Status != http.StatusAccepted || !strings.Contains(a.Text, "stopping") {
		t.Fatalf("got %d %s", a.Status, a.Text)
	}
	if code := first.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
	for _, line := range []string{`"method":"Quit"`, "the application has ended", `"released messages`, `"stopped"`} {
		if !strings.Contains(first.Log(), line) {
			t.Errorf("the log lacks %s:\n%s", line, first.Log())
		}
	}
	second := sidecartest.Start(t, "--store", store, "--namespace", namespace)
	if again := wantMessage(t, second, "orders", "held"); again.DeliveryCount != 1 {
		t.Errorf("delivery count after the stop: got %d, want 1", again.DeliveryCount)
	}
}

// A platform that sends SIGTERM to a sidecar that its app is ending does not cut the drain short.
func TestASignalAfterTheAppHasEndedIsTheFirst(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace(), "--exit-with-app")
	s.Queue(t, "orders", `{"lockDuration":"5m"}`)
	s.Send(t, "orders", "held")
	held := wantMessage(t, s, "orders", "held")
	for range 2 { // asking again changes nothing
		if a := s.Probe(t.Context(), http.MethodPost, "/quitquitquit"); a.Status != http.StatusAccepted {
			t.Fatalf("got %d %s", a.Status, a.Text)
		}
	}
	s.Signal(syscall.SIGTERM)
	sidecartest.Eventually(t, "the signal arrives", func() bool {
		return strings.Contains(s.Log(), "a second signal ends the process at once")
	})
	s.Complete(t, "orders", held) // the drain still waits for this
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0\n%s", code, s.Log())
	}
}

// Without the flag no client can end the sidecar.
func TestNoAppEndsTheSidecarWithoutTheFlag(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	if a := s.Probe(t.Context(), http.MethodPost, "/quitquitquit"); a.Status != http.StatusNotFound {
		t.Errorf("got %d %s", a.Status, a.Text)
	}
	if s.HasExited() {
		t.Error("it ended")
	}
}
