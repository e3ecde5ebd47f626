package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/proxy/push"
)

// parseHandlers reads the handlers of a file as serve does.
func parseHandlers(t *testing.T, text string) ([]push.Handler, error) {
	t.Helper()
	from := &settings.Sources{}
	var grammar struct {
		Serve Command `cmd:""`
	}
	parser, err := kong.New(
		&grammar, settings.Vars(), settings.Durations(), kong.WithBeforeResolve(from.Load), kong.Resolvers(from),
	)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sidebus.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = parser.Parse([]string{"serve", "--config", path}); err != nil {
		return nil, err
	}
	return readHandlers(from.Handlers)
}

func TestHandlersFromTheFile(t *testing.T) {
	t.Parallel()
	got, err := parseHandlers(t, `
store: memory
handlers:
  - source: queues/orders
    url: http://127.0.0.1:8080/on-order
  - &second
    source: topics/a%2Fnews/subscriptions/eu
    url: unix:///run/app.sock:/on-news
    maxConcurrent: 1
    maxConcurrentSessions: 1000
    timeout: 24h
`)
	want := []push.Handler{
		{Source: "queues/orders", URL: "http://127.0.0.1:8080/on-order", MaxConcurrent: 10, MaxConcurrentSessions: 8, Timeout: 5 * time.Minute},
		{Source: "topics/a%2Fnews/subscriptions/eu", URL: "unix:///run/app.sock:/on-news", MaxConcurrent: 1, MaxConcurrentSessions: 1000, Timeout: 24 * time.Hour},
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, text := range []string{"handlers: []\n", "store: memory\n"} {
		if got, err := parseHandlers(t, text); len(got) != 0 || err != nil {
			t.Errorf("%q: got %v, %v", text, got, err)
		}
	}
	shown := showHandlers([]push.Handler{{Source: "queues/q", URL: "http://u:secret@app/"}}, map[string]string{})
	if text := shown["handlers[0]"]; !strings.HasPrefix(text, "queues/q to http://u:") || strings.Contains(text, "secret") {
		t.Errorf("it is shown as %q", text)
	}
}

func TestErrorsOfHandlersNameTheirPlace(t *testing.T) {
	t.Parallel()
	const good = "  source: queues/q\n  url: http://app\n"
	for name, c := range map[string]struct{ text, want string }{
		"no list":        {"handlers: 5\n", ":1: handlers must be a list of handlers"},
		"null":           {"handlers:\n", ":1: handlers must be a list of handlers"},
		"no mapping":     {"handlers:\n- queues/q\n", ":2: handlers[0] must be a mapping"},
		"unknown key":    {"handlers:\n-" + good[1:] + "  maxConcurent: 5\n", `:4: unknown key "handlers[0].maxConcurent"; keys are source, url, maxConcurrent, maxConcurrentSessions, timeout`},
		"twice":          {"handlers:\n-" + good[1:] + "  url: http://other\n", `:4: key "handlers[0].url" stands already at`},
		"no source":      {"handlers:\n- url: http://app\n", ":2: handlers[0] must have a source"},
		"no URL":         {"handlers:\n- source: queues/q\n", ":2: handlers[0] must have a url"},
		"bad source":     {"handlers:\n-" + good[1:] + "-" + strings.Replace(good[1:], "queues/q", "queue/q", 1), `:4: handlers[1].source is "queue/q"`},
		"bad URL":        {"handlers:\n- source: queues/q\n  url: app:80\n", `:2: handlers[0].url is "app:80", must begin with`},
		"no number":      {"handlers:\n-" + good[1:] + "  maxConcurrent: many\n", `:4: handlers[0].maxConcurrent is "many"`},
		"zero":           {"handlers:\n-" + good[1:] + "  maxConcurrent: 0\n", `:4: handlers[0].maxConcurrent is "0"`},
		"too many":       {"handlers:\n-" + good[1:] + "  maxConcurrentSessions: 1001\n", `:2: handlers[0].maxConcurrentSessions is 1001, must be 1 to 1000`},
		"no duration":    {"handlers:\n-" + good[1:] + "  timeout: 5\n", `:4: handlers[0].timeout is "5"`},
		"no time":        {"handlers:\n-" + good[1:] + "  timeout: 0s\n", `:4: handlers[0].timeout is "0s"`},
		"long":           {"handlers:\n-" + good[1:] + "  timeout: 25h\n", `:2: handlers[0].timeout is 25h0m0s, must be 10ms to 24h0m0s`},
		"a list inside":  {"handlers:\n-" + good[1:] + "  timeout: [1s]\n", `:4: handlers[0].timeout must have one plain value`},
		"the same again": {"handlers:\n-" + good[1:] + "-" + good[1:], `:4: handlers[1] has the source "queues/q", which has a handler already at`},
	} {
		if _, err := parseHandlers(t, c.text); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}
