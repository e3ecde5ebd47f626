package main

import (
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// The console of a namespace shows what its sidecars do, and needs none of them.
func TestConsoleBesideASidecar(t *testing.T) {
	t.Parallel()
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	s := sidecartest.Start(t, store...)
	s.Queue(t, "orders", `{"partitions":3}`)
	console := sidecartest.LaunchConsole(t, store...)
	if page := console.Get(t.Context(), "/ui/"); page.Status != http.StatusOK || !strings.Contains(page.Text, "console.js") {
		t.Errorf("got %d %s", page.Status, page.Text)
	}
	s.Send(t, "orders", "a")
	s.Send(t, "orders", "b")
	console.AwaitEvent(t, "orders", `"available":2,`)
	s.Kill()
	for _, path := range []string{"/healthz/ready", "/metrics", "/ui/api/v1/queues/orders"} {
		if page := console.Get(t.Context(), path); page.Status != http.StatusOK {
			t.Errorf("%s without a sidecar: got %d %s", path, page.Status, page.Text)
		}
	}
	if page := console.Get(t.Context(), "/config"); page.Status != http.StatusNotFound {
		t.Errorf("/config: got %d", page.Status)
	}
	console.Signal(syscall.SIGTERM)
	if code := console.Exit(t); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

func TestConsoleRefusesWhatOthersReach(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--addr 0.0.0.0:0":       "--addr is \"0.0.0.0:0\", so other machines could read all messages there",
		"--ui off":               "--ui is off, but this process serves nothing else",
		"--ui maybe":             "--ui is \"maybe\", must be off, read-only or on",
		"--store memory":         "--store memory is inside of its sidecar",
		"--addr 127.0.0.1:99999": "its port must be 0 to 65535",
	} {
		args := append([]string{"console", "--store", "redis://127.0.0.1:1"}, strings.Fields(flags)...)
		if code, out := sidecartest.Run(t, args...); code == 0 || !strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s", flags, code, out)
		}
	}
}
