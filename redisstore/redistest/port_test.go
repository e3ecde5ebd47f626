package redistest

import (
	"os"
	"os/exec"
	"testing"
)

// A port that one caller has got is not given to another one, in this process or in another, though no server uses it.
func TestFreePortIsGivenOnce(t *testing.T) {
	t.Parallel()
	if port := os.Getenv("SIDEBUS_TEST_CLAIM"); port != "" {
		if claim(t, port) {
			t.Errorf("port %s was given twice", port)
		}
		return
	}
	port := FreePort(t)
	if claim(t, port) {
		t.Errorf("port %s was given twice", port)
	}
	other := exec.Command(os.Args[0], "-test.run", "^TestFreePortIsGivenOnce$")
	other.Env = append(os.Environ(), "SIDEBUS_TEST_CLAIM="+port)
	if out, err := other.CombinedOutput(); err != nil {
		t.Errorf("another process: %v\n%s", err, out)
	}
}
