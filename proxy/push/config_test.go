package push

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics/broker"
)

func TestHandlersThatMakeNoSense(t *testing.T) {
	t.Parallel()
	good := Handler{Source: "queues/orders", URL: "http://127.0.0.1:8080/on-order"}
	for want, change := range map[string]func(*Handler){
		`source is ""`:                        func(h *Handler) { h.Source = "" },
		`source is "orders"`:                  func(h *Handler) { h.Source = "orders" },
		`source is "queues/a/b"`:              func(h *Handler) { h.Source = "queues/a/b" },
		`source is "queues/"`:                 func(h *Handler) { h.Source = "queues/" },
		`source is "queues/a%zz"`:             func(h *Handler) { h.Source = "queues/a%zz" },
		`source is "queues/a*"`:               func(h *Handler) { h.Source = "queues/a*" },
		`source is "topics/a"`:                func(h *Handler) { h.Source = "topics/a" },
		`source is "topics/a/subscriptions/"`: func(h *Handler) { h.Source = "topics/a/subscriptions/" },
		`source is "topics/a/subscriptions/b%2Fc"`: func(h *Handler) {
			h.Source = "topics/a/subscriptions/b%2Fc"
		},
		`url is "", must begin with`:          func(h *Handler) { h.URL = "" },
		`url is "ftp://x", must begin with`:   func(h *Handler) { h.URL = "ftp://x" },
		`url is "app:8080", must begin with`:  func(h *Handler) { h.URL = "app:8080" },
		`url is "http:///x", must name`:       func(h *Handler) { h.URL = "http:///x" },
		`url is "http://x#y", must name`:      func(h *Handler) { h.URL = "http://x#y" },
		`url is malformed`:                    func(h *Handler) { h.URL = "http://user:secret@x:port/" },
		`url is "unix://app.sock", must be`:   func(h *Handler) { h.URL = "unix://app.sock" },
		`url is "unix:///a:b", must be`:       func(h *Handler) { h.URL = "unix:///a:b" },
		"maxConcurrent is -1, must be 1 to 1": func(h *Handler) { h.MaxConcurrent = -1 },
		"maxConcurrent is 1001, must be":      func(h *Handler) { h.MaxConcurrent = 1001 },
		"maxConcurrentSessions is 1001, must": func(h *Handler) { h.MaxConcurrentSessions = 1001 },
		"timeout is 24h0m1s, must be":         func(h *Handler) { h.Timeout = 24*time.Hour + time.Second },
		"timeout is -1s, must be":             func(h *Handler) { h.Timeout = -time.Second },
	} {
		h := good
		change(&h)
		if _, err := h.WithDefaults(); err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	got, err := good.WithDefaults()
	if want := (Handler{good.Source, good.URL, 10, 8, 5 * time.Minute}); got != want || err != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	broker := broker.New(nil)
	defer broker.Close()
	if _, err := New([]Handler{good, {Source: "queues/ORDERS", URL: good.URL}}, broker, access.AllowAll{}, nil, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "handlers[1]") {
		t.Errorf("two handlers of one source: got %v", err)
	}
}

func TestSourcesAndTargets(t *testing.T) {
	t.Parallel()
	for resource, want := range map[string]string{
		"queues/orders": "orders", "queues/a%2Fb": "a/b", "topics/news/subscriptions/eu": "news/Subscriptions/eu", "topics/a%2fb/subscriptions/eu": "a/b/Subscriptions/eu",
	} {
		if got, err := sourceOf(resource); got.Path != want || err != nil {
			t.Errorf("%s: got %s, %v", resource, got, err)
		}
	}
	for address, want := range map[string]target{
		"http://127.0.0.1:8080/x?y=1":      {"http://127.0.0.1:8080/x?y=1", ""},
		"https://user:pass@app":            {"https://user:pass@app", ""},
		"unix:///run/app.sock":             {"http://localhost", "/run/app.sock"},
		"unix:///run/app.sock:/on?a=b%20c": {"http://localhost/on?a=b%20c", "/run/app.sock"},
	} {
		if got, err := targetOf(address); got != want || err != nil {
			t.Errorf("%s: got %+v, %v", address, got, err)
		}
	}
	if got := (Handler{URL: "https://user:pass@app/x"}).Shown(); strings.Contains(got, "pass") || !strings.Contains(got, "app/x") {
		t.Errorf("it is shown as %s", got)
	}
}
