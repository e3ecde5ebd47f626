package stream_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

func TestRECV_13_EndsWithTheQueue(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(s *stand, queue string)
		want   semantics.Code
	}{
		"deleted": {func(s *stand, queue string) { s.ok(s.DeleteEntity(s.t.Context(), semantics.QueueKind, queue)) }, semantics.EntityNotFound},
		"disabled": {func(s *stand, queue string) {
			s.change(queue, semantics.Options{Status: semantics.StatusDisabled}, "status")
		}, semantics.EntityDisabled},
		"receive disabled": {func(s *stand, queue string) {
			s.change(queue, semantics.Options{Status: semantics.StatusReceiveDisabled}, "status")
		}, semantics.EntityDisabled},
	} {
		for _, queue := range []string{"orders", "tales"} {
			t.Run(queue+" "+name, func(t *testing.T) {
				t.Parallel()
				inBubble(t, func(t *testing.T, s *stand) {
					p := s.subscribe(queue, nil)
					p.wants("")
					c.change(s, queue)
					p.wants("end:" + string(c.want))
				})
			})
		}
	}
}

// A client that has no credits left learns of it too.
func TestRECV_13_EndsWithTheQueueWhileAllIsInHand(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"orders", "tales"} {
		t.Run(queue, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.send(queue, "a/1", "b/1")
				p := s.subscribe(queue, credits(2))
				p.takes()
				s.ok(s.DeleteEntity(t.Context(), semantics.QueueKind, queue))
				s.pass(testLock)
				p.wants("end:" + string(semantics.EntityNotFound))
			})
		})
	}
}

func TestRECV_13_QueueMadeAnew(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		queue   string
		options semantics.Options
		given   []string
		want    string
	}{
		"plain":             {"orders", semantics.Options{}, nil, "lost:a/1 a/2"},
		"sessions":          {"tales", semantics.Options{RequiresSession: true}, []string{"requiresSession"}, "-a(lost) +a a/2"},
		"plain to sessions": {"orders", semantics.Options{RequiresSession: true}, []string{"requiresSession"}, "end:SESSION_REQUIRED"},
		"sessions to plain": {"tales", semantics.Options{}, nil, "end:SESSION_NOT_SUPPORTED"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, s *stand) {
				s.send(c.queue, "a/1")
				p := s.subscribe(c.queue, nil)
				p.takes()
				s.ok(s.DeleteEntity(t.Context(), semantics.QueueKind, c.queue))
				s.create(c.queue, c.options, c.given...)
				s.send(c.queue, "a/2")
				s.pass(testLock)
				p.wants(c.want)
			})
		})
	}
}

func TestRECV_13_DrainEndsWhenAllIsSettled(t *testing.T) {
	t.Parallel()
	const drained = "end:STORE_UNAVAILABLE"
	inBubble(t, func(t *testing.T, s *stand) {
		orders, tales := s.unsettled(nil)
		idle, idleTales := s.subscribe("orders", nil), s.subscribe("tales", credits(0))
		synctest.Wait()
		s.BeginDrain()
		idle.wants(drained)
		idleTales.wants(drained)
		orders.wants("3") // was on its way
		tales.wants("a/3")
		s.sendMany("orders", "n", 3)
		s.sendMany("tales", "a/n", 3)
		orders.complete("1")
		tales.complete("a/1")
		orders.wants("")
		tales.wants("")
		s.pass(4 * testLock) // unsettled messages are kept
		orders.complete("2", "3")
		tales.complete("a/2")
		orders.wants(drained)
		tales.wants("")
		tales.complete("a/3")
		tales.wants("-a(drained) " + drained)
		s.wantCounts("orders", "available 3 locked 0 dead 0")
		s.wantCounts("tales", "available 3 locked 0 dead 0")
	})
}

// A failure that passes is an event, once for each outage however many sessions meet it, and the subscription goes on
// automatically.
func TestRECV_13_OutageIsToldOnce(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.send("tales", "a/1", "b/1", "c/1")
		p := s.subscribe("orders", nil)
		q := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.SessionInFlight = 8, 2 })
		p.wants("")
		q.takes()
		for range 2 {
			s.store.fail(errAway)
			s.pass(time.Minute)
			p.wants("failure:STORE_UNAVAILABLE")
			q.wants("failure:STORE_UNAVAILABLE")
			s.store.fail(nil)
			s.send("orders", "1")
			s.pass(lastPause)
			p.wants("1")
			p.complete("1")
			if got := q.takes(); len(strings.Fields(got)) != 9 || strings.Count(got, "(lost)") != 3 {
				t.Errorf("got %q, want three sessions lost, found again, and their messages", got)
			}
		}
	})
}

// A rate limit is not a failure: the subscription goes at its pace.
func TestTHR_1_RateLimitIsNotTold(t *testing.T) {
	t.Parallel()
	inBubble(t, func(t *testing.T, s *stand) {
		s.sendMany("orders", "", 50)
		s.Broker = broker.New(s.store, broker.WithRateLimit(10))
		t.Cleanup(s.Close)
		p := s.subscribe("orders", func(o *stream.Options) { o.Credits, o.Mode = 1, semantics.ReceiveAndDelete })
		p.wants("1 2 3 4 5 6 7 8 9") // and one for the subscription
		s.pass(time.Second)
		if got := len(strings.Fields(p.takes())); got < 5 || got > 10 {
			t.Errorf("%d in a second, want about 10", got)
		}
	})
}
