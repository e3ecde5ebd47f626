package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// deafLine leads to a Redis. While it is deaf, calls go through and are carried out, and the answers get lost with
// their connections.
type deafLine struct {
	listener net.Listener
	deaf     atomic.Bool
}

func openDeafLine(t *testing.T, url string) *deafLine {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	l := &deafLine{listener: listener}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go l.serve(client, strings.TrimPrefix(url, "unix://"))
		}
	}()
	return l
}

func (l *deafLine) serve(client net.Conn, socket string) {
	defer client.Close()
	server, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	go func() { _, _ = io.Copy(server, client); _ = server.Close() }()
	buffer := make([]byte, 64<<10)
	for {
		n, err := server.Read(buffer)
		if err != nil || l.deaf.Load() {
			return
		}
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// The answer to a send gets lost between Redis and the sidecar, after the script has run. The same call through another
// sidecar gets the first answer, and there is one message.
func TestIDEM_1_RepeatAfterTheAnswerOfRedisWasLost(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	line := openDeafLine(t, server.URL)
	sound := sidecartest.Start(t, "--store", server.URL)
	there := sidecartest.Start(t, "--store", "redis://"+line.listener.Addr().String())
	there.Queue(t, "q", `{}`)
	const path, body = "/v1/queues/q/messages:send", `{"requestId":"order-17","messages":[{"text":"one"},{"text":"two"}]}`

	// Only a connection that stands loses the answer alone; a send that certainly was not carried out is another
	// failure.
	sidecartest.Eventually(t, "an answer gets lost", func() bool {
		line.deaf.Store(false)
		there.Call(t.Context(), http.MethodGet, "/v1/queues/q", "")
		line.deaf.Store(true)
		lost := there.Call(t.Context(), http.MethodPost, path, body)
		details, _ := lost.Body["details"].(map[string]any)
		if lost.Status != http.StatusServiceUnavailable || !strings.Contains(lost.Text, "STORE_UNAVAILABLE") {
			t.Fatalf("got %d %s, want 503", lost.Status, lost.Text)
		}
		return details["outcome"] == "unknown" && strings.Contains(lost.Text, "repeat the call with the same requestId")
	})
	again := sound.Must(t, http.MethodPost, path, body)
	if again.Body["repeated"] != true {
		t.Errorf("got %s, want the first answer", again.Text)
	}
	results, _ := again.Body["results"].([]any)
	got := sound.Receive(t, "q", 0)
	if len(results) != 2 || len(got) != 2 || got[0].Text != "one" || got[1].Text != "two" {
		t.Fatalf("answered %s, received %+v; want the two messages once", again.Text, got)
	}
	for i, m := range got {
		if row, _ := results[i].(map[string]any); row["sequenceNumber"] != m.SequenceNumber {
			t.Errorf("message %d has number %s, answered was %v", i, m.SequenceNumber, row)
		}
	}
	line.deaf.Store(false)
}
