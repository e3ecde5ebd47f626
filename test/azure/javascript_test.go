package azure

import (
	"os"
	"os/exec"
	"testing"
)

// TestJavaScript runs a program with the official SDK for JavaScript, which "make test-azure" installs.
func TestJavaScript(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("js/node_modules"); err != nil {
		t.Fatalf("the SDK is not installed; run make test-azure, or npm ci in test/azure/js: %v", err)
	}
	s := start(t)
	s.Must(t, "PUT", "/v1/queues/js", `{}`)
	s.Must(t, "PUT", "/v1/queues/js-sessions", `{"requiresSession":true}`)
	s.Must(t, "PUT", "/v1/topics/js-news", `{}`)
	s.Must(t, "PUT", "/v1/topics/js-news/subscriptions/all", `{}`)
	out, err := exec.CommandContext(patient(t), "node", "js/client.js", connectionString(s)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
