package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/test/sidecartest"
)

// A shell with curl is a whole client of the REST API of Service Bus.
func TestREST_1_AShellIsAClient(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory")
	command := exec.Command("bash", "../../examples/curl-compat/session.sh")
	command.Env = append(sidecartest.Environment(), "SIDEBUS=http://"+s.HTTP, "no_proxy=*")
	out, err := command.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "complete: 200") {
		t.Fatalf("%v\n%s", err, out)
	}
	for path, what := range map[string]string{"/v1/queues/curl-orders/runtime": "queue", "/v1/topics/curl-news/subscriptions/all/runtime": "subscription"} {
		left := s.Must(t, "GET", path, "")
		if total := left.Body["totalMessageCount"]; total != nil && total != "0" {
			t.Errorf("the %s holds %v messages: %s", what, total, left.Text)
		}
	}
}
