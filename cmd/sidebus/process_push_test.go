package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/filetest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// pushedApp is an app that receives pushes on an address of its own, and can be stopped and started there.
type pushedApp struct {
	network, address string
	answer           func(w http.ResponseWriter, r *http.Request, body string)
	server           *http.Server
	served           sync.WaitGroup

	mu     sync.Mutex
	bodies []string
}

func (a *pushedApp) start(t *testing.T) {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), a.network, a.address)
	if err != nil {
		t.Fatal(err)
	}
	if a.network == "tcp" {
		a.address = listener.Addr().String()
	}
	a.server = &http.Server{Handler: a} //nolint:gosec // it serves one sidecar of a test
	a.served.Go(func() { _ = a.server.Serve(listener) })
	t.Cleanup(a.stop)
}

func (a *pushedApp) stop() {
	_ = a.server.Close()
	a.served.Wait()
}

func (a *pushedApp) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	a.bodies = append(a.bodies, string(body))
	a.mu.Unlock()
	a.answer(w, r, string(body))
}

func (a *pushedApp) seen() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return strings.Join(a.bodies, " ")
}

func total(t *testing.T, s *sidecartest.Sidecar, queue string) string {
	t.Helper()
	count, _ := s.Must(t, http.MethodGet, "/v1/queues/"+queue+"/runtime", "").Body["totalMessageCount"].(string)
	return count
}

// within waits for a channel, but not for ever.
func within[T any](t *testing.T, c <-chan T) {
	t.Helper()
	patience := time.NewTimer(sidecartest.Patience)
	defer patience.Stop()
	select {
	case <-c:
	case <-patience.C:
		t.Fatal("it did not happen")
	}
}

// A sidecar with handlers, from its file to the app and back, over TCP and over a socket: a queue that comes late, an
// app that comes late, goes and comes again, and a drain with a call under way.
func TestHandlersOfServe(t *testing.T) {
	t.Parallel()
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			t.Parallel()
			working, release := make(chan string, 10), make(chan struct{})
			app := &pushedApp{network: network, address: "127.0.0.1:0"}
			app.answer = func(w http.ResponseWriter, r *http.Request, body string) {
				if r.URL.Path != "/on-order" || r.Header.Get("Color") != `"red"` && !strings.HasPrefix(body, "drain") {
					w.Header().Set("Sidebus-Settle", "dead-letter")
					w.Header().Set("Sidebus-Reason", r.URL.Path)
				}
				if strings.HasPrefix(body, "drain") {
					working <- body
					select {
					case <-release:
					case <-r.Context().Done():
					}
				}
			}
			if network == "unix" {
				app.address = filepath.Join(t.TempDir(), "app.sock")
			}
			app.start(t)
			app.stop() // its address is known, and nobody listens
			url := "http://" + app.address + "/on-order"
			if network == "unix" {
				url = "unix://" + app.address + ":/on-order"
			}
			config := filetest.Write(t, fmt.Sprintf("store: %s\nnamespace: %s\ndrain-timeout: 10s\nhandlers:\n  - {source: queues/orders, url: %q, maxConcurrent: 2}\n",
				redistest.URL(t), redistest.Namespace(), url))
			s := sidecartest.Start(t, "--config", config)
			awaitSeen(t, "a word about the missing queue", func() bool { return strings.Contains(s.Log(), "cannot be received from") })
			s.Queue(t, "orders", `{"lockDuration":"5m"}`)
			s.Must(t, http.MethodPost, "/v1/queues/orders/messages:send", `{"messages":[{"text":"one","properties":{"Color":"red"}},{"text":"two","properties":{"Color":"red"}}]}`)
			awaitSeen(t, "a word about the app", func() bool { return strings.Contains(s.Log(), "does not accept connections") })
			if n := total(t, s, "orders"); n != "2" {
				t.Errorf("%s messages while the app is down", n)
			}
			app.start(t)
			awaitSeen(t, "an empty queue", func() bool { return total(t, s, "orders") == "0" })
			if got := app.seen(); got != "one two" && got != "two one" {
				t.Errorf("calls: %s", got)
			}
			for _, want := range []string{`sidebus_pushes_total{handler="queues/orders",outcome="complete"} 2`, `sidebus_handler_reachable{handler="queues/orders"} 1`} {
				awaitSeen(t, want, func() bool { return strings.Contains(s.Probe(t.Context(), http.MethodGet, "/metrics").Text, want) })
			}
			if shown := s.Probe(t.Context(), http.MethodGet, "/config").Text; !strings.Contains(shown, "queues/orders to ") {
				t.Errorf("/config lacks the handler: %s", shown)
			}

			s.Send(t, "orders", "drain-1")
			within(t, working)
			s.Signal(syscall.SIGTERM)
			sidecartest.Eventually(t, "readiness fails", func() bool { return !isReady(t, s) })
			s.Send(t, "orders", "later")
			close(release)
			if code := s.Exit(t); code != cli.Clean {
				t.Errorf("got exit code %d, want 0", code)
			}
			if strings.Contains(app.seen(), "later") {
				t.Error("a call was begun while draining")
			}
			if strings.Contains(s.Log(), "released messages") {
				t.Error("the call under way was cut off")
			}
		})
	}
}

