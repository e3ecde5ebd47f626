package reply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "away"}

func TestRR_3_HeadersOfARequest(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		short, long := time.Second, time.Hour
		given := &semantics.Message{CorrelationID: "c", TimeToLive: &long, Body: []byte("x")}
		first := o.ask(t.Context(), "work", given, 30*time.Second)
		second := o.ask(t.Context(), "work", &semantics.Message{MessageID: "m", TimeToLive: &short}, 30*time.Second)
		for _, r := range o.take("work", 2) {
			if r.ReplyTo != "replies" || len(r.ReplyToSessionID) != 36 {
				t.Errorf("reply to %q, session %q", r.ReplyTo, r.ReplyToSessionID)
			}
			want := 30 * time.Second
			if r.MessageID == "m" {
				want = short
			}
			if r.TimeToLive == nil || *r.TimeToLive != want {
				t.Errorf("time to live of %q: %v, want %s", r.MessageID, r.TimeToLive, want)
			}
			o.reply(r, "to "+r.CorrelationID+r.MessageID[:1])
		}
		if got := (<-second).text(); got != "to m" {
			t.Errorf("got %q", got)
		}
		if a := <-first; a.text()[:4] != "to c" || a.sent[0].MessageID == "" || !a.delivery.Messages[0].LockToken.IsZero() {
			t.Errorf("got %+v", a)
		}
		if given.ReplyTo != "" || *given.TimeToLive != long {
			t.Error("the caller's message was changed")
		}
		o.left(0)
		o.orphans(0)
	})
}

func TestRR_6_RepliesFindTheirRequests(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		o.queue("more/work", semantics.DefaultOptions())
		const each = 60
		want := map[string]<-chan answer{}
		for i := range each {
			for _, queue := range []string{"work", "more/work"} {
				id := fmt.Sprint(queue, i)
				want[id] = o.ask(t.Context(), queue, &semantics.Message{MessageID: id}, time.Minute)
			}
		}
		requests := slices.Concat(o.take("work", each), o.take("more/work", each))
		slices.Reverse(requests)
		for _, r := range requests {
			o.reply(r, "reply to "+r.MessageID)
			o.reply(r, "once more to "+r.MessageID) // at least once is what workers do
		}
		for id, done := range want {
			if got := (<-done).text(); got != "reply to "+id {
				t.Errorf("request %q got %q", id, got)
			}
		}
		synctest.Wait()
		o.left(0)
		o.orphans(2 * each)
	})
}

func TestRR_6_NoReplyInTime(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		began := time.Now()
		late := o.ask(t.Context(), "work", &semantics.Message{}, 10*time.Second)
		unread := o.ask(t.Context(), "work", &semantics.Message{}, time.Millisecond)
		if a := <-unread; semantics.CodeOf(a.err) != semantics.ServiceTimeout || len(a.sent) != 1 || time.Since(began) != time.Millisecond {
			t.Errorf("got %+v after %s", a, time.Since(began))
		}
		r := o.take("work", 1)[0] // the other one has expired
		a := <-late
		if semantics.CodeOf(a.err) != semantics.ServiceTimeout || time.Since(began) != 10*time.Second {
			t.Errorf("got %v after %s", a.err, time.Since(began))
		}
		if semantics.AsError(a.err).Details[semantics.DetailOutcome] != semantics.OutcomeUnknown {
			t.Errorf("the failure does not say that the request may be carried out: %v", a.err)
		}
		o.reply(r, "too late")
		o.reply(&semantics.Received{Message: semantics.Message{ReplyTo: "replies", ReplyToSessionID: r.ReplyToSessionID}}, "to nobody")
		synctest.Wait()
		o.left(0)
		o.orphans(2)
		if runtime, _ := o.store.Runtime(t.Context(), semantics.QueueKind, "work"); runtime.Available != 0 {
			t.Errorf("a request is left that nobody waits for: %+v", runtime)
		}
	})
}

// Whoever asks again with the same key gets the reply to the first try.
func TestRR_6_AskedAgain(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		ctx, leave := context.WithCancel(t.Context())
		first := o.ask(ctx, "work", &semantics.Message{MessageID: "m"}, time.Minute)
		r := o.take("work", 1)[0]
		if a := <-o.ask(t.Context(), "work", &semantics.Message{CorrelationID: "m"}, time.Minute); semantics.CodeOf(a.err) != semantics.InvalidOperation || a.sent != nil {
			t.Errorf("two requests wait for one reply: %+v", a)
		}
		leave()
		if got := (<-first).text(); got != string(semantics.Cancelled) {
			t.Errorf("got %s", got)
		}
		again := o.ask(t.Context(), "work", &semantics.Message{MessageID: "m"}, time.Minute)
		o.take("work", 1)
		o.reply(r, "here")
		if got := (<-again).text(); got != "here" {
			t.Errorf("got %s", got)
		}
	})
}

