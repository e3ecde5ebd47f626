package proxy_test

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestAddresses(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, config proxy.Config) (<-chan struct{}, func() error) {
		t.Helper()
		over := memstore.New()
		broker := broker.New(over)
		t.Cleanup(broker.Close)
		p, err := proxy.New(config, broker, over, slog.New(slog.DiscardHandler), prometheus.NewRegistry())
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		t.Cleanup(stop)
		return p.Opened(), func() error { stop(); return <-ended }
	}
	config := func(t *testing.T) proxy.Config {
		t.Helper()
		dir := t.TempDir()
		return proxy.Config{
			HTTPAddr: "unix://" + filepath.Join(dir, "h"), GRPCAddr: "unix://" + filepath.Join(dir, "g"), AdminAddr: "127.0.0.1:0",
		}
	}

	t.Run("unix sockets serve and go away", func(t *testing.T) {
		t.Parallel()
		c := config(t)
		opened, end := run(t, c)
		wait(t, "opening", opened)
		conn := dial(t, c.GRPCAddr)
		if _, err := sidebusv1.NewAdminClient(conn).ListQueues(t.Context(), &sidebusv1.ListQueuesRequest{}); err != nil {
			t.Error(err)
		}
		if err := end(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(strings.TrimPrefix(c.GRPCAddr, "unix://")); err == nil {
			t.Error("the socket file is still there")
		}
	})
	t.Run("finding 31: a socket has its mode, whatever the umask is", func(t *testing.T) {
		t.Parallel()
		for given, want := range map[os.FileMode]os.FileMode{0: 0o660, 0o666: 0o666, 0o600: 0o600} {
			c := config(t)
			c.SocketMode = given
			opened, end := run(t, c)
			wait(t, "opening", opened)
			for _, addr := range []string{c.HTTPAddr, c.GRPCAddr} {
				if info, err := os.Stat(strings.TrimPrefix(addr, "unix://")); err != nil || info.Mode().Perm() != want {
					t.Errorf("%o: got %v, %v, want %o", given, info.Mode(), err, want)
				}
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("a stale socket is replaced", func(t *testing.T) {
		t.Parallel()
		c := config(t)
		path := strings.TrimPrefix(c.HTTPAddr, "unix://")
		stale, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", path)
		if err != nil {
			t.Fatal(err)
		}
		stale.(*net.UnixListener).SetUnlinkOnClose(false)
		_ = stale.Close()
		opened, end := run(t, c)
		wait(t, "opening", opened)
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	t.Run("a socket in use stays", func(t *testing.T) {
		t.Parallel()
		c := config(t)
		live, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", strings.TrimPrefix(c.HTTPAddr, "unix://"))
		if err != nil {
			t.Fatal(err)
		}
		defer live.Close() //nolint:errcheck // it is only there to be in the way
		_, end := run(t, c)
		if err := end(); err == nil || !strings.Contains(err.Error(), "another process listens on the socket") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a file that is no socket stays", func(t *testing.T) {
		t.Parallel()
		c := config(t)
		path := strings.TrimPrefix(c.HTTPAddr, "unix://")
		if err := os.WriteFile(path, []byte("keep"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, end := run(t, c)
		if err := end(); err == nil || !strings.Contains(err.Error(), "not a socket") {
			t.Errorf("got %v", err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error("the file is gone")
		}
	})
	t.Run("a used port is an error", func(t *testing.T) {
		t.Parallel()
		c := config(t)
		used, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer used.Close() //nolint:errcheck // it is only there to be in the way
		c.AdminAddr = used.Addr().String()
		_, end := run(t, c)
		if err := end(); err == nil || !strings.Contains(err.Error(), "--admin-addr: cannot listen on "+c.AdminAddr+": the address is in use") {
			t.Errorf("got %v", err)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	t.Parallel()
	good := proxy.Config{HTTPAddr: "127.0.0.1:0", GRPCAddr: "127.0.0.1:0", AdminAddr: "127.0.0.1:0"}
	bad := map[string]func(c *proxy.Config){
		"no HTTP address":        func(c *proxy.Config) { c.HTTPAddr = "" },
		"no gRPC address":        func(c *proxy.Config) { c.GRPCAddr = "" },
		"no admin address":       func(c *proxy.Config) { c.AdminAddr = "" },
		"negative drain timeout": func(c *proxy.Config) { c.DrainTimeout = -time.Second },
		"negative connections":   func(c *proxy.Config) { c.MaxConnections = -1 },
		"negative message":       func(c *proxy.Config) { c.MaxGRPCMessage = -1 },
		"negative memory":        func(c *proxy.Config) { c.RequestMemory = -1 },
		"negative request time":  func(c *proxy.Config) { c.RequestTime = -1 },
	}
	over := memstore.New()
	broker := broker.New(over)
	defer broker.Close()
	for name, change := range bad {
		config := good
		change(&config)
		if _, err := proxy.New(config, broker, over, slog.New(slog.DiscardHandler), prometheus.NewRegistry()); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// A page from elsewhere in a browser on this machine reaches loopback, and some requests need no permission to be sent.
func TestWebPagesFromElsewhereAreRefused(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	for _, url := range []string{
		"http://" + s.proxy.HTTPAddr().String() + verbPath + "send",
		"http://" + s.proxy.AdminAddr().String() + "/drain",
	} {
		request := newRequest(t, http.MethodPost, url, `{"messages":[{}]}`)
		request.Header.Set("Origin", "https://elsewhere.example")
		request.Header.Set("Content-Type", "text/plain")
		if a := s.exchange(t, request); a.status != http.StatusForbidden {
			t.Errorf("%s: got %d, want 403", url, a.status)
		}
	}
	if s.broker.Draining() || s.runtime(t).GetTotalMessageCount() != 0 {
		t.Error("the page had its way")
	}
}
