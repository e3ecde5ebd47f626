package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/filetest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// The secrets of the test: each as it is given, and as an address has it.
const (
	redisSecret = "pl4nted/redis#pw"
	wrongSecret = "pl4nted-wrong-pw"
	sasSecret   = "pl4nted-sas-key"
	inAddress   = "pl4nted%2Fredis%23pw"
)

// All that the real binary shows of itself, with secrets in every place where it takes one, shows none of them.
func TestAUTH_3_NoSecretIsShown(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	socket := strings.TrimPrefix(server.URL, "unix://")
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: socket})
	defer client.Close()
	if err := client.ConfigSet(t.Context(), "requirepass", redisSecret).Err(); err != nil {
		t.Fatal(err)
	}
	keys := filetest.Write(t, "rule: {primaryKey: "+sasSecret+", secondaryKey: "+sasSecret+"2, claims: [Send]}\n")
	common := []string{"--log-level", "debug", "--pprof", "--sas-keys-file", keys}
	for name, store := range map[string][]string{
		"in the address":      {"--store", "unix://:" + inAddress + "@" + socket},
		"in a file":           {"--store", server.URL, "--redis-password-file", filetest.Write(t, redisSecret+"\n")},
		"wrong, in a file":    {"--store", server.URL, "--redis-password-file", filetest.Write(t, wrongSecret)},
		"in the private one":  {"--store", "embedded"},
		"in the config alone": {"--config", filetest.Write(t, "store: unix://:"+inAddress+"@"+socket+"\n")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sidecartest.Launch(t, append(common, store...)...)
			if s.HTTP == "" {
				t.Fatalf("it has not started:\n%s", s.Log())
			}
			shown := &strings.Builder{}
			lookAt(t.Context(), s, shown)
			fmt.Fprintln(shown, childArguments(t, s.PID()))
			s.Signal(syscall.SIGQUIT) // the crash output: all goroutines
			s.Exit(t)
			fmt.Fprintln(shown, s.Log())
			if text := shown.String(); strings.Contains(text, "pl4nted") {
				at := strings.Index(text, "pl4nted")
				t.Errorf("a secret is shown: ...%s", text[max(0, at-300):min(len(text), at+60)])
			} else if !strings.Contains(text, "SIGQUIT: quit") || !strings.Contains(text, "redis-pool-size") || !strings.Contains(text, "UNAUTHENTICATED") {
				t.Errorf("the test has not seen the log, the settings or an answer:\n%s", text)
			}
			if isWarned := strings.Contains(s.Log(), "every process of this machine can read it"); isWarned != (name == "in the address") {
				t.Errorf("the warning of a password on the command line: got %t", isWarned)
			}
		})
	}
}

// lookAt collects what a sidecar shows over its addresses.
func lookAt(ctx context.Context, s *sidecartest.Sidecar, into *strings.Builder) {
	for _, path := range []string{
		"/startup", "/readiness", "/liveness", "/config", "/metrics", "/debug/pprof/", "/debug/pprof/cmdline", "/debug/pprof/goroutine?debug=2",
		"/debug/pprof/heap?debug=1", "/debug/pprof/symbol", "/debug/vars", "/debug/requests", "/nothing",
	} {
		fmt.Fprintln(into, path, s.Probe(ctx, http.MethodGet, path).Text)
	}
	for _, path := range []string{"/v1/queues/q/messages:peek", "/q/messages", "/openapi.json", "/none"} {
		fmt.Fprintln(into, path, s.Call(ctx, http.MethodPost, path, "{").Text)
	}
}

// childArguments gives the command lines of a process's children, and their environment.
func childArguments(t *testing.T, parent int) string {
	t.Helper()
	all := &strings.Builder{}
	stats, err := filepath.Glob("/proc/[0-9]*/status")
	if err != nil {
		t.Fatal(err)
	}
	for _, stat := range stats {
		text, err := os.ReadFile(stat) //nolint:gosec // of the system
		if err != nil || !strings.Contains(string(text), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			continue // it has ended, or is another's
		}
		for _, file := range []string{"cmdline", "environ"} {
			text, _ := os.ReadFile(filepath.Join(filepath.Dir(stat), file)) //nolint:gosec // of the system
			fmt.Fprintf(all, "%s: %q\n", file, text)
		}
	}
	return all.String()
}
