package azure

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// python is the interpreter that has the SDK, which "make test-azure" installs.
const python = "../../.tmp/azure-python/bin/python"

// runPython returns a command that runs a program with the official SDK for Python.
func runPython(t *testing.T, program string, s *sidecartest.Sidecar) *exec.Cmd {
	t.Helper()
	if _, err := os.Stat(python); err != nil {
		t.Fatalf("the SDK is not installed; run make test-azure: %v", err)
	}
	return exec.CommandContext(patient(t), python, "python/"+program, connectionString(s))
}

func TestPython(t *testing.T) {
	t.Parallel()
	s := start(t)
	createLifecycle(t, s)
	if out, err := runPython(t, "client.py", s).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestProton runs a program with a generic client, which "make test-azure" installs too.
func TestProton(t *testing.T) {
	t.Parallel()
	s := start(t)
	for _, name := range []string{"frames", "credit", "outcomes", "transactions"} {
		s.Must(t, "PUT", "/v1/queues/"+name, `{}`)
	}
	out, err := exec.CommandContext(patient(t), python, "python/generic.py", s.AMQP).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// createLifecycle creates what the programs in other languages need.
func createLifecycle(t *testing.T, s *sidecartest.Sidecar) {
	t.Helper()
	for name, options := range map[string]string{
		"messages": `{}`, "batches": `{}`, "scheduled": `{}`, "settled": `{}`, "deleted": `{}`, "forwarded": `{}`,
		"short": `{"lockDuration":"5s"}`, "sessions": `{"requiresSession":true}`,
		"short-sessions": `{"requiresSession":true,"lockDuration":"5s"}`,
		"unique":         `{"requiresDuplicateDetection":true}`, "expiring": `{"deadLetteringOnMessageExpiration":true}`,
		"large": `{"maxMessageSizeInKilobytes":1024}`, "steps": `{}`, "replies": `{}`,
	} {
		s.Must(t, "PUT", "/v1/queues/"+name, options)
	}
	s.Must(t, "PUT", "/v1/queues/forwarding", `{"forwardTo":"forwarded"}`)
	s.Must(t, "PUT", "/v1/topics/news", `{}`)
	s.Must(t, "PUT", "/v1/topics/news/subscriptions/all", `{}`)
	for name, rule := range map[string]string{
		"sql":         `{"filter":{"sql":{"expression":"region = 'eu'"}},"action":{"sql":{"expression":"SET seen = 'yes'"}}}`,
		"correlation": `{"filter":{"correlation":{"subject":"x"}}}`,
	} {
		path := "/v1/topics/news/subscriptions/" + name
		s.Must(t, "PUT", path, `{}`)
		s.Must(t, "DELETE", path+"/rules/$Default", "")
		s.Must(t, "PUT", path+"/rules/own", rule)
	}
}

// TestPythonGoesOnAfterAKill kills the sidecar under a client. It goes on with the next one, with the message that it
// has received before.
func TestPythonGoesOnAfterAKill(t *testing.T) {
	t.Parallel()
	url, addr := redistest.URL(t), freePort(t)
	flags := []string{"--store", url, "--namespace", redistest.NamespaceUntil(t, url), "--amqp-addr", addr}
	s := sidecartest.Start(t, flags...)
	s.Must(t, "PUT", "/v1/queues/held", `{}`)
	command := runPython(t, "restart.py", s)
	goOn, err := command.StdinPipe()
	must(t, err)
	said, err := command.StdoutPipe()
	must(t, err)
	command.Stderr = os.Stderr
	must(t, command.Start())
	lines := bufio.NewReader(said)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	s.Kill()
	sidecartest.Start(t, flags...)
	_, err = fmt.Fprintln(goOn)
	must(t, err)
	rest, _ := io.ReadAll(lines)
	if err := command.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, rest)
	}
}
