package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// awaitSeen looks until it finds what it wants, or the test has waited too long.
func awaitSeen(t *testing.T, what string, found func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), sidecartest.Patience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !found() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		}
	}
}

// A dead letter is counted by cause and, when asked for, logged with its message id.
func TestDLQ_24_MetricAndLogLine(t *testing.T) {
	t.Parallel()
	s := sidecartest.Start(t, "--store", redistest.URL(t), "--namespace", redistest.Namespace(), "--log-dead-letters", "--log-format", "json")
	s.Queue(t, "orders", `{"deadLetteringOnMessageExpiration":true}`)
	s.Must(t, http.MethodPost, "/v1/queues/orders/messages:send", `{"messages":[{"messageId":"m-7","text":"x","timeToLive":"0.05s"}]}`)
	awaitSeen(t, "the log line", func() bool { return strings.Contains(s.Log(), "dead letter") })
	for _, word := range []string{`"entity":"orders"`, `"cause":"TTLExpiredException"`, `"sequenceNumber":1`, `"messageId":"m-7"`} {
		if !strings.Contains(s.Log(), word) {
			t.Errorf("the log lacks %s:\n%s", word, s.Log())
		}
	}
	metrics := s.Probe(t.Context(), http.MethodGet, "/metrics").Text
	if want := `sidebus_dead_lettered_messages_total{cause="TTLExpiredException",entity="orders"} 1`; !strings.Contains(metrics, want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// What one sidecar scheduled is enqueued on time by another after the first was killed.
func TestSCHED_6_OutlivesItsSidecar(t *testing.T) {
	t.Parallel()
	url, namespace := redistest.URL(t), redistest.Namespace()
	first := sidecartest.Start(t, "--store", url, "--namespace", namespace)
	second := sidecartest.Start(t, "--store", url, "--namespace", namespace)
	first.Queue(t, "orders", `{}`)
	due := time.Now().Add(500 * time.Millisecond).UTC()
	first.Must(t, http.MethodPost, "/v1/queues/orders/messages:send",
		fmt.Sprintf(`{"messages":[{"text":"later","scheduledEnqueueTime":%q}]}`, due.Format(time.RFC3339Nano)))
	first.Kill()
	got := second.Receive(t, "orders", time.Minute)
	if len(got) != 1 || got[0].Text != "later" {
		t.Fatalf("got %+v, want the scheduled message", got)
	}
	if early := time.Until(due); early > time.Millisecond {
		t.Errorf("received %s early", early)
	}
}
