package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// unsteady is a store that fails a number of times, which may change.
type unsteady struct {
	*memstore.Store

	code semantics.Code
	left atomic.Int32 // failures; negative: for ever
}

func (u *unsteady) CreateEntity(ctx context.Context, kind semantics.Kind, path string, options semantics.Options) (semantics.Entity, bool, error) {
	if left := u.left.Load(); left != 0 {
		u.left.Store(max(left-1, -1))
		return semantics.Entity{}, false, semantics.Errorf(u.code, "it cannot be done")
	}
	return u.Store.CreateEntity(ctx, kind, path, options)
}

// unfit is a store that is not what it should be, as long as it says so.
type unfit struct{ is atomic.Bool }

func (u *unfit) Check(context.Context) (semantics.Health, error) {
	if u.is.Load() {
		return semantics.Health{}, semantics.Errorf(semantics.StoreUnavailable, "the store is not there")
	}
	return semantics.Health{Store: "ours"}, nil
}

// declare begins to make entities in a store.
func declare(t *testing.T, text string, store semantics.Store, checker semantics.Checker) (d *declared, ctx context.Context, log *bytes.Buffer) {
	t.Helper()
	top, err := yamlfile.Parse("f", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	set, err := entities.Section(top)
	if err != nil {
		t.Fatal(err)
	}
	log = &bytes.Buffer{}
	d, err = newDeclared(t.Context(), set, true, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	opened := &openedStore{Store: store, checker: checker}
	ctx, end := d.begin(t.Context(), opened, true)
	t.Cleanup(func() {
		end(nil)
		_ = d.end()
	})
	if opened.checker != semantics.Checker(d) {
		t.Fatal("nobody waits for the entities")
	}
	return d, ctx, log
}

// A sidecar is not ready before its entities are there, tries as long as the store is away, and writes nothing to a store that was not
// found fit.
func TestENT_6_ReadyOnlyWhenEntitiesAreThere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, looks := &unsteady{Store: memstore.New(), code: semantics.StoreUnavailable}, &unfit{}
		looks.is.Store(true)
		d, _, log := declare(t, "queues: [{name: a}, {name: b}]", store, looks)
		look := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := d.Check(ctx)
			return err
		}
		for range 3 {
			if err := look(); semantics.CodeOf(err) != semantics.StoreUnavailable || !strings.Contains(err.Error(), "the store is not there") {
				t.Fatalf("got %v", err)
			}
			<-time.After(time.Minute) // of the bubble
			if found, _, err := store.ListEntities(t.Context(), semantics.QueueKind, "", "", 10); len(found) > 0 || err != nil {
				t.Fatalf("got %v, %v in a store that is not fit", found, err)
			}
		}
		looks.is.Store(false)
		store.left.Store(-1)
		for range 3 {
			if err := look(); semantics.CodeOf(err) != semantics.StoreUnavailable || !strings.Contains(err.Error(), "not made yet") {
				t.Fatalf("got %v", err)
			}
			<-time.After(time.Minute) // of the bubble
		}
		store.left.Store(2)
		began := time.Now()
		for look() != nil {
			if time.Since(began) > time.Minute {
				t.Fatal("it is never ready")
			}
		}
		found, _, err := store.ListEntities(t.Context(), semantics.QueueKind, "", "", 10)
		if err != nil || len(found) != 2 {
			t.Errorf("got %v, %v", found, err)
		}
		if !strings.Contains(log.String(), "the entities of the file are there") || !strings.Contains(log.String(), "created=2") || strings.Contains(log.String(), differsLine) {
			t.Errorf("got %s", log)
		}
	})
}

// What does not pass by itself ends the sidecar.
func TestDeclaredFailure(t *testing.T) {
	t.Parallel()
	store := &unsteady{Store: memstore.New(), code: semantics.QuotaExceeded}
	store.left.Store(-1)
	d, ctx, _ := declare(t, "queues:\n- name: a\n", store, store.Store)
	looking, cancel := context.WithTimeout(ctx, sidecartest.Patience)
	defer cancel()
	if _, err := d.Check(looking); err == nil {
		t.Error("it is fit")
	}
	<-ctx.Done()
	err := d.end()
	if err == nil || !errors.Is(context.Cause(ctx), err) || err.Error() != "f:2:3: queues[0]: QUOTA_EXCEEDED: it cannot be done" {
		t.Errorf("got %v", err)
	}
}

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

// Two sidecars that start at once with the same file both succeed; a third one with another file says what differs and leaves it.
func TestENT_6_EntitiesOfTheConfigFile(t *testing.T) {
	t.Parallel()
	store := []string{"--store", redistest.URL(t), "--namespace", redistest.Namespace()}
	file := writeFile(t, declaredFile)
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
		if code, out := sidecartest.Run(t, "wait", "--admin-addr", s.Admin); code != exitClean {
			t.Fatalf("got %d %s", code, out)
		}
		if log := s.Log(); !strings.Contains(log, `"the entities of the file are there","entities":5`) || strings.Contains(log, differsLine) {
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
	third := start(writeFile(t, strings.NewReplacer("30s", "45s", "> 1000", "> 2000", "{name: all}", "{name: all, rules: []}").Replace(declaredFile)))
	if code, out := sidecartest.Run(t, "wait", "--admin-addr", third.Admin); code != exitClean {
		t.Fatalf("got %d %s", code, out)
	}
	for _, line := range []string{
		`"entity":"queues/orders","option":"lockDuration","present":"30s","asked":"45s"`,
		`"entity":"topics/news/subscriptions/eu","option":"rules[big]","present":"sql: total > 1000","asked":"sql: total > 2000"`,
		`"entity":"topics/news/subscriptions/all","option":"rules[$Default]","present":"all","asked":""`,
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
	if code != exitClean || out != "= 5 unchanged\n" {
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
		s := sidecartest.Launch(t, append([]string{"--config", writeFile(t, c.text)}, store...)...)
		if code := s.Exit(t); code != exitFailure || !strings.Contains(s.Log(), strings.ReplaceAll(c.want, `\"`, `"`)) {
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
	file := writeFile(t, text.String())
	s := sidecartest.Start(t, "--config", file)
	elsewhere := writeFile(t, strings.ReplaceAll(text.String(), "name: q", "name: r"))
	code, out := sidecartest.Run(t, "entity", "apply", "-f", elsewhere, "--grpc-addr", s.GRPC)
	if code != exitClean || !strings.Contains(out, "30 others are left alone\ncreated 30 entities") {
		t.Errorf("got %d %s", code, out)
	}
}
