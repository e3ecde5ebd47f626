package console

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// withdrawn is an authorizer that permits everything, and after a while nothing.
type withdrawn struct {
	access.AllowAll

	isOver *atomic.Bool
}

func (a withdrawn) Authenticate(access.Proof) (access.Caller, error) {
	if a.isOver.Load() {
		return nil, semantics.Errorf(semantics.Unauthenticated, "the policy has changed")
	}
	return a, nil
}

// consoleOf returns a console of a store. Its watch does not run.
func consoleOf(s *entitiesOf, authorizer access.Authorizer, api http.Handler) *Console {
	finder := named{entities: s, calls: &atomic.Int64{}}
	return New(Config{
		Entities: s, Broker: finder, API: api, Authorizer: authorizer, Readiness: readiness.New(nil, &broker.Broker{}, nil),
	})
}

// named is a broker that finds the queues of a store.
type named struct {
	Broker

	entities *entitiesOf
	calls    *atomic.Int64
}

func (n named) GetEntity(_ context.Context, kind semantics.Kind, name string) (semantics.Entity, error) {
	n.calls.Add(1)
	if n.entities.counts[name] == nil || kind != semantics.QueueKind {
		return semantics.Entity{}, semantics.NotFound(name)
	}
	return semantics.Entity{Name: name, Options: semantics.DefaultOptions()}, nil
}

func (named) MeasureLatency(bool) {}

func (named) TakeLatency(string) (waits, takes broker.Latency) { return waits, takes }

// follow opens a stream in a bubble of synctest.
func follow(t *testing.T, c *Console, path string) (w *httptest.ResponseRecorder, isOpen func() bool, leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	w = httptest.NewRecorder()
	var hasEnded atomic.Bool
	go func() {
		c.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		hasEnded.Store(true)
	}()
	synctest.Wait()
	return w, func() bool { return !hasEnded.Load() }, leave
}

// A stream ends within five seconds after its caller may no longer see what it shows (AUTH-4).
func TestAUTH_4_ConsoleStreamsEnd(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/ui/live", "/ui/live?entity=queue-0000"} {
		synctest.Test(t, func(t *testing.T) {
			var isOver atomic.Bool
			c := consoleOf(queues(1), withdrawn{isOver: &isOver}, nil)
			_, isOpen, leave := follow(t, c, path)
			defer leave()
			pass(time.Minute)
			if !isOpen() {
				t.Fatal("the stream has ended although its caller may see it")
			}
			isOver.Store(true)
			pass(5*time.Second + time.Millisecond)
			if isOpen() {
				t.Error("the stream goes on")
			}
		})
	}
}

// A page learns that its stream is alive, also while the store is so slow that nothing is read.
func TestStreamsShowThatTheyAreAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w, _, leave := follow(t, consoleOf(queues(1), access.AllowAll{}, nil), "/ui/live") // its watch does not run
		pass(time.Minute + time.Second)
		leave()
		synctest.Wait()
		if n := strings.Count(w.Body.String(), "data: "); n != 5 {
			t.Errorf("%d events in a minute, want the first and four", n)
		}
	})
}

// A call that is refused makes the console read nothing, so a caller without rights cannot keep it busy.
func TestRefusedChangesReadNothing(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int64{
		http.StatusUnauthorized: 0, http.StatusForbidden: 0, http.StatusOK: 1, http.StatusNotFound: 1,
	} {
		c := consoleOf(queues(1), access.AllowAll{}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
		}))
		c.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodDelete, "/ui/api/v1/queues/queue-0000", nil))
		if got := c.config.Broker.(named).calls.Load(); got != want { //nolint:forcetypeassert // it is one
			t.Errorf("status %d: %d reads, want %d", status, got, want)
		}
	}
}

// A queue that is created again in other letters takes the place of the old one on the pages.
func TestOtherLettersTakeThePlaceOfAnEntity(t *testing.T) {
	t.Parallel()
	c := consoleOf(queues(0), access.AllowAll{}, nil)
	p := &page{console: c, caller: access.AllowAll{}}
	for _, name := range []string{"Orders", "orders"} {
		c.watch.place(semantics.Entity{Name: name, Kind: semantics.QueueKind, Options: semantics.DefaultOptions()}, map[string]bool{})
		c.watch.publish()
		e, _ := p.next(t.Context())
		if len(e.Rows) != 1 || e.Rows[0].Path != name || name == "orders" && !slices.Equal(e.Gone, []string{"Orders"}) {
			t.Errorf("%s: rows %+v, gone %v", name, e.Rows, e.Gone)
		}
	}
}
