package main

import (
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestWaitingReceiveWakesOnASendThroughAnotherSidecar(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	waiting := sidecartest.Start(t, "--store", server.URL)
	sending := sidecartest.Start(t, "--store", server.URL)
	sending.Queue(t, "q", `{}`)

	arrived := make(chan time.Time)
	go func() {
		waiting.Call(t.Context(), http.MethodPost, "/v1/queues/q/messages:receive", `{"maxWait":"20s"}`)
		arrived <- time.Now()
	}()
	options := redistest.ClientOptions(t, server.URL)
	client := redis.NewClient(options)
	defer client.Close()
	sidecartest.Eventually(t, "the receive listens for wake-ups", func() bool {
		return len(client.PubSubShardChannels(t.Context(), "*").Val()) > 0
	})
	sent := time.Now()
	sending.Send(t, "q", "one")
	took := (<-arrived).Sub(sent)
	t.Logf("the waiting receive had the message after %s", took)
	if took > time.Second {
		t.Errorf("the waiting receive had the message after %s, want less than 1s", took)
	}
}

func TestStartToReadyWithRedisUp(t *testing.T) {
	t.Parallel()
	sidecartest.Binary(t)
	began := time.Now()
	sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	t.Logf("ready after %s", time.Since(began))
}

func TestRedisThatIsDownIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := sidecartest.Launch(t, "--store", "redis://127.0.0.1:1")
	sidecartest.Eventually(t, "the process is alive", func() bool {
		return s.Probe(t.Context(), http.MethodGet, "/liveness").Status == http.StatusOK
	})
	code, output := sidecartest.Run(t, "wait", "--admin-addr", s.Admin, "--timeout", "200ms")
	if code != cli.Failure || !strings.Contains(output, "Redis cannot be reached") {
		t.Errorf("wait: got exit code %d and %q; want 1 and the reason", code, output)
	}
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
}

// A server that is refused is left as it is: the sweeper has not touched what it finds there.
func TestRedisThatEvictsIsRefused(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	defer server.Stop()
	alarms := "sb:{default}:alarms"
	client := redistest.Client(t, server.URL)
	if err := client.Set(t.Context(), alarms, "of another program", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s := sidecartest.Launch(t, "--store", server.URL)
	code := s.Exit(t)
	if log := s.Log(); code != cli.Failure || !strings.Contains(log, "--redis-allow-eviction") || strings.Contains(log, "upkeep") {
		t.Errorf("got exit code %d and %q; want 1, the flag that permits it, and no upkeep", code, log)
	}
	if err := client.Del(t.Context(), alarms).Err(); err != nil {
		t.Fatal(err)
	}
	sidecartest.Start(t, "--store", server.URL, "--redis-allow-eviction")
}

func TestUsedPort(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory")
	for _, flag := range []string{"--http-addr", "--grpc-addr", "--admin-addr"} {
		second := sidecartest.Launch(t, "--store", "memory", flag, s.HTTP)
		if code := second.Exit(t); code != cli.Failure || !strings.Contains(second.Log(), s.HTTP) {
			t.Errorf("%s in use: got exit code %d and %q; want 1 and the address", flag, code, second.Log())
		}
	}
}

func TestNoServerOnPath(t *testing.T) {
	t.Parallel()
	command := exec.Command(sidecartest.Binary(t), "serve")
	command.Dir, command.Env = t.TempDir(), []string{"PATH=" + t.TempDir()}
	output, err := command.CombinedOutput()
	if err == nil || command.ProcessState.ExitCode() != cli.Failure {
		t.Errorf("got %v, want exit code 1", err)
	}
	for _, word := range []string{"--store memory", "redis-server"} {
		if !strings.Contains(string(output), word) {
			t.Errorf("the message lacks %q: %s", word, output)
		}
	}
}

func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	s := sidecartest.Launch(t, "--store", "redis://user:s3cret@127.0.0.1:1", "--log-level", "debug")
	var shown sidecartest.Answer
	sidecartest.Eventually(t, "/config answers", func() bool {
		shown = s.Probe(t.Context(), http.MethodGet, "/config")
		return shown.Status == http.StatusOK
	})
	sidecartest.Run(t, "wait", "--admin-addr", s.Admin, "--timeout", "200ms")
	if !strings.Contains(shown.Text, "redis://user:***@127.0.0.1:1") {
		t.Errorf("/config: got %s, want the masked store", shown.Text)
	}
	if strings.Contains(shown.Text+s.Log(), "s3cret") {
		t.Errorf("the password shows in\n%s\n%s", shown.Text, s.Log())
	}
}

func TestDrainVerb(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory")
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")
	wantMessage(t, s, "q", "one")
	code, output := sidecartest.Run(t, "drain", "--timeout", "50ms", "--admin-addr", s.Admin)
	if code != cli.Clean || !strings.Contains(output, "messages and sessions that clients hold: 1") {
		t.Errorf("drain: got exit code %d and %q; want 0 and one locked message", code, output)
	}
	if isReady(t, s) {
		t.Error("ready although it drains")
	}
	code, output = sidecartest.Run(t, "drain", "--timeout", "2h", "--admin-addr", s.Admin)
	if code != cli.Usage || !strings.Contains(output, "--timeout is 2h, must be 0s to 1h") {
		t.Errorf("drain with a bad timeout: got exit code %d and %q", code, output)
	}
}

func TestUnixSocketAddresses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	admin := "unix://" + dir + "/admin.sock"
	sidecartest.Launch(t, "--store", "memory", "--http-addr", "unix://"+dir+"/http.sock", "--grpc-addr", "unix://"+dir+"/grpc.sock",
		"--admin-addr", admin)
	if code, output := sidecartest.Run(t, "wait", "--admin-addr", admin); code != cli.Clean {
		t.Errorf("wait: got exit code %d and %q", code, output)
	}
}
