package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// keysFile writes a file of payload keys that were made before, of which one seals.
func keysFile(t *testing.T, path, seals string, keys map[string]string) {
	t.Helper()
	text := "sealWith: " + seals + "\nkeys:\n"
	for name, key := range keys {
		text += fmt.Sprintf("  %s: %s\n", name, key)
	}
	replace(t, path, text)
}

func newPayloadKey() string {
	var secret [32]byte
	_, _ = rand.Read(secret[:]) // it never fails
	return base64.StdEncoding.EncodeToString(secret[:])
}

// What one sidecar encrypts and is killed after, another one decrypts, also after a change of keys while both run. One
// without keys says what it lacks, and changes nothing.
func TestCRYPT_4_TheBinaryWithPayloadKeys(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	folder := t.TempDir()
	old, recent := newPayloadKey(), newPayloadKey()
	files := []string{filepath.Join(folder, "a.yaml"), filepath.Join(folder, "b.yaml")}
	for _, file := range files {
		keysFile(t, file, "y2025", map[string]string{"y2025": old})
	}
	start := func(args ...string) *sidecartest.Sidecar {
		return sidecartest.Start(t, append(args, "--store", server.URL, "--log-level", "debug")...)
	}
	a, b, without := start("--payload-keys-file", files[0]), start("--payload-keys-file", files[1]), start()
	a.Queue(t, "orders", `{}`)
	a.Queue(t, "look", `{}`)
	a.Send(t, "orders", "s3cret before the kill")
	a.Kill()
	client := redis.NewClient(redistest.ClientOptions(t, server.URL))
	defer client.Close()
	entries, err := client.XRange(t.Context(), "sb:{default/orders}:log", "-", "+").Result()
	if err != nil || len(entries) != 1 || strings.Contains(fmt.Sprint(entries), "s3cret") || !strings.Contains(fmt.Sprint(entries), "y2025") {
		t.Errorf("Redis has %v, %v", entries, err)
	}

	refused := without.Call(t.Context(), http.MethodPost, "/v1/queues/orders/messages:receive", `{}`)
	if refused.Status != http.StatusServiceUnavailable || !strings.Contains(refused.Text, `"PAYLOAD_KEY_MISSING"`) || !strings.Contains(refused.Text, `"key":"y2025"`) {
		t.Errorf("without keys: %+v", refused)
	}
	take := func(s *sidecartest.Sidecar, want string) {
		t.Helper()
		got := s.Receive(t, "orders", redistest.Patience)
		if len(got) != 1 || got[0].Text != want {
			t.Fatalf("got %+v, want %q\n%s", got, want, s.Log())
		}
		s.Complete(t, "orders", got[0])
	}
	take(b, "s3cret before the kill")

	a = start("--payload-keys-file", files[0])
	both := map[string]string{"y2025": old, "y2026": recent}
	knows := func(s *sidecartest.Sidecar, times int) {
		t.Helper()
		sidecartest.Eventually(t, "the new file", func() bool {
			s.Send(t, "look", "so that it looks at the file")
			return strings.Count(s.Log(), "the file of payload keys was read again") >= times
		})
	}
	keysFile(t, files[0], "y2025", both)
	keysFile(t, files[1], "y2025", both)
	knows(a, 1)
	knows(b, 1)
	keysFile(t, files[0], "y2026", both)
	knows(a, 2)
	a.Send(t, "orders", "with the new key")
	take(b, "with the new key")
	b.Send(t, "orders", "with the old key")
	take(a, "with the old key")
	for _, s := range []*sidecartest.Sidecar{a, b, without} {
		if log := s.Log() + s.Probe(t.Context(), http.MethodGet, "/config").Text; strings.Contains(log, old) || strings.Contains(log, recent) || strings.Contains(log, "s3cret") {
			t.Errorf("a key or a body is shown: %s", log)
		}
	}
}

func TestCRYPT_7_TheBinaryRefusesBadKeys(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.yaml")
	replace(t, path, "sealWith: a\nkeys: {a: c2hvcnQ=}\n")
	code, out := sidecartest.Run(t, "serve", "--store", redistest.URL(t), "--payload-keys-file", path)
	if code == 0 || !strings.Contains(out, "keys.a has 5 bytes, must have 32") || strings.Contains(out, "c2hvcnQ=") {
		t.Errorf("got %d %s", code, out)
	}
}
