package scaler_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/proto/externalscaler"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

func TestCOMP_16_MessagesAreWhatReceiversCanDo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		by := map[string]string{"messages": "5"}
		f.wantValue("messages", by, 0, false)
		f.send("orders", &semantics.Message{ScheduledAt: time.Now().Add(time.Hour)})
		f.wantValue("messages", by, 0, false)
		f.send("orders", &semantics.Message{}, &semantics.Message{}, &semantics.Message{})
		f.wantValue("messages", by, 3, true)
		got := f.receive("orders", 3)
		f.wantValue("messages", by, 3, true) // receivers that work on them stay
		f.settled(f.broker.Defer(t.Context(), semantics.Source{Path: "orders"}, got[:1], nil))
		f.wantValue("messages", by, 2, true)
		f.settled(f.broker.Abandon(t.Context(), semantics.Source{Path: "orders"}, got[1:2], semantics.AbandonOptions{Delay: new(time.Minute)}))
		f.wantValue("messages", by, 1, true)
		f.settled(f.broker.DeadLetter(t.Context(), semantics.Source{Path: "orders"}, got[2:], broker.DeadLetterOptions{}))
		f.wantValue("messages", by, 0, false)
		f.wantValue("messages", map[string]string{"messages": "5", "subQueue": "DEAD_LETTER"}, 1, true)
		f.wantValue("messages", map[string]string{"messages": "5", "subQueue": "TRANSFER_DEAD_LETTER"}, 0, false)
		pass(time.Minute)
		f.wantValue("messages", by, 1, true) // the delay is over
	})
}

func TestCOMP_16_Sessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		carts := func(more ...string) map[string]string {
			by := map[string]string{"source": "queues/carts", "sessions": "2"}
			for i := 0; i < len(more); i += 2 {
				by[more[i]] = more[i+1]
			}
			return by
		}
		f.wantValue("sessions", carts(), 0, false)
		f.send("carts", of("a"), of("a"), of("b"))
		f.wantValue("sessions", carts(), 2, true)
		f.wantValue("messages", carts("messages", "9"), 3, true)
		held, err := f.broker.AcceptSession(t.Context(), "carts", broker.AcceptOptions{})
		if err != nil {
			t.Fatal(err)
		}
		f.wantValue("sessions", carts(), 2, true) // one of them is locked
		first := f.receiveFrom(held.Source(), 2)
		f.settled(f.broker.Complete(t.Context(), held.Source(), first))
		f.wantValue("sessions", carts(), 2, true) // its holder stays, although the session is empty
		if err := f.broker.CloseSession(t.Context(), held.Source()); err != nil {
			t.Fatal(err)
		}
		f.wantValue("sessions", carts(), 1, true)
	})
}

func TestCOMP_16_AgeOfWhatIsAvailable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		by := map[string]string{"source": "topics/news/subscriptions/eu", "maxAge": "1m"}
		f.wantValue("age", by, 0, false)
		f.send("news", &semantics.Message{})
		pass(time.Minute)
		f.wantValue("age", by, 61, true)
		f.receive(semantics.SubscriptionPath("news", "eu"), 1)
		f.wantValue("age", by, 0, true) // more receivers would not help
	})
}

// What cannot be received from needs no receiver but those that work on what they have locked.
func TestCOMP_16_ADisabledSource(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		by := map[string]string{"messages": "5", "maxAge": "1m"}
		f.send("orders", &semantics.Message{}, &semantics.Message{})
		f.receive("orders", 1)
		f.update("orders", semantics.Options{Status: semantics.StatusReceiveDisabled}, "status")
		f.wantValue("messages", by, 1, true)
		f.wantValue("age", by, 0, true)
	})
}

func TestCOMP_16_SpecOfEachTarget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		got, err := f.service.GetMetricSpec(t.Context(), asked(map[string]string{
			"source": "queues/not-yet", "messages": "20", "sessions": "8", "maxAge": "1500ms",
		}))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, spec := range got.GetMetricSpecs() {
			text += fmt.Sprintf("%s %d %g, ", spec.GetMetricName(), spec.GetTargetSize(), spec.GetTargetSizeFloat())
		}
		if want := "messages 20 20, sessions 8 8, age 2 1.5, "; text != want {
			t.Errorf("got %q, want %q", text, want)
		}
	})
}

func TestCOMP_16_BadMetadataNamesTheKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		for _, c := range []struct {
			change map[string]string
			field  string
			code   semantics.Code
		}{
			{map[string]string{}, "messages", semantics.InvalidArgument},
			{map[string]string{"messages": "0"}, "messages", semantics.InvalidArgument},
			{map[string]string{"messages": "2.5"}, "messages", semantics.InvalidArgument},
			{map[string]string{"messages": "1000000001"}, "messages", semantics.InvalidArgument},
			{map[string]string{"sessions": "many"}, "sessions", semantics.InvalidArgument},
			{map[string]string{"maxAge": "60"}, "maxAge", semantics.InvalidArgument},
			{map[string]string{"maxAge": "999ms"}, "maxAge", semantics.InvalidArgument},
			{map[string]string{"maxAge": "8761h"}, "maxAge", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "mesages": "1"}, "mesages", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "source": ""}, "source", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "source": "orders"}, "source", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "source": "queues/or ders"}, "source", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "source": "queues/news/subscriptions/eu"}, "source", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "source": "topics/news"}, "source", semantics.InvalidArgument},
			{map[string]string{"messages": "1", "subQueue": "dead"}, "subQueue", semantics.InvalidArgument},
			{map[string]string{"maxAge": "1m", "subQueue": "DEAD_LETTER"}, "maxAge", semantics.InvalidArgument},
			{map[string]string{"sessions": "1", "subQueue": "DEAD_LETTER"}, "sessions", semantics.InvalidArgument},
			{map[string]string{"sessions": "1"}, "sessions", semantics.SessionNotSupported},
			{map[string]string{"messages": "1", "source": "queues/none"}, "", semantics.EntityNotFound},
		} {
			_, err := f.service.IsActive(t.Context(), asked(c.change))
			if got := semantics.CodeOf(err); got != c.code || semantics.AsError(err).Details[semantics.DetailField] != c.field {
				t.Errorf("%v: got %v, want %s about %q", c.change, err, c.code, c.field)
			}
		}
		_, err := f.service.GetMetrics(t.Context(), &externalscaler.GetMetricsRequest{
			MetricName: "sessions", ScaledObjectRef: asked(map[string]string{"messages": "1"}),
		})
		if semantics.AsError(err).Details[semantics.DetailField] != "metricName" {
			t.Errorf("got %v", err)
		}
	})
}

// One call costs the same whatever the source holds, and many at once cost what one does.
func TestCOMP_16_CallsShareARead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := start(t)
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				if _, err := f.service.IsActive(t.Context(), asked(map[string]string{"source": "queues/ORDERS", "messages": "1"})); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if f.store.reads != 1 {
			t.Errorf("the store was read %d times", f.store.reads)
		}
	})
}
