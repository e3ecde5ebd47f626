package main

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// Every line of the log is JSON with readable durations and without empty errors, a call names its entity, and the last
// line is "stopped".
func TestLogLinesOfARun(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory", "--log-level", "debug")
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")
	s.Complete(t, "q", wantMessage(t, s, "q", "one"))
	s.Call(t.Context(), http.MethodPost, "/q/messages", "two")
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
	lines := strings.Split(strings.TrimSpace(s.Log()), "\n")
	var last map[string]any
	calls := 0
	for _, line := range lines {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if last["msg"] == "call" {
			calls++
			if want := map[any]string{"compat": "q"}[last["wire"]]; last["entity"] != cmp.Or(want, "queues/q") {
				t.Errorf("the call does not name its entity: %s", line)
			}
		}
		for name, value := range last {
			if value == nil {
				t.Errorf("%s is null in %s", name, line)
			}
			switch n, isNumber := value.(float64); name {
			case "duration", "took", "timeout", "budget", "wait", "for":
				if isNumber {
					t.Errorf("%s is the number %v in %s", name, n, line)
				}
			}
		}
	}
	if calls < 5 {
		t.Errorf("%d calls are logged, want at least 5", calls)
	}
	if last["msg"] != "stopped" {
		t.Errorf("the last line is %v", last)
	}
}
