package push

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proxy/internal/settling"
)

var errRefused = errors.New("refused")

// probed returns an app that is down and about to be probed, in a bubble, and the credits it grants.
func probed(t *testing.T) (a *app, granted *[]int) {
	t.Helper()
	granted = &[]int{}
	a = newApp(func(bool, error, time.Duration) {})
	a.start(5, func(n int) { *granted = append(*granted, n) })
	if isProbe, ok := a.acquire(t.Context()); isProbe || !ok {
		t.Fatalf("got %t, %t of an app that is well", isProbe, ok)
	}
	a.refused(false, errRefused)
	if _, ok := a.acquire(t.Context()); ok {
		t.Fatal("it let a push go")
	}
	pass(settling.MinBackoff)
	return a, granted
}

func TestRECV_13_AProbeThatFindsOutNothingLeavesItToTheNext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := probed(t)
		defer a.stop()
		if isProbe, ok := a.acquire(t.Context()); !isProbe || !ok {
			t.Fatalf("the first got %t, %t", isProbe, ok)
		}
		next := make(chan bool, 1)
		go func() {
			isProbe, ok := a.acquire(t.Context())
			next <- isProbe && ok
		}()
		synctest.Wait()
		if len(next) > 0 {
			t.Fatal("the next did not wait")
		}
		a.release(true)
		if !<-next {
			t.Error("the next is no probe")
		}
	})
}

func TestRECV_13_OnlyAProbeEndsAnOutage(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, granted := probed(t)
		defer a.stop()
		a.reached(false)             // a call of before
		a.refused(false, errRefused) // another one
		isProbe, _ := a.acquire(t.Context())
		a.reached(isProbe)
		if got := *granted; len(got) != 4 || got[0] != 5 || got[1] != 0 || got[2] != 1 || got[3] != 5 {
			t.Errorf("granted %v", got)
		}
	})
}

func TestRECV_13_WhoWaitsForAProbeCanLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, _ := probed(t)
		defer a.stop()
		a.acquire(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		left := make(chan bool)
		go func() {
			_, ok := a.acquire(ctx)
			left <- ok
		}()
		synctest.Wait()
		cancel()
		if <-left {
			t.Error("it was let go")
		}
	})
}

func TestRECV_13_NothingIsTriedAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a, granted := probed(t)
		isProbe, _ := a.acquire(t.Context())
		a.stop()
		a.refused(isProbe, errRefused)
		pass(time.Hour)
		if got := *granted; len(got) != 4 || got[3] != 0 {
			t.Errorf("granted %v", got)
		}
		a.start(5, func(n int) { *granted = append(*granted, n) }) // the outage goes on with the next subscription
		defer a.stop()
		pass(time.Minute)
		if got := *granted; len(got) != 6 || got[4] != 0 || got[5] != 1 {
			t.Errorf("granted %v", got)
		}
	})
}
