package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// Doctor says what it finds beside a running sidecar, in words and as JSON, and exits with 1 only for a problem.
func TestDoctor(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := sidecartest.Start(t, "--store", server.URL)
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")

	code, output := sidecartest.Run(t, "doctor", "--store", server.URL)
	for _, want := range []string{
		"ok       version", "warning  memory", "-> set maxmemory", "queues and topics checked: 1", "problems: 0, warnings: 2",
	} {
		if code != 0 || !strings.Contains(output, want) {
			t.Errorf("exit %d, no %q in\n%s", code, want, output)
		}
	}

	raw := redis.NewClient(redistest.ClientOptions(t, server.URL))
	defer raw.Close()
	if err := raw.HSet(t.Context(), "sb:{default/q}:entity", "bytes", 7).Err(); err != nil {
		t.Fatal(err)
	}
	code, output = sidecartest.Run(t, "doctor", "q", "--store", server.URL, "--quiet", "-o", "json")
	var last semantics.Finding
	for line := range strings.Lines(output) {
		if found := (semantics.Finding{}); json.Unmarshal([]byte(line), &found) == nil {
			if last = found; found.Severity == semantics.Fine {
				t.Errorf("--quiet: %+v", found)
			}
		}
	}
	if code != 1 || last.Where != "q" || last.Severity != semantics.Problem || last.Advice == "" {
		t.Errorf("exit %d, got %+v of\n%s", code, last, output)
	}
}

func TestDoctorThatCannotLook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--store", "memory"}, 2, "no other process can read it"},
		{[]string{"--store", "embedded", "--data-dir", t.TempDir()}, 1, "no sidecar runs with its data in"},
		{[]string{"--store", "redis://user:s3cret@127.0.0.1:1"}, 1, "Redis cannot be reached"},
		{[]string{"--store", "redis://h", "--namespace", "a b"}, 1, "--namespace"},
		{[]string{"--store", "redis://h", "--redis-pool-size", "0"}, 1, "--redis-pool-size"},
		{[]string{"nope", "--store", redistest.URL(t), "--namespace", redistest.Namespace()}, 1, `entity "nope" does not exist`},
	} {
		code, output := sidecartest.Run(t, append([]string{"doctor"}, c.args...)...)
		if code != c.code || !strings.Contains(output, c.says) || strings.Contains(output, "s3cret") {
			t.Errorf("%q: exit %d, %s", c.args, code, output)
		}
	}
}
