package settling

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/test/syncbuf"
)

var (
	errDown    = semantics.Errorf(semantics.StoreUnavailable, "the store is down")
	errUnknown = errDown.With(semantics.DetailOutcome, semantics.OutcomeUnknown)
	errInvalid = semantics.Errorf(semantics.InvalidOperation, "it receives and deletes")
)

// subscription answers settlements as a test says, by their number.
type subscription struct {
	answer   func(ctx context.Context, attempt int) ([]semantics.Code, error)
	attempts int
}

func (s *subscription) Settle(
	ctx context.Context, _ []semantics.LockToken, _ semantics.Settlement,
) ([]semantics.Code, error) {
	s.attempts++
	return s.answer(ctx, s.attempts)
}

func (s *subscription) Complete(ctx context.Context, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Settle(ctx, tokens, nil)
}

// failing fails a number of times, then settles as codes say.
func failing(times int, err error, codes ...semantics.Code) *subscription {
	return &subscription{answer: func(_ context.Context, attempt int) ([]semantics.Code, error) {
		if attempt <= times {
			return nil, err
		}
		return codes, nil
	}}
}

type stats struct{}

func (stats) Held() int                 { return 0 }
func (stats) OrphanReplies() int64      { return 0 }
func (stats) PrefetchesCut() int64      { return 0 }
func (stats) Forwarded() (int64, int64) { return 0, 0 }

// bed is a Settler with what it counts and logs.
type bed struct {
	*Settler

	registry *prometheus.Registry
	log      *syncbuf.Buffer
}

func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{registry: prometheus.NewRegistry(), log: &syncbuf.Buffer{}}
	metrics, err := obs.NewMetrics(b.registry, stats{}, 10)
	if err != nil {
		t.Fatal(err)
	}
	b.Settler = NewSettler(metrics, slog.New(slog.NewTextHandler(b.log, nil)))
	return b
}

// settle settles as many messages as there are outcomes wanted, and compares them and what is counted.
func (b *bed) settle(deliveries context.Context, t *testing.T, sub Subscription, v Settlement, want ...Outcome) {
	t.Helper()
	messages := make([]*semantics.Received, len(want))
	for i := range messages {
		messages[i] = &semantics.Received{}
	}
	if got := b.Settle(deliveries, sub, semantics.Source{Path: "orders"}, messages, v); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// wantCounted compares the sum of a metric.
func (b *bed) wantCounted(t *testing.T, metric string, want int) {
	t.Helper()
	sum := 0.0
	for _, value := range series(t, b.registry, metric) {
		sum += value
	}
	if sum != float64(want) {
		t.Errorf("%s is %v, want %d", metric, sum, want)
	}
}

var (
	complete = Settlement{Outcome: obs.Complete, Verb: obs.Complete}
	release  = Settlement{Outcome: "unreachable", Verb: obs.Release}
)

func TestERR_6_OutcomesOfSettlements(t *testing.T) {
	t.Parallel()
	const lost = semantics.MessageLockLost
	for name, c := range map[string]struct {
		sub               *subscription
		v                 Settlement
		want              []Outcome
		attempts          int
		settled, lockLost int // as counted
	}{
		"settled":                            {failing(0, nil, "", ""), complete, []Outcome{obs.Complete, obs.Complete}, 1, 2, 0},
		"one is lost":                        {failing(0, nil, "", lost), complete, []Outcome{obs.Complete, LockLost}, 1, 1, 1},
		"lost after an outage":               {failing(3, errDown, lost), complete, []Outcome{LockLost}, 4, 0, 1},
		"an attempt before has settled it":   {failing(3, errUnknown, lost), complete, []Outcome{obs.Complete}, 4, 1, 0},
		"a lost lock is released":            {failing(0, nil, lost), release, []Outcome{"unreachable"}, 1, 0, 0},
		"what is refused is not tried twice": {failing(9, errInvalid), complete, []Outcome{Unsettled, Unsettled}, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				b.settle(t.Context(), t, c.sub, c.v, c.want...)
				if c.sub.attempts != c.attempts {
					t.Errorf("%d attempts, want %d", c.sub.attempts, c.attempts)
				}
				b.wantCounted(t, "sidebus_messages_settled_total", c.settled)
				b.wantCounted(t, "sidebus_locks_lost_total", c.lockLost)
				if isLogged := strings.Contains(b.log.String(), "cannot settle"); isLogged != (c.want[0] == Unsettled) {
					t.Errorf("the log is %s", b.log)
				}
			})
		})
	}
}

func TestSettlingLastsAsLongAsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b, began := newBed(t), time.Now()
		const outage = time.Hour
		sub := &subscription{answer: func(context.Context, int) ([]semantics.Code, error) {
			if time.Since(began) < outage {
				return nil, errDown
			}
			return []semantics.Code{""}, nil
		}}
		b.settle(t.Context(), t, sub, complete, obs.Complete)
		if most := int(outage/(MaxBackoff/2)) + 20; sub.attempts > most {
			t.Errorf("%d attempts in %s, want at most %d", sub.attempts, outage, most)
		}
	})
}

// Whatever the store does, settling ends soon after the deliveries have: while it waits for the next attempt, during an
// attempt that is never answered, and when it begins later.
func TestSettlingDoesNotBlockAStop(t *testing.T) {
	t.Parallel()
	never := func(ctx context.Context, _ int) ([]semantics.Code, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	down := func(context.Context, int) ([]semantics.Code, error) { return nil, errDown }
	for name, c := range map[string]struct {
		answer func(context.Context, int) ([]semantics.Code, error)
		before time.Duration // it settles before the stop
		most   time.Duration
	}{
		"between attempts":        {down, time.Minute, 0},
		"in an attempt":           {never, time.Minute, StopTimeout},
		"begun after the stop":    {down, 0, 0},
		"never answered after it": {never, 0, StopTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				deliveries, stop := context.WithCancel(t.Context())
				stopped := time.Now().Add(c.before)
				if c.before == 0 {
					stop()
				}
				defer time.AfterFunc(c.before, stop).Stop()
				newBed(t).settle(deliveries, t, &subscription{answer: c.answer}, complete, Unsettled)
				if late := time.Since(stopped); late < 0 || late > c.most {
					t.Errorf("it ended %s after the stop, want at most %s", late, c.most)
				}
			})
		})
	}
}

// What is acknowledged just before a stop is settled.
func TestSettlingTriesOnceAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		deliveries, stop := context.WithCancel(t.Context())
		stop()
		newBed(t).settle(deliveries, t, failing(0, nil, ""), complete, obs.Complete)
	})
}

func TestBackoff(t *testing.T) {
	t.Parallel()
	var b Backoff
	want := MinBackoff
	for range 20 {
		if got := b.Next(); got < want/2 || got >= want {
			t.Errorf("got a pause of %s, want %s to %s", got, want/2, want)
		}
		want = min(2*want, MaxBackoff)
	}
}

// A settlement that is stored but not confirmed is one: it is counted, not tried again, and its lock is not lost.
func TestDUR_2_UnconfirmedSettlementIsASettlement(t *testing.T) {
	t.Parallel()
	b, sub := newBed(t), failing(0, nil, semantics.DurabilityNotMet, semantics.MessageLockLost)
	b.settle(t.Context(), t, sub, complete, obs.Complete, LockLost)
	if sub.attempts != 1 {
		t.Errorf("%d attempts, want 1", sub.attempts)
	}
	b.wantCounted(t, "sidebus_messages_settled_total", 1)
}
