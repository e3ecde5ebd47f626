package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// Nobody calls and nobody probes: the log says when Redis went away, why, and when it came back.
func TestERR_1_AnIdleSidecarLogsAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := sidecartest.Start(t, "--store", server.URL)
	server.Kill()
	sidecartest.Eventually(t, "the outage is logged", func() bool {
		return strings.Contains(s.Log(), `"msg":"store unavailable","cause":"redis_unreachable"`)
	})
	server.Restart(t)
	sidecartest.Eventually(t, "its end is logged", func() bool {
		return strings.Contains(s.Log(), `"msg":"store is available again"`) && strings.Contains(s.Log(), `"after":`)
	})
}

// A wrong password is named wherever the operator looks, and not shown.
func TestERR_1_AWrongPasswordIsNamed(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := sidecartest.Launch(t, "--store", strings.Replace(server.URL, "unix://", "unix://nobody:s3cret@", 1))
	var startup, ready sidecartest.Answer
	sidecartest.Eventually(t, "/startup gives the cause", func() bool {
		startup, ready = s.Probe(t.Context(), http.MethodGet, "/startup"), s.Probe(t.Context(), http.MethodGet, "/readiness")
		return startup.Body["cause"] == "redis_wrongpass" && ready.Body["cause"] == "redis_wrongpass"
	})
	if startup.Status != http.StatusServiceUnavailable || startup.Body["state"] != "starting" {
		t.Errorf("/startup: got %d %s", startup.Status, startup.Text)
	}
	code, output := sidecartest.Run(t, "wait", "--admin-addr", s.Admin, "--timeout", "200ms")
	if code != cli.Failure || !strings.Contains(output, "WRONGPASS") {
		t.Errorf("wait: got exit code %d and %q, want 1 and what Redis said", code, output)
	}
	if all := startup.Text + ready.Text + output + s.Log(); strings.Contains(all, "s3cret") {
		t.Errorf("the password shows in\n%s", all)
	}
}
