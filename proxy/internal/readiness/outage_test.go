package readiness_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/readiness"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/test/syncbuf"
)

// checker is a store that can be broken.
type checker struct {
	mu    sync.Mutex
	err   error
	looks int
}

func (c *checker) Check(context.Context) (semantics.Health, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.looks++
	return semantics.Health{Store: "a store"}, c.err
}

func (c *checker) looked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.looks
}

func (c *checker) set(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func down(cause, text string) error {
	e := semantics.Errorf(semantics.StoreUnavailable, "the store is down").With(semantics.DetailCause, cause)
	e.Err = errors.New(text)
	return e
}

// watched runs Start and Watch over a store until the test ends, and gives the log.
func watched(t *testing.T, over *checker) (*readiness.Readiness, *syncbuf.Buffer) {
	t.Helper()
	broker := broker.New(memstore.New())
	t.Cleanup(broker.Close)
	log := &syncbuf.Buffer{}
	r := readiness.New(over, broker, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if r.Start(ctx) == nil {
			r.Watch(ctx)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return r, log
}

// pass lets time pass, which the bubble of a test does at once when all in it wait, and what is to happen then happen.
func pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

func wantLines(t *testing.T, log *syncbuf.Buffer, line string, want int) {
	t.Helper()
	if got := strings.Count(log.String(), line); got != want {
		t.Errorf("%q is logged %d times, want %d:\n%s", line, got, want, log)
	}
}

// Without calls and probes, the log reports that an outage has begun, goes on, and has ended.
func TestERR_1_AnOutageIsLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := &checker{}
		_, log := watched(t, over)
		pass(time.Minute)
		wantLines(t, log, "store is available", 1)
		over.set(down("redis_unreachable", "connection refused"))
		pass(6 * time.Second)
		wantLines(t, log, `msg="store unavailable" cause=redis_unreachable reason="the store is down: connection refused" for=0s`, 1)
		pass(2 * time.Minute)
		wantLines(t, log, "store still unavailable", 4)
		wantLines(t, log, "for=1m30s", 1)
		over.set(down("redis_loading", "reading its file"))
		pass(2 * time.Second)
		wantLines(t, log, "cause=redis_loading", 1)
		over.set(nil)
		pass(2 * time.Second)
		wantLines(t, log, `msg="store is available again" store="a store" warnings=[] after=2m`, 1)
	})
}

// A wrong password at the start is not kept secret: the error of Redis is logged every 30 s and shown.
func TestERR_1_TheCauseIsShownWhileStarting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := &checker{err: down("redis_wrongpass", "WRONGPASS invalid username-password pair")}
		r, log := watched(t, over)
		pass(61 * time.Second)
		wantLines(t, log, "unavailable", 3)
		report := r.Report(t.Context())
		if report.State != readiness.Starting || report.Cause != "redis_wrongpass" || !strings.Contains(report.Reason, "WRONGPASS") || report.Since == "" {
			t.Errorf("got %+v, want the cause", report)
		}
	})
}

// A call that failed is a reason to look at once, but not to look for every call.
func TestERR_1_AFailedCallIsLookedAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		over := &checker{}
		r, log := watched(t, over)
		pass(time.Second)
		over.set(down("redis_unreachable", "connection refused"))
		looks := over.looked()
		for range 1000 {
			r.CheckSoon()
			pass(time.Millisecond)
		}
		wantLines(t, log, "store unavailable", 1)
		if n := over.looked() - looks; n > 3 {
			t.Errorf("looked %d times in a second", n)
		}
	})
}

// A store that is slow for a while, as with large replies on all connections, can serve; one that stays so cannot.
func TestOneSlowAnswerIsNoOutage(t *testing.T) {
	t.Parallel()
	for name, cause := range map[string]error{"no answer": os.ErrDeadlineExceeded, "no connection is free": context.DeadlineExceeded} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				over := &checker{}
				r, log := watched(t, over)
				pass(time.Second)
				slow := semantics.Errorf(semantics.StoreUnavailable, "the store does not answer")
				slow.Err = cause
				for range 5 {
					over.set(slow)
					r.CheckSoon()
					pass(6 * time.Second)
					if report := r.Report(t.Context()); report.State != readiness.Ready {
						t.Errorf("got %+v, want ready", report)
					}
					over.set(nil)
					pass(2 * time.Second)
				}
				wantLines(t, log, "unavailable", 0)
				over.set(slow)
				r.CheckSoon()
				pass(13 * time.Second)
				wantLines(t, log, "store unavailable", 1)
				if report := r.Report(t.Context()); report.State != readiness.StoreUnavailable {
					t.Errorf("got %+v, want store unavailable", report)
				}
			})
		})
	}
}
