package console

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

const (
	operatorToken = "token-of-the-operator-1"
	clerkToken    = "token-of-the-clerk-0001"
)

const policy = `identities:
- name: operator
  tokenFiles: [operator.token]
  grants:
  - {entities: ["*"], claims: [Send, Listen, Manage]}
- name: clerk
  tokenFiles: [clerk.token]
  grants:
  - {entities: [orders], claims: [Listen]}
`

func TestSignIn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, "policy.yaml", policy)
	write(t, folder, "operator.token", operatorToken)
	write(t, folder, "clerk.token", clerkToken)
	s := sidecartest.Start(t, append(store(t), "--policy-file", filepath.Join(folder, "policy.yaml"))...)
	browse(t, "signin.mjs", fmt.Sprintf("http://%s/ui/", s.Admin), "OPERATOR="+operatorToken, "CLERK="+clerkToken)
}

func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A console that other machines reach only reads, unless the operator says otherwise.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	s := openShop(t, append(store(t), "--admin-addr", "0.0.0.0:0", "--allow-anonymous")...)
	s.must(http.MethodPut, "/v1/queues/claims", `{"requiresSession":true,"sessionOnDeadLetter":"BLOCK"}`)
	s.block("claims", "claim-7")
	s.fill()
	_, port, err := net.SplitHostPort(s.Admin)
	if err != nil {
		t.Fatal(err)
	}
	browse(t, "lookonly.mjs", fmt.Sprintf("http://127.0.0.1:%s/ui/", port))
}

// A page that is open says that Redis is down, and goes on when it is back. So it does when the sidecar is restarted.
func TestOutage(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	t.Cleanup(redis.Stop)
	flags := []string{"--store", redis.URL, "--namespace", "shop"}
	s := openShop(t, flags...)
	front := &front{}
	front.set(s.Admin)
	server := httptest.NewServer(front)
	t.Cleanup(server.Close)
	control := http.NewServeMux()
	control.HandleFunc("/redis/down", func(http.ResponseWriter, *http.Request) { redis.Kill() })
	control.HandleFunc("/redis/up", func(http.ResponseWriter, *http.Request) { redis.Restart(t) })
	control.HandleFunc("/sidecar/down", func(http.ResponseWriter, *http.Request) { s.Kill() })
	control.HandleFunc("/sidecar/up", func(http.ResponseWriter, *http.Request) {
		front.set(sidecartest.Start(t, flags...).Admin)
	})
	controls := httptest.NewServer(control)
	t.Cleanup(controls.Close)
	browse(t, "outage.mjs", server.URL+base+"/ui/", "CONTROL="+controls.URL)
}

const base = "/ops/sidebus" // where a front serves a console

// front is a reverse proxy that serves the console of a sidecar below a path.
type front struct{ backend atomic.Pointer[url.URL] }

func (f *front) set(admin string) { f.backend.Store(&url.URL{Scheme: "http", Host: admin}) }

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.URL.Path, base+"/") {
		http.Error(w, "the page has left the path of the console", http.StatusTeapot)
		return
	}
	proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(f.backend.Load())
		p.Out.URL.Path = strings.TrimPrefix(p.In.URL.Path, base)
		p.Out.URL.RawPath = strings.TrimPrefix(p.In.URL.RawPath, base)
		p.Out.Host = p.In.Host
	}}
	proxy.ServeHTTP(w, r)
}

func TestBehindAProxy(t *testing.T) {
	t.Parallel()
	s := openShop(t, store(t)...)
	s.fill()
	s.open()
	front := &front{}
	front.set(s.Admin)
	for scheme, serve := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		t.Run(scheme, func(t *testing.T) {
			server := serve(front)
			defer server.Close()
			browse(t, "proxy.mjs", server.URL+base+"/ui/")
		})
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certified := httptest.NewTLSServer(http.NotFoundHandler())
	pair := certified.TLS.Certificates[0]
	certified.Close()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	cert := write(t, folder, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	private := write(t, folder, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	s := sidecartest.Launch(t, append(store(t), "--tls-cert-file", cert, "--tls-key-file", private)...)
	browse(t, "proxy.mjs", fmt.Sprintf("https://%s/ui/", s.Admin), "EMPTY=1")
}

// A page of another site can neither read the console, nor act through it, nor frame it.
func TestOtherSites(t *testing.T) {
	t.Parallel()
	s := openShop(t, store(t)...)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<!doctype html><title>another site</title>"))
	}))
	t.Cleanup(evil.Close)
	browse(t, "othersites.mjs", s.ui(), "EVIL="+evil.URL)
}
