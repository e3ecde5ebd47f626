package main

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// Every line of the log is JSON with readable durations and without empty errors, and the last one is "stopped".
func TestLogLinesOfARun(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory", "--log-level", "debug")
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")
	s.Complete(t, "q", wantMessage(t, s, "q", "one"))
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
	lines := strings.Split(strings.TrimSpace(s.Log()), "\n")
	var last map[string]any
	for _, line := range lines {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%v in %s", err, line)
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
	if last["msg"] != "stopped" {
		t.Errorf("the last line is %v", last)
	}
}