// A reply that could not be carried to the caller is as if it came only now.
func TestRR_6_ReplyThatWasNotDelivered(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		replies := make(chan *delivery.Delivery, 1)
		for _, then := range []string{"is an orphan", "goes to who asks again"} {
			o.asking.Go(func() {
				_, delivery, err := o.asks.Request(t.Context(), semantics.ToQueue("work"), "replies", &semantics.Message{MessageID: "m"}, time.Minute)
				if err != nil {
					t.Error(err)
				}
				replies <- delivery
			})
			o.reply(o.take("work", 1)[0], then)
			delivery := <-replies
			var again <-chan answer
			if then != "is an orphan" {
				again = o.ask(t.Context(), "work", &semantics.Message{MessageID: "m"}, time.Minute)
				synctest.Wait()
			}
			if err := delivery.Undelivered(t.Context()); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if again != nil {
				if got := (<-again).text(); got != then {
					t.Errorf("got %q", got)
				}
			}
			o.orphans(1)
			o.left(0)
		}
	})
}

// A reply that could not be settled is settled when that works again, and is not in the way of others for as long as
// the session is held.
func TestRR_6_SettledAgain(t *testing.T) {
	for name, c := range map[string]struct {
		ends    func(o *office, d *delivery.Delivery) error
		orphans int64
	}{
		"orphan":      {nil, 1},
		"delivered":   {func(o *office, d *delivery.Delivery) error { return d.Delivered(o.t.Context()) }, 0},
		"undelivered": {func(o *office, d *delivery.Delivery) error { return d.Undelivered(o.t.Context()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			inOffice(t, func(t *testing.T, o *office) {
				one := semantics.Options{SessionInFlight: 1}
				if _, err := o.store.UpdateEntity(t.Context(), semantics.QueueKind, "replies", one, []string{"sessionInFlight"}); err != nil {
					t.Fatal(err)
				}
				o.jam(c.ends)
				waits := o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)
				o.reply(o.take("work", 1)[0], "behind it")
				<-time.After(20 * time.Second) // of the same session, whose lock is 5 seconds
				if len(waits) > 0 {
					t.Fatal("it came although there was no place for it")
				}
				o.store.jams.Store(false)
				began := time.Now()
				if got, took := (<-waits).text(), time.Since(began); got != "behind it" || took > 5*time.Second {
					t.Errorf("got %q after %s", got, took)
				}
				synctest.Wait()
				o.left(0)
				o.orphans(c.orphans)
			})
		})
	}
}

func TestRR_6_Refusals(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		disabled := semantics.DefaultOptions()
		disabled.Status = semantics.StatusReceiveDisabled
		disabled.RequiresSession = true
		o.queue("disabled", disabled)
		message := func(change func(*semantics.Message)) *semantics.Message {
			m := &semantics.Message{}
			change(m)
			return m
		}
		plain := &semantics.Message{}
		for _, c := range []struct {
			name, target, replyTo string
			m                     *semantics.Message
			timeout               time.Duration
			code                  semantics.Code
			field                 string
		}{
			{"no timeout", "work", "replies", plain, 0, semantics.ArgumentOutOfRange, "timeout"},
			{"long timeout", "work", "replies", plain, 301 * time.Second, semantics.ArgumentOutOfRange, "timeout"},
			{"no target", "", "replies", plain, time.Second, semantics.InvalidArgument, "name"},
			{"no reply queue", "work", "", plain, time.Second, semantics.InvalidArgument, "replyTo"},
			{"own header", "work", "replies", message(func(m *semantics.Message) { m.ReplyTo = "replies" }), time.Second, semantics.InvalidArgument, "message.replyTo"},
			{"own session", "work", "replies", message(func(m *semantics.Message) { m.ReplyToSessionID = "s" }), time.Second, semantics.InvalidArgument, "message.replyToSessionId"},
			{"scheduled", "work", "replies", message(func(m *semantics.Message) { m.ScheduledAt = time.Now() }), time.Second, semantics.InvalidArgument, "message.scheduledEnqueueTime"},
			{"bad message", "work", "replies", message(func(m *semantics.Message) { m.CorrelationID = strings.Repeat("c", 129) }), time.Second, semantics.InvalidArgument, "correlationId"},
			{"dead letters", "work/$deadletterqueue", "replies", plain, time.Second, semantics.InvalidOperation, ""},
			{"reply queue without sessions", "work", "work", plain, time.Second, semantics.SessionNotSupported, ""},
			{"unknown reply queue", "work", "none", plain, time.Second, semantics.EntityNotFound, ""},
			{"disabled reply queue", "work", "disabled", plain, time.Second, semantics.EntityDisabled, ""},
			{"unknown target", "none", "replies", plain, time.Second, semantics.EntityNotFound, ""},
			{"target wants a session", "replies", "replies", plain, time.Second, semantics.SessionIDMissing, ""},
		} {
			began := time.Now()
			sent, delivery, err := o.asks.Request(t.Context(), semantics.ToQueue(c.target), c.replyTo, c.m, c.timeout)
			e := semantics.AsError(err)
			if sent != nil || delivery != nil || semantics.CodeOf(err) != c.code || e.Details[semantics.DetailField] != c.field || time.Since(began) > 0 {
				t.Errorf("%s: got %v, %v, %v", c.name, sent, delivery, err)
			}
			if e.Details[semantics.DetailOutcome] != "" {
				t.Errorf("%s: the outcome is not unknown", c.name)
			}
		}
		if runtime, _ := o.store.Runtime(t.Context(), semantics.QueueKind, "work"); runtime.Total() != 0 {
			t.Errorf("something was sent: %+v", runtime)
		}
	})
}
