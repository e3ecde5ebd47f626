package redisstore_test

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

func TestCheckRefusesEviction(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--maxmemory-policy", "allkeys-lru")
	defer server.Stop()
	_, err := redistest.Open(t, redisstore.Options{URL: server.URL}).Check(t.Context())
	if semantics.CodeOf(err) != semantics.PreconditionFailed || !strings.Contains(err.Error(), "noeviction") {
		t.Errorf("got %v, want PRECONDITION_FAILED that tells what to set", err)
	}
	health, err := redistest.Open(t, redisstore.Options{URL: server.URL, AllowEviction: true}).Check(t.Context())
	if err != nil || !strings.Contains(strings.Join(health.Warnings, "\n"), "allkeys-lru") {
		t.Errorf("got %+v, %v, want a warning", health, err)
	}
}

func TestCheckTellsTheLossWindow(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"--appendonly no":                              "append-only file is off",
		"--appendfsync everysec":                       "everysec",
		"--appendfsync no":                             "appendfsync is no",
		"--appendfsync always":                         "",
		"--appendfsync always --rename-command CONFIG": "cannot be read",
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			words := strings.Fields(args)
			if words[len(words)-1] == "CONFIG" {
				words = append(words, "")
			}
			server := redistest.Start(t, words...)
			defer server.Stop()
			health, err := redistest.Open(t, redisstore.Options{URL: server.URL}).Check(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			warnings := strings.Join(health.Warnings, "\n")
			if want == "" && warnings != "" || !strings.Contains(warnings, want) {
				t.Errorf("warnings are %q, want %q", warnings, want)
			}
			if !strings.HasPrefix(health.Store, "redis ") && !strings.HasPrefix(health.Store, "valkey ") {
				t.Errorf("store is %q", health.Store)
			}
		})
	}
}

func TestCheckOfNothing(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	_, err = redistest.Open(t, redisstore.Options{URL: "redis://" + address}).Check(t.Context())
	if semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("got %v, want STORE_UNAVAILABLE", err)
	}
}

func TestCheckOfWrongPassword(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	command(t, server.URL, "CONFIG", "SET", "requirepass", "secret")
	_, err := redistest.Open(t, redisstore.Options{URL: server.URL}).Check(t.Context())
	if e := semantics.AsError(err); err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailCause] != "redis_noauth" {
		t.Errorf("got %v, want STORE_UNAVAILABLE because of redis_noauth", err)
	}
}

func TestOpenRefusesBadOptions(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]redisstore.Options{
		"no url":       {},
		"other scheme": {URL: "http://user:hush@host"},
		"namespace":    {URL: "redis://localhost", Namespace: "a/b"},
		"tls file":     {URL: "rediss://localhost", TLSCAFile: "/nowhere"},
	} {
		_, err := redisstore.Open(options)
		if err == nil {
			t.Errorf("%s: accepted", name)
		} else if strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: the error tells the password: %v", name, err)
		}
	}
}

// After Check a script is called by its hash: its text, which is long, does not travel with every call.
func TestScriptsAreCalledByHash(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	if _, err := s.Check(t.Context()); err != nil {
		t.Fatal(err)
	}
	create(t, s)
	if _, err := s.Send(t.Context(), "orders", message(10)); err != nil {
		t.Fatal(err)
	}
	receiveOne(t, s)
	options := redistest.ClientOptions(t, server.URL)
	client := redis.NewClient(options)
	defer client.Close()
	stats, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(stats, "cmdstat_eval:") || strings.Contains(stats, "cmdstat_eval_ro:") {
		t.Errorf("scripts were sent as text:\n%s", stats)
	}
}

// A Redis that takes connections and does not answer: a probe learns so within its own time, not that of a call.
func TestERR_6_ASilentRedisHoldsUpNoProbe(t *testing.T) {
	t.Parallel()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections := make(chan net.Conn, 100)
	go func() {
		defer close(connections)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			connections <- conn
		}
	}()
	s, err := redisstore.Open(redisstore.Options{
		URL: "redis://" + listener.Addr().String(), Namespace: redistest.Namespace(), PoolSize: 1, ReadTimeout: redistest.Patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := s.Check(ctx)
		cancel()
		e := semantics.AsError(err)
		if e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailCause] != "redis_unreachable" || e.Message != "Redis does not answer; nothing was changed" {
			t.Errorf("got %v %v, want STORE_UNAVAILABLE", err, e.Details)
		}
	}
	if took := time.Since(began); took > redistest.Patience/2 {
		t.Errorf("took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ctx); semantics.CodeOf(err) != semantics.Cancelled {
		t.Errorf("a caller that went away: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	_ = listener.Close()
	for conn := range connections {
		_ = conn.Close()
	}
}
