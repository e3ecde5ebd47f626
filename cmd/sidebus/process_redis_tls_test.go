package main

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// The binary uses a Redis that accepts TLS with client certificates only, as a user of its ACL. With another authority,
// without a certificate or with another password it never becomes ready, and says why.
func TestRedisOverTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	authority := func(name string) signer {
		ca, text, _ := signer{}.sign(t, name)
		replace(t, file(name+".pem"), text)
		return ca
	}
	ca, stranger := authority("ca"), authority("stranger")
	pair := func(from signer, name string) {
		_, certificate, key := from.sign(t, name)
		replace(t, file(name+".key"), key)
		replace(t, file(name+".crt"), certificate)
	}
	pair(ca, "redis")
	pair(ca, "client")
	pair(stranger, "other")
	port := redistest.FreePort(t)
	server := redistest.Start(t, "--tls-port", port, "--bind", "127.0.0.1", "--tls-ca-cert-file", file("ca.pem"),
		"--tls-cert-file", file("redis.crt"), "--tls-key-file", file("redis.key"), "--tls-auth-clients", "yes")
	t.Cleanup(server.Stop)
	admin := redis.NewClient(redistest.ClientOptions(t, server.URL))
	defer admin.Close()
	for _, rule := range [][]any{
		{"ACL", "SETUSER", "sidecar", "on", ">secret", "~sb:*", "&sb:*", "+@all", "-flushall"}, {"ACL", "SETUSER", "default", "off"},
	} {
		if err := admin.Do(t.Context(), rule...).Err(); err != nil {
			t.Fatal(err)
		}
	}
	store := "rediss://sidecar:secret@127.0.0.1:" + port
	tls := func(ca, pair string) []string {
		args := []string{"--redis-tls-ca-file", file(ca + ".pem")}
		if pair != "" {
			args = append(args, "--redis-tls-cert-file", file(pair+".crt"), "--redis-tls-key-file", file(pair+".key"))
		}
		return args
	}
	s := sidecartest.Start(t, append(tls("ca", "client"), "--store", store)...)
	s.Queue(t, "orders", `{}`)
	s.Send(t, "orders", "over TLS")
	if got := s.Receive(t, "orders", redistest.Patience); len(got) != 1 || got[0].Text != "over TLS" {
		t.Errorf("got %+v", got)
	}

	for name, c := range map[string]struct {
		store, ca, pair, want string
	}{
		"server of another authority": {store, "stranger", "client", "certificate signed by unknown authority"},
		"client of another authority": {store, "ca", "other", "unknown certificate authority"},
		"no client certificate":       {store, "ca", "", "certificate required"},
		"no TLS":                      {"redis://sidecar:secret@127.0.0.1:" + port, "ca", "client", "Redis cannot be reached"},
		"another password":            {"rediss://sidecar:wrong@127.0.0.1:" + port, "ca", "client", "WRONGPASS"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sidecartest.Launch(t, append(tls(c.ca, c.pair), "--store", c.store)...)
			says := func() string { return s.Log() + s.Probe(t.Context(), http.MethodGet, "/readiness").Text }
			sidecartest.Eventually(t, "the reason", func() bool { return strings.Contains(says(), c.want) })
			if answer := s.Probe(t.Context(), http.MethodGet, "/readiness"); answer.Status == http.StatusOK || strings.Contains(says(), "secret") {
				t.Errorf("got %+v\n%s", answer, s.Log())
			}
		})
	}
	for name, args := range map[string][]string{
		"no file":   append(tls("none", "client"), "--store", store),
		"no key":    {"--store", store, "--redis-tls-cert-file", file("client.crt")},
		"wrong key": {"--store", store, "--redis-tls-cert-file", file("client.crt"), "--redis-tls-key-file", file("other.key")},
	} {
		if code, out := sidecartest.Run(t, append([]string{"serve"}, args...)...); code == 0 || !strings.Contains(out, "redis-tls") && !strings.Contains(out, "--store") {
			t.Errorf("%s: %d %s; want a refusal that names the flag", name, code, out)
		}
	}
}
