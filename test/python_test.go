package test

import (
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// TestPythonConsumer runs the example as it is: it works through a queue, and what its handler refuses is set aside.
func TestPythonConsumer(t *testing.T) {
	t.Parallel()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal("no python3 on PATH: run `make test`, which installs it")
	}
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	s.Queue(t, "greetings%2Fmorning", `{}`)
	body := `{"messages":[{"text":"grüß Gott"},{"body":"aGVsbG8="},{"json":"{\"greeting\":\"hi\"}"},{"json":"5"}]}`
	s.Must(t, http.MethodPost, "/v1/queues/greetings%2Fmorning/messages:send", body)

	consumer := exec.Command(python, "-c", `
import runpy, sys
sys.argv = ["consumer.py", "greetings/morning", "--until-empty"]
import builtins
plain = builtins.print
def refuse_five(*words, **more):
    if words[-1] == 5:
        raise ValueError("five is no greeting")
    plain(*words, **more)
builtins.print = refuse_five
runpy.run_path("../examples/python-consumer/consumer.py", run_name="__main__")
`)
	consumer.Env = append(sidecartest.Environment(), "SIDEBUS_URL=http://"+s.HTTP, "no_proxy=*", "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8")
	out, err := consumer.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, want := range []string{"1 grüß Gott", "2 b'hello'", "3 {'greeting': 'hi'}"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the consumer did not print %q; it printed\n%s", want, out)
		}
	}
	dead := s.Must(t, http.MethodPost, "/v1/queues/greetings%2Fmorning/messages:peek", `{"subQueue":"DEAD_LETTER"}`)
	if !strings.Contains(dead.Text, "five is no greeting") {
		t.Errorf("dead letters: got %s, want the one refused", dead.Text)
	}
	counts := s.Must(t, http.MethodGet, "/v1/queues/greetings%2Fmorning/runtime", "")
	if counts.Body["totalMessageCount"] != "1" {
		t.Errorf("got %s, want the dead letter alone", counts.Text)
	}
}
