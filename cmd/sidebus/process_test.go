package main

import (
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// wantMessage receives one message with the text and gives it back under lock.
func wantMessage(t *testing.T, s *sidecartest.Sidecar, queue, text string) sidecartest.Message {
	t.Helper()
	got := s.Receive(t, queue, time.Minute)
	if len(got) != 1 || got[0].Text != text {
		t.Fatalf("receive: got %+v, want the one message %q", got, text)
	}
	return got[0]
}

func isReady(t *testing.T, s *sidecartest.Sidecar) bool {
	t.Helper()
	return s.Probe(t.Context(), http.MethodGet, "/readiness").Status == http.StatusOK
}

func TestServeEmbedded(t *testing.T) {
	t.Parallel()
	sidecartest.Binary(t)
	began := time.Now()
	s := sidecartest.Start(t)
	t.Logf("ready after %s with a private server", time.Since(began))
	s.Queue(t, "orders", `{"lockDuration":"30s"}`)
	s.Send(t, "orders", "one")
	s.Complete(t, "orders", wantMessage(t, s, "orders", "one"))
	if got := s.Receive(t, "orders", 0); len(got) != 0 {
		t.Errorf("after complete: got %+v, want nothing", got)
	}
	for _, word := range []string{
		"Sidebus is listening", s.HTTP, s.GRPC, s.Admin, "embedded", `"namespace":"default"`, `"console":"http://` + s.Admin + `/ui/"`,
	} {
		if !strings.Contains(s.Log(), word) {
			t.Errorf("the start line lacks %q", word)
		}
	}
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
}

func TestServeMemorySaysThatNothingSurvives(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory")
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")
	s.Complete(t, "q", wantMessage(t, s, "q", "one"))
	if !strings.Contains(s.Log(), "nothing survives") {
		t.Error("the log does not say that nothing survives")
	}
}

func TestFirstSignalDrains(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace())
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "in hand")
	s.Send(t, "q", "not yet taken")
	inHand := wantFirst(t, s, "q")

	s.Signal(syscall.SIGTERM)
	sidecartest.Eventually(t, "readiness fails", func() bool { return !isReady(t, s) })
	refused := s.Call(t.Context(), http.MethodPost, "/v1/queues/q/messages:receive", `{"maxWait":"0s"}`)
	if refused.Status != http.StatusServiceUnavailable || refused.Body["reason"] != "STORE_UNAVAILABLE" {
		t.Errorf("receive while draining: got %d %s, want 503 STORE_UNAVAILABLE", refused.Status, refused.Text)
	}
	s.Send(t, "q", "sent while draining")
	s.Complete(t, "q", inHand)
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
}

// wantFirst receives exactly one message.
func wantFirst(t *testing.T, s *sidecartest.Sidecar, queue string) sidecartest.Message {
	t.Helper()
	answer := s.Must(t, http.MethodPost, "/v1/queues/"+queue+"/messages:receive", `{"maxMessages":1,"maxWait":"10s"}`)
	messages, _ := answer.Body["messages"].([]any)
	if len(messages) != 1 {
		t.Fatalf("receive: got %s, want one message", answer.Text)
	}
	m, _ := messages[0].(map[string]any)
	token, _ := m["lockToken"].(string)
	return sidecartest.Message{LockToken: token}
}

