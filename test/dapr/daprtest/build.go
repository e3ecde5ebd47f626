// Package daprtest runs Dapr's runtime and apps for tests: a daprd built once, started on free ports and never left
// behind, and apps of every kind that daprd knows, whose deliveries a test takes and answers one by one.
package daprtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// runtimeVariable chooses the runtime: empty for the newest, or the version in the name of a folder daprd-VERSION.
const runtimeVariable = "SIDEBUS_TEST_DAPRD"

// IsConcurrent reports whether the runtime hands over to the app all that it has received on a subscription. Runtimes
// from 1.16.0 to 1.18.3 hand over one message at a time.
func IsConcurrent() bool { return os.Getenv(runtimeVariable) == "1.14" }

// IsNewest reports whether the runtime is the newest: older ones know neither Pause nor bulk publishing over the SDK.
func IsNewest() bool { return os.Getenv(runtimeVariable) == "" }

// Build builds daprd and returns its path. The file is kept, as a build that finds nothing new takes no time.
func Build() (string, error) {
	name := "daprd"
	if version := os.Getenv(runtimeVariable); version != "" {
		name += "-" + version
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/sidebus/sidebus/test/dapr").Output()
	if err != nil {
		return "", err
	}
	module := strings.TrimSpace(string(out))
	path := filepath.Join(module, "..", "..", ".tmp", name)
	build := exec.Command("go", "build", "-ldflags", "-s -w", "-o", path, ".")
	build.Dir = filepath.Join(module, name)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", name, err, out)
	}
	return path, nil
}

var build = sync.OnceValues(Build)

// Binary returns the path of daprd, which is built once for a test binary.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
