package settling

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
)

// wantLines compares how many lines say that settlements are retried, and that they succeed again.
func (b *bed) wantLines(t *testing.T, retried, again int) {
	t.Helper()
	if n := strings.Count(b.log.String(), "messages cannot be settled; retrying until they can"); n != retried {
		t.Errorf("%d lines say that settlements are retried, want %d\n%s", n, retried, b.log)
	}
	if n := strings.Count(b.log.String(), "messages can be settled again"); n != again {
		t.Errorf("%d lines say that settlements succeed again, want %d\n%s", n, again, b.log)
	}
}

func TestRetriesAreLoggedOnceForEachOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		for outage := 1; outage <= 2; outage++ {
			var settlements sync.WaitGroup
			for i := range 5 { // the last one is retried for longest
				settlements.Go(func() { b.settle(t.Context(), t, failing(i+1, errDown, ""), complete, obs.Complete) })
			}
			synctest.Wait()
			b.wantLines(t, outage, outage-1)
			settlements.Wait()
			b.wantLines(t, outage, outage)
		}
	})
}

func TestWhichRetriesAreLogged(t *testing.T) {
	t.Parallel()
	throttled := semantics.Errorf(semantics.Throttled, "too fast")
	full := semantics.Errorf(semantics.EntityFull, "the dead-letter queue is full")
	for name, c := range map[string]struct {
		failures       []error
		retried, again int
		want           Outcome
	}{
		"none":                 {nil, 0, 0, obs.Complete},
		"refused":              {[]error{errInvalid}, 0, 0, Unsettled},
		"a rate limit":         {[]error{throttled, throttled}, 0, 0, obs.Complete},
		"another cause":        {[]error{errDown, errDown, full, full}, 2, 1, obs.Complete},
		"refused after outage": {[]error{errDown, errInvalid}, 1, 0, Unsettled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				b := newBed(t)
				sub := &subscription{answer: func(_ context.Context, attempt int) ([]semantics.Code, error) {
					if attempt <= len(c.failures) {
						return nil, c.failures[attempt-1]
					}
					return []semantics.Code{""}, nil
				}}
				b.settle(t.Context(), t, sub, complete, c.want)
				b.wantLines(t, c.retried, c.again)
			})
		})
	}
}

// A stop during an outage does not end it.
func TestStopDuringAnOutageIsLoggedOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBed(t)
		deliveries, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		b.settle(deliveries, t, failing(1000, errDown), complete, Unsettled)
		b.wantLines(t, 1, 0)
	})
}