func TestDrainGivesBackWhatIsLeft(t *testing.T) {
	t.Parallel()
	store, namespace := redistest.URL(t), redistest.Namespace()
	first := sidecartest.Start(t, "--store", store, "--namespace", namespace, "--drain-timeout", "100ms")
	second := sidecartest.Start(t, "--store", store, "--namespace", namespace)
	first.Queue(t, "q", `{"lockDuration":"5m"}`)
	first.Send(t, "q", "one")
	wantMessage(t, first, "q", "one")
	first.Signal(syscall.SIGTERM)
	if code := first.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
	// The lock would have lasted five minutes; an interrupted delivery is not counted.
	if again := wantMessage(t, second, "q", "one"); again.DeliveryCount != 1 {
		t.Errorf("delivery count after the drain: got %d, want 1", again.DeliveryCount)
	}
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	for signal, want := range map[syscall.Signal]int{syscall.SIGTERM: 143, syscall.SIGINT: 130} {
		t.Run(signal.String(), func(t *testing.T) {
			t.Parallel()
			data := t.TempDir()
			s := sidecartest.Start(t, "--data-dir", data, "--drain-timeout", "1h")
			s.Queue(t, "q", `{"lockDuration":"5m"}`)
			s.Send(t, "q", "one")
			wantMessage(t, s, "q", "one")
			s.Signal(syscall.SIGTERM)
			sidecartest.Eventually(t, "readiness fails", func() bool { return !isReady(t, s) })
			s.Signal(signal)
			if code := s.Exit(t); code != want {
				t.Errorf("got exit code %d, want %d", code, want)
			}
			sidecartest.Eventually(t, "the private server is gone", func() bool { return !serverAnswers(data) })
		})
	}
}

// serverAnswers reports whether somebody listens on the private server's socket.
func serverAnswers(data string) bool {
	conn, err := net.Dial("unix", filepath.Join(data, "redis.sock"))
	if err != nil {
		return false
	}
	_ = conn.Close()
	return true
}

func TestKilledSidecarLeavesNoServerAndLosesNothing(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := sidecartest.Start(t, "--data-dir", data)
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")
	s.Kill()
	sidecartest.Eventually(t, "the private server is gone", func() bool { return !serverAnswers(data) })

	s = sidecartest.Start(t, "--data-dir", data)
	s.Complete(t, "q", wantMessage(t, s, "q", "one"))
}

func TestSidecarSurvivesItsPrivateServer(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	s := sidecartest.Start(t, "--data-dir", data)
	s.Queue(t, "q", `{}`)
	s.Send(t, "q", "one")
	client := redis.NewClient(&redis.Options{Network: "unix", Addr: filepath.Join(data, "redis.sock")})
	defer client.Close()
	info := client.InfoMap(t.Context(), "server").Val()
	pid, err := strconv.Atoi(info["Server"]["process_id"])
	if err != nil {
		t.Fatalf("process id of the private server: %v in %v", err, info)
	}
	// While its disk is slow, Redis delays writing, and loses what it has not written (docs/guarantees.md).
	sidecartest.Eventually(t, "Redis has written its append-only file", func() bool {
		return client.InfoMap(t.Context(), "persistence").Val()["Persistence"]["aof_buffer_length"] == "0"
	})
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	sidecartest.Eventually(t, "the sidecar serves again", func() bool {
		answer := s.Call(t.Context(), http.MethodPost, "/v1/queues/q/messages:receive", `{"maxWait":"0s"}`)
		return answer.Status == http.StatusOK && strings.Contains(answer.Text, `"one"`)
	})
	if !strings.Contains(s.Log(), "ended unexpectedly") {
		t.Error("the log does not say that the private server died")
	}
}

func TestSecondSidecarOnTheSameData(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	sidecartest.Start(t, "--data-dir", data)
	second := sidecartest.Launch(t, "--data-dir", data)
	if code := second.Exit(t); code != cli.Failure || !strings.Contains(second.Log(), "in use by another sidecar") || !strings.Contains(second.Log(), "choose another with --data-dir") {
		t.Errorf("got exit code %d and %q; want 1 and a word of the other sidecar", code, second.Log())
	}
}

// The first call is let through and makes a debt, a management call being dearer than the whole bucket.
func TestQUOTA_10_RateLimitOfServe(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", "memory", "--rate-limit", "0.1")
	s.Queue(t, "q", `{}`)
	if a := s.Call(t.Context(), http.MethodGet, "/v1/queues/q", ""); a.Status != http.StatusTooManyRequests {
		t.Errorf("got %d %s, want 429", a.Status, a.Text)
	}
	s.Signal(syscall.SIGTERM)
	if code := s.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
}