// A call that takes longer than the drain is cut off, and its message goes to another sidecar uncounted.
func TestDrainCutsOffAPush(t *testing.T) {
	t.Parallel()
	working, isGone := make(chan string, 10), make(chan struct{})
	app := &pushedApp{network: "tcp", address: "127.0.0.1:0"}
	app.answer = func(_ http.ResponseWriter, r *http.Request, body string) {
		working <- body
		<-r.Context().Done()
		close(isGone)
	}
	app.start(t)
	store, namespace := redistest.URL(t), redistest.Namespace()
	config := filetest.Write(t, "handlers: [{source: queues/orders, url: \"http://"+app.address+"\"}]\n")
	first := sidecartest.Start(t, "--store", store, "--namespace", namespace, "--config", config, "--drain-timeout", "100ms")
	second := sidecartest.Start(t, "--store", store, "--namespace", namespace)
	second.Queue(t, "orders", `{"lockDuration":"5m"}`)
	second.Send(t, "orders", "one")
	within(t, working)
	first.Signal(syscall.SIGTERM)
	if code := first.Exit(t); code != cli.Clean {
		t.Errorf("got exit code %d, want 0", code)
	}
	within(t, isGone)
	if again := wantMessage(t, second, "orders", "one"); again.DeliveryCount != 1 {
		t.Errorf("delivery count %d, want 1", again.DeliveryCount)
	}
}

// The REST API of Service Bus, with shared access, from the flag to the answer.
func TestAUTH_5_SharedAccessOfServe(t *testing.T) {
	t.Parallel()
	keys := filetest.Write(t, "sender: {primaryKey: s3cret, claims: [Send]}\nowner: {primaryKey: m=n, claims: [Send, Listen, Manage]}\n")
	s := sidecartest.Start(t, "--store", "memory", "--sas-keys-file", keys)
	owner, sender := filetest.Write(t, "owner=m=n\n"), filetest.Write(t, "sender=s3cret")
	for _, c := range []struct {
		key  []string
		want string
	}{{nil, "UNAUTHENTICATED"}, {[]string{"--sas-key-file", sender}, "PERMISSION_DENIED"}, {[]string{"--sas-key-file", owner}, ""}} {
		args := append([]string{"entity", "create", "queues/orders", "--grpc-addr", s.GRPC}, c.key...)
		if code, out := sidecartest.Run(t, args...); !strings.Contains(out, c.want) || (code == cli.Clean) != (c.want == "") || strings.Contains(out, "s3cret") {
			t.Errorf("%q: got exit code %d and %s", args, code, out)
		}
	}
	send := func(token string) int {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+s.HTTP+"/orders/messages", strings.NewReader("one"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header["Authorization"] = []string{token}
		request.Header["orderID"] = []string{"7"}
		response, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		return response.StatusCode
	}
	// Made with openssl as docs/compat-rest.md shows.
	const token = "SharedAccessSignature sr=http%3A%2F%2Flocalhost%2Forders&sig=Z5udtR%2BluiJki0pEZw7GNxbLFEp0Fy19nfyf8d7Ayms%3D&se=4102444800&skn=sender"
	if status := send(strings.Replace(token, "sig=", "sig=x", 1)); status != http.StatusUnauthorized {
		t.Errorf("with a wrong signature: got %d", status)
	}
	if status := send(token); status != http.StatusCreated {
		t.Errorf("with a good token: got %d", status)
	}
	if answer := s.Call(t.Context(), http.MethodPost, "/v1/queues/orders/messages:peek", `{}`); answer.Status != http.StatusUnauthorized {
		t.Errorf("the native API without a token: got %d %s", answer.Status, answer.Text)
	}
	if code, out := sidecartest.Run(t, "peek", "orders", "-o", "json", "--grpc-addr", s.GRPC, "--sas-key-file", owner); code != cli.Clean || !strings.Contains(out, "orderID") {
		t.Errorf("peek: got exit code %d and %s", code, out)
	}
	if strings.Contains(s.Log(), "s3cret") || strings.Contains(s.Probe(t.Context(), http.MethodGet, "/config").Text, "s3cret") {
		t.Error("the key is shown")
	}
}
