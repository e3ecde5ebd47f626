package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// A sidecar finds two queues that nobody has used for an hour, as after a long outage. It removes the one, when it has
// been at work for half a minute. On the other a receive waits: by then it has told so.
func TestIDLE_5_WaitSurvivesAnOutage(t *testing.T) {
	t.Parallel()
	url, namespace := redistest.URL(t), redistest.Namespace()
	options := redistest.ClientOptions(t, url)
	raw := redis.NewClient(options)
	defer raw.Close()
	s := sidecartest.Start(t, "--store", url, "--namespace", namespace, "--log-format", "json",
		// an outage, which a busy machine can look like, would begin the half minute again
		"--redis-read-timeout", "2m")
	began := time.Now()
	key := func(queue, part string) string { return fmt.Sprintf("sb:{%s/%s}:%s", namespace, queue, part) }
	for _, queue := range []string{"left", "awaited"} {
		s.Queue(t, queue, `{"autoDeleteOnIdle":"300s"}`)
	}
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	defer func() { stop(); work.Wait() }()
	work.Go(func() { s.Call(ctx, http.MethodPost, "/v1/queues/awaited/messages:receive", `{"maxWait":"300s"}`) })
	awaitSeen(t, "the receive waits", func() bool { return raw.ZCard(t.Context(), key("awaited", "waiting")).Val() == 1 })
	for _, queue := range []string{"left", "awaited"} {
		hourAgo := time.Now().Add(-time.Hour).UnixMilli()
		raw.HSet(t.Context(), key(queue, "entity"), "accessed_ms", hourAgo, "alarm_ms", hourAgo)
		raw.ZAdd(t.Context(), "sb:{"+namespace+"}:alarms", redis.Z{Score: float64(hourAgo), Member: queue})
	}
	ctx, cancel := context.WithTimeout(ctx, sidecartest.Patience)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); !strings.Contains(s.Log(), "deleted because idle"); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("nothing was removed:\n%s", s.Log())
		}
	}
	if took := time.Since(began); took < 25*time.Second {
		t.Errorf("removed within %s of the start", took)
	}
	if answer := s.Call(t.Context(), http.MethodGet, "/v1/queues/left", ""); answer.Status != http.StatusNotFound {
		t.Errorf("what nobody wants: %d %s", answer.Status, answer.Text)
	}
	s.Must(t, http.MethodGet, "/v1/queues/awaited", "")
	if want := `"kind":"queue","entity":"left"`; !strings.Contains(s.Log(), want) {
		t.Errorf("the log lacks %s:\n%s", want, s.Log())
	}
	if want, metrics := `sidebus_removed_entities_total{kind="queue"} 1`, s.Probe(t.Context(), http.MethodGet, "/metrics").Text; !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %s", want)
	}
}
