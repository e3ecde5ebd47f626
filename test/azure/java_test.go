package azure

import (
	"os"
	"os/exec"
	"testing"
)

// jars has the SDK, which "make test-azure" installs.
const jars = "../../.tmp/azure-java"

// TestJava runs a program with the official SDK for Java.
func TestJava(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(jars); err != nil {
		t.Fatalf("the SDK is not installed; run make test-azure: %v", err)
	}
	s := start(t)
	createLifecycle(t, s)
	out, err := exec.CommandContext(patient(t), "java", "-cp", jars+"/*", "java/Client.java", connectionString(s)).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
