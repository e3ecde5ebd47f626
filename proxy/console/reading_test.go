package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// While the store answers and the counts fail, pages learn since when, and why if they may see all. It ends with the first
// count.
func TestPagesLearnThatCountsFail(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(2)
		c := consoleOf(s, access.AllowAll{}, nil)
		c.watch.isUp = func() bool { return true }
		all := &page{console: c, caller: access.AllowAll{}}
		one := &page{console: c, caller: only{"queue-0000": true}}
		see := func() (*event, *event) {
			c.watch.look(t.Context())
			a, _ := all.next(t.Context())
			b, _ := one.next(t.Context())
			return a, b
		}
		if a, _ := see(); a.Failing != nil || len(a.Rows) != 2 {
			t.Fatalf("got %+v", a)
		}
		s.set(func() { s.fails = true })
		pass(tick)
		since := time.Now().UnixMilli()
		a, b := see()
		if a.Failing == nil || a.Failing.Since != since || a.Failing.Reason == "" || !a.isNews() {
			t.Errorf("got %+v", a.Failing)
		}
		if b.Failing == nil || b.Failing.Since != since || b.Failing.Reason != "" {
			t.Errorf("who sees one queue got %+v", b.Failing)
		}
		pass(tick)
		if a, _ := see(); a.Failing == nil || a.Failing.Since != since || a.isTrouble {
			t.Errorf("a second later it is %+v, news: %t", a.Failing, a.isTrouble)
		}
		s.set(func() { s.fails = false })
		pass(tick)
		if a, _ := see(); a.Failing != nil || !a.isNews() {
			t.Errorf("after a count it is %+v, news: %t", a.Failing, a.isNews())
		}
	})
}

// damaged is a store that cannot count one of its queues.
type damaged struct{ *entitiesOf }

func (d damaged) Runtimes(ctx context.Context, paths []string) ([]*semantics.Runtime, error) {
	for _, path := range paths {
		if path == "queue-0001" {
			return nil, semantics.Errorf(semantics.Internal, "a key has a wrong type")
		}
	}
	return d.entitiesOf.Runtimes(ctx, paths)
}

func (d damaged) Runtime(ctx context.Context, kind semantics.Kind, path string) (semantics.Runtime, error) {
	if path == "queue-0001" {
		return semantics.Runtime{}, semantics.Errorf(semantics.Internal, "a key has a wrong type")
	}
	return d.entitiesOf.Runtime(ctx, kind, path)
}

// An entity that cannot be counted has a warning, and the others are counted.
func TestOneThatCannotBeCountedLeavesTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := queues(3)
		w := newWatch(damaged{s}, nil, func() bool { return true }, true)
		for n := range int64(3) {
			s.set(func() { s.counts["queue-0002"].Available = n + 1 })
			w.look(t.Context())
			if got := w.entities["queue-0002"].Available; got != n+1 {
				t.Errorf("round %d: another queue has %d messages", n, got)
			}
			pass(tick)
		}
		bad := w.entities["queue-0001"]
		if len(bad.Warnings) != 1 || bad.Warnings[0] != notCounted || bad.IsRead || w.failing.Since != 0 {
			t.Errorf("it is %+v, all failing: %+v", bad.row, w.failing)
		}
	})
}

// only is a caller with Listen on some queues.
type only map[string]bool

func (only) Name() string { return "one" }

func (o only) Permit(right access.Right) error {
	if !o[right.Path] {
		return semantics.Errorf(semantics.PermissionDenied, "not for you")
	}
	return nil
}

// What a caller may no longer see goes from its page within five seconds, and what it may see comes (AUTH-4).
func TestAUTH_4_RowsFollowThePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := consoleOf(queues(3), access.AllowAll{}, nil)
		c.watch.isUp = func() bool { return true }
		may := only{"queue-0000": true, "queue-0001": true}
		p := &page{console: c, caller: may}
		c.watch.look(t.Context())
		if e, _ := p.next(t.Context()); len(e.Rows) != 2 {
			t.Fatalf("got %+v", e.Rows)
		}
		delete(may, "queue-0001")
		may["queue-0002"] = true
		pass(rightsPause)
		c.watch.publish()
		e, _ := p.next(t.Context())
		if len(e.Gone) != 1 || e.Gone[0] != "queue-0001" || len(e.Rows) != 1 || e.Rows[0].Path != "queue-0002" {
			t.Errorf("got the rows %+v, and %v is gone", e.Rows, e.Gone)
		}
		pass(rightsPause)
		if e, _ = p.next(t.Context()); len(e.Gone) > 0 || len(e.Rows) > 0 {
			t.Errorf("again the rows %+v, and %v is gone", e.Rows, e.Gone)
		}
	})
}

// A client has at most as many pages as stay free for others, also when they open at the same time.
func TestAClientHasAShareOfThePages(t *testing.T) {
	t.Parallel()
	w := newWatch(queues(1), nil, func() bool { return true }, false)
	var opened atomic.Int64
	done := make(chan struct{})
	for range maxPages {
		go func() {
			if _, err := w.open("greedy", ""); err == nil {
				opened.Add(1)
			} else if semantics.CodeOf(err) != semantics.Throttled {
				t.Errorf("got %v", err)
			}
			done <- struct{}{}
		}()
	}
	for range maxPages {
		<-done
	}
	if n := opened.Load(); n != maxPages/2 {
		t.Errorf("one client has %d of %d pages", n, maxPages)
	}
	leave, err := w.open("another", "orders")
	if err != nil {
		t.Fatalf("another client has none: %v", err)
	}
	leave()
	if w.readers["another"] != 0 || w.pages != maxPages/2 || len(w.shown) != 1 {
		t.Errorf("it has left, and there are %v, %d pages, %v", w.readers, w.pages, w.shown)
	}
}

// What a page names and the console does not know is refused: it must not look elsewhere.
func TestUnknownShelvesAreRefused(t *testing.T) {
	t.Parallel()
	c := consoleOf(queues(1), access.AllowAll{}, nil)
	for body, field := range map[string]string{
		`{"entity":"queue-0000","subQueue":"DEADLETTER"}`: "subQueue",
		`{"entity":"queue-0000","state":"available"}`:     "state",
		`{"entity":"queue-0000","from":"first"}`:          "from",
	} {
		w := httptest.NewRecorder()
		c.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/ui/find", strings.NewReader(body)))
		var failure struct {
			Reason  semantics.Code
			Details map[string]string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &failure); err != nil || failure.Reason != semantics.InvalidArgument || failure.Details["field"] != field {
			t.Errorf("%s: got %s", body, w.Body)
		}
	}
}

// A call that waits for a place among those that look at messages is refused after a while.
func TestCallsDoNotWaitForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &Console{finds: make(chan struct{}, findsAtOnce)}
		for range findsAtOnce {
			if err := c.enter(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		err := c.enter(t.Context())
		if semantics.CodeOf(err) != semantics.Throttled || semantics.AsError(err).RetryAfter == 0 || time.Since(began) != enterTime {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
	})
}
