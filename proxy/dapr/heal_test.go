package dapr

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeDaprd is the HTTP API of Dapr's runtime.
type fakeDaprd struct {
	*httptest.Server

	isReady   bool
	metadata  string
	refusals  int // of a shut-down
	mu        sync.Mutex
	shutDowns int
}

// metadataOfDaprd has one Component resource and the subscriptions to it of so many topics.
func metadataOfDaprd(name, kind string, subscriptions ...string) string {
	var subs []string
	for _, s := range subscriptions {
		subs = append(subs, fmt.Sprintf(`{"pubsubname":%q,"topic":"orders"}`, s))
	}
	return fmt.Sprintf(`{"id":"app","components":[{"name":%q,"type":%q}],"subscriptions":[%s]}`, name, kind, strings.Join(subs, ","))
}

func newFakeDaprd(t *testing.T, d *fakeDaprd) *fakeDaprd {
	t.Helper()
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *fakeDaprd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case r.Header.Get(tokenHeader) != "secret":
		w.WriteHeader(http.StatusUnauthorized)
	case r.URL.Path == "/v1.0/healthz" && d.isReady:
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Path == "/v1.0/metadata":
		_, _ = w.Write([]byte(d.metadata))
	case r.URL.Path == "/v1.0/shutdown" && r.Method == http.MethodPost && d.refusals == 0:
		d.shutDowns++
		w.WriteHeader(http.StatusNoContent)
	default:
		d.refusals--
		w.WriteHeader(http.StatusInternalServerError)
	}
}

func (d *fakeDaprd) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shutDowns
}

func healing(d *fakeDaprd) func(*Config) {
	return func(c *Config) { c.HealAddr, c.APIToken = strings.TrimPrefix(d.URL, "http://"), "secret" }
}

// quick does not let a test wait.
func quick(c *Config) { c.healGrace, c.healPause = time.Millisecond, time.Millisecond }

// A runtime that was ready before Sidebus began has lost its subscriptions and is shut down, once.
func TestDAPR_6_HealsARuntimeThatLostItsStreams(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{isReady: true, metadata: metadataOfDaprd("sb", "pubsub.sidebus", "sb"), refusals: 1})
	b := onSockets(t, healing(d), quick)
	b.eventually(func() bool { return b.metric("sidebus_dapr_heals_total", "outcome=restarted") == 1 })
	if d.count() != 1 {
		t.Errorf("%d times", d.count())
	}
	b.wantLog("shut down")
}

// It is left alone when it has nothing to heal, or does not say.
func TestDAPR_6_LeavesOtherRuntimesAlone(t *testing.T) {
	t.Parallel()
	for name, metadata := range map[string]string{
		"without subscriptions":   metadataOfDaprd("sb", "pubsub.sidebus"),
		"subscriptions elsewhere": metadataOfDaprd("sb", "pubsub.sidebus", "other"),
		"another type":            metadataOfDaprd("sb", "pubsub.redis", "sb"),
		"no answer":               "nothing",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newFakeDaprd(t, &fakeDaprd{isReady: true, metadata: metadata})
			b := onSockets(t, healing(d), quick)
			b.eventually(func() bool { return b.metric("sidebus_dapr_heals_total", "outcome=not_needed") == 1 })
			if d.count() != 0 {
				t.Errorf("%d times", d.count())
			}
		})
	}
}

func TestDAPR_6_LeavesARuntimeAloneThatHasBegun(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{isReady: true, metadata: metadataOfDaprd("sb", "pubsub.sidebus", "sb")})
	b := onSockets(t, healing(d), func(c *Config) { c.healGrace = time.Hour })
	b.begin()
	if s := b.server; s.isDeaf(t.Context()) {
		t.Error("it takes a runtime for deaf that has begun")
	}
}

// A runtime that is not ready yet is about to begin.
func TestDAPR_6_WaitsForARuntimeThatStarts(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{metadata: metadataOfDaprd("sb", "pubsub.sidebus", "sb")})
	b := newBed(t, healing(d))
	t.Cleanup(b.Broker.Close)
	if b.server.finds(t.Context()) {
		t.Error("it finds a runtime that is not ready")
	}
	d.Close()
	if b.server.finds(t.Context()) {
		t.Error("it finds a runtime that is not there")
	}
}

func TestDAPR_6_RuntimeThatDoesNotShutDown(t *testing.T) {
	t.Parallel()
	d := newFakeDaprd(t, &fakeDaprd{isReady: true, metadata: metadataOfDaprd("sb", "pubsub.sidebus", "sb"), refusals: 1000})
	b := onSockets(t, healing(d), quick)
	b.eventually(func() bool { return b.metric("sidebus_dapr_heals_total", "outcome=failed") == 1 })
	b.wantLog("until it is restarted")
}
