package main

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/filetest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// differsLine is the message of the log line about an option that is not as the file has it.
const differsLine = "an entity differs from the file and was not changed"

const declaredFile = `
log-format: json
entities:
  queues:
  - {name: orders, lockDuration: 30s}
  - {name: returns, forwardDeadLetteredMessagesTo: orders}
  topics:
  - name: news
    subscriptions:
    - {name: eu, rules: [{name: big, filter: {sql: {expression: total > 1000}}}]}
    - {name: all}
`

// Two sidecars that start at once with the same file both succeed; a third one with another file says what differs and
// leaves it.
func TestENT_6_EntitiesOfTheConfigFile(t *testing.T) {
	t.Parallel()
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	file := filetest.Write(t, declaredFile)
	start := func(file string) *sidecartest.Sidecar {
		return sidecartest.Launch(t, append([]string{"--config", file}, store...)...)
	}
	sidecartest.Binary(t)
	var sidecars [2]*sidecartest.Sidecar
	var starting sync.WaitGroup
	for i := range sidecars {
		starting.Go(func() { sidecars[i] = start(file) })
	}
	starting.Wait()
	for _, s := range sidecars {
		if code, out := sidecartest.Run(t, "wait", "--admin-addr", s.Admin); code != cli.Clean {
			t.Fatalf("got %d %s", code, out)
		}
		if log := s.Log(); !strings.Contains(log, `"the entities of the file exist","entities":5`) || strings.Contains(log, differsLine) {
			t.Errorf("got %s", log)
		}
		got := s.Must(t, http.MethodGet, "/v1/topics/news/subscriptions/eu/rules", "")
		if !strings.Contains(got.Text, "total > 1000") || strings.Contains(got.Text, "$Default") {
			t.Errorf("got %s", got.Text)
		}
		if shown := s.Probe(t.Context(), http.MethodGet, "/config"); !strings.Contains(shown.Text, `"entities":"2 queues, 1 topic, 2 subscriptions"`) {
			t.Errorf("got %s", shown.Text)
		}
	}
	third := start(filetest.Write(t, strings.NewReplacer("30s", "45s", "> 1000", "> 2000", "{name: all}", "{name: all, rules: []}").Replace(declaredFile)))
	if code, out := sidecartest.Run(t, "wait", "--admin-addr", third.Admin); code != cli.Clean {
		t.Fatalf("got %d %s", code, out)
	}
	for _, line := range []string{
		`"entity":"queues/orders","option":"lockDuration","current":"30s","requested":"45s"`,
		`"entity":"topics/news/subscriptions/eu","option":"rules[big]","current":"sql: total > 1000","requested":"sql: total > 2000"`,
		`"entity":"topics/news/subscriptions/all","option":"rules[$Default]","current":"all","requested":""`,
	} {
		if !strings.Contains(third.Log(), line) {
			t.Errorf("it does not log %s:\n%s", line, third.Log())
		}
	}
	if n := strings.Count(third.Log(), differsLine); n != 3 {
		t.Errorf("%d warnings, want 3:\n%s", n, third.Log())
	}
	if got := third.Must(t, http.MethodGet, "/v1/queues/orders", ""); got.Body["lockDuration"] != "30s" {
		t.Errorf("got %s", got.Text)
	}
	code, out := sidecartest.Run(t, "entity", "apply", "-f", file, "--grpc-addr", third.GRPC)
	if code != cli.Clean || out != "= 5 unchanged\n" {
		t.Errorf("got %d %s", code, out)
	}
}

// A section that cannot be right ends the start before anything is opened, and so does what only the store can tell.
func TestBadEntitiesOfTheConfigFile(t *testing.T) {
	t.Parallel()
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	sidecartest.Start(t, store...).Queue(t, "orders", `{}`)
	for name, c := range map[string]struct{ text, want string }{
		"unknown key": {"entities:\n  queue: []\n", `:2:3: unknown key \"entities.queue\"; keys are queues, topics`},
		"bad option":  {"entities:\n  queues:\n  - name: a\n    lockDuration: 1s\n", ":4:5: entities.queues[0].lockDuration: ARGUMENT_OUT_OF_RANGE"},
		"no sessions": {"features.sessions: false\nentities:\n  queues:\n  - {name: a, requiresSession: true}\n", ":4:5: entities.queues[0]: SESSION_NOT_SUPPORTED"},
		"other kind":  {"entities:\n  topics:\n  - name: orders\n", ":3:5: entities.topics[0]: ENTITY_ALREADY_EXISTS"},
	} {
		s := sidecartest.Launch(t, append([]string{"--config", filetest.Write(t, c.text)}, store...)...)
		if code := s.Exit(t); code != cli.Failure || !strings.Contains(s.Log(), strings.ReplaceAll(c.want, `\"`, `"`)) {
			t.Errorf("%s: got exit code %d and %s", name, code, s.Log())
		}
	}
}

// A rate limit slows applying down and does not break it, and is not spent at the start.
func TestQUOTA_10_ApplyWaitsForItsRate(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("rate-limit: 200\nstore: memory\nentities:\n  queues:\n")
	for i := range 30 {
		fmt.Fprintf(&text, "  - {name: q%d}\n", i)
	}
	file := filetest.Write(t, text.String())
	s := sidecartest.Start(t, "--config", file)
	elsewhere := filetest.Write(t, strings.ReplaceAll(text.String(), "name: q", "name: r"))
	code, out := sidecartest.Run(t, "entity", "apply", "-f", elsewhere, "--grpc-addr", s.GRPC)
	if code != cli.Clean || !strings.Contains(out, "30 other entities are not in the file\ncreated 30 entities") {
		t.Errorf("got %d %s", code, out)
	}
}
