package reply_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// office has a Broker that asks, one that works, the queues "work" and "replies", and a clock that the test moves by
// waiting.
type office struct {
	t      *testing.T
	store  *spiedStore
	asks   *broker.Broker
	works  *broker.Broker
	asking sync.WaitGroup
}

// spiedStore is a memstore that knows the last session that was accepted, and fails when told to.
type spiedStore struct {
	*memstore.Store

	onSend  func(path string)
	session atomic.Pointer[semantics.Source]
	down    atomic.Bool
	jams    atomic.Bool // replies cannot be settled
}

func (s *spiedStore) Send(ctx context.Context, path string, messages []*semantics.Message) ([]semantics.Stored, error) {
	if s.onSend != nil {
		s.onSend(path)
	}
	return s.Store.Send(ctx, path, messages)
}

var errAway = &semantics.Error{Code: semantics.StoreUnavailable, Message: "away"}

func (s *spiedStore) AcceptSession(ctx context.Context, path, id string) (*semantics.Session, error) {
	if s.down.Load() {
		return nil, errAway
	}
	session, err := s.Store.AcceptSession(ctx, path, id)
	if err == nil {
		s.session.Store(&semantics.Source{Path: path, SessionLock: session.Lock})
	}
	return session, err
}

func (s *spiedStore) Receive(ctx context.Context, source semantics.Source, limit int, register semantics.Register) (semantics.Batch, error) {
	if s.down.Load() && source.Path == "replies" {
		return semantics.Batch{}, errAway
	}
	return s.Store.Receive(ctx, source, limit, register)
}

func (s *spiedStore) Complete(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if s.jams.Load() && source.Path == "replies" {
		return nil, errAway
	}
	return s.Store.Complete(ctx, source, tokens)
}

func (s *spiedStore) Release(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	if s.jams.Load() && source.Path == "replies" {
		return nil, errAway
	}
	return s.Store.Release(ctx, source, tokens)
}

// inOffice runs a test in a bubble whose time passes by itself while everybody waits.
func inOffice(t *testing.T, test func(t *testing.T, o *office)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &spiedStore{Store: memstore.New()}
		o := &office{t: t, store: store, asks: broker.New(store), works: broker.New(store)}
		o.queue("work", semantics.DefaultOptions())
		replies := semantics.DefaultOptions()
		replies.RequiresSession, replies.LockDuration = true, 5*time.Second
		o.queue("replies", replies)
		test(t, o)
		o.asks.Close()
		o.works.Close()
		o.asking.Wait()
		if n := o.asks.Held(); n != 0 {
			t.Errorf("%d held after the end", n)
		}
	})
}

func (o *office) queue(name string, options semantics.Options) {
	o.t.Helper()
	if _, _, err := o.store.CreateEntity(o.t.Context(), semantics.QueueKind, name, options); err != nil {
		o.t.Fatal(err)
	}
}

// answer is what a request came to.
type answer struct {
	sent     []semantics.SendResult
	delivery *delivery.Delivery
	err      error
}

func (a answer) text() string {
	if a.err != nil {
		return string(semantics.CodeOf(a.err))
	}
	return string(a.delivery.Messages[0].Body)
}

// ask begins a request. Its reply is delivered.
func (o *office) ask(ctx context.Context, target string, m *semantics.Message, timeout time.Duration) <-chan answer {
	done := make(chan answer, 1)
	o.asking.Go(func() {
		var a answer
		a.sent, a.delivery, a.err = o.asks.Request(ctx, semantics.ToQueue(target), "replies", m, timeout)
		if a.err == nil {
			if err := a.delivery.Delivered(o.t.Context()); err != nil {
				o.t.Error(err)
			}
		}
		done <- a
	})
	return done
}

// take receives requests and completes them.
func (o *office) take(source string, n int) []*semantics.Received {
	o.t.Helper()
	var taken []*semantics.Received
	for len(taken) < n {
		delivery, err := o.works.Receive(o.t.Context(), semantics.Source{Path: source}, broker.ReceiveOptions{MaxMessages: n - len(taken), MaxWait: time.Minute})
		if err != nil || len(delivery.Messages) == 0 {
			o.t.Fatalf("got %v, %v", delivery, err)
		}
		for _, m := range delivery.Messages {
			if _, err := o.works.Complete(o.t.Context(), delivery.Source(), []semantics.LockToken{m.LockToken}); err != nil {
				o.t.Fatal(err)
			}
		}
		taken = append(taken, delivery.Messages...)
	}
	return taken
}

// reply answers a request as a worker does (RR-3).
func (o *office) reply(request *semantics.Received, text string) {
	o.t.Helper()
	key := request.CorrelationID
	if key == "" {
		key = request.MessageID
	}
	m := &semantics.Message{SessionID: request.ReplyToSessionID, CorrelationID: key, Body: []byte(text)}
	if _, err := o.works.Send(o.t.Context(), semantics.ToQueue(request.ReplyTo), []*semantics.Message{m}); err != nil {
		o.t.Fatal(err)
	}
}

// left fails the test unless so many replies are in the reply queue.
func (o *office) left(want int64) {
	o.t.Helper()
	runtime, err := o.store.Runtime(o.t.Context(), semantics.QueueKind, "replies")
	if err != nil || runtime.Total() != want {
		o.t.Errorf("%d messages among the replies, %v, want %d", runtime.Total(), err, want)
	}
}

// sessionIs fails the test unless the Broker's session is held by it or free.
func (o *office) sessionIs(held bool, id string) {
	o.t.Helper()
	session, err := o.store.Store.AcceptSession(o.t.Context(), "replies", id)
	if got := semantics.CodeOf(err) == semantics.SessionCannotBeLocked; got != held {
		o.t.Errorf("accept of the session: %v, want it held: %v", err, held)
	}
	if err == nil {
		if err := o.store.CloseSession(o.t.Context(), semantics.Source{Path: "replies", SessionLock: session.Lock}); err != nil {
			o.t.Error(err)
		}
	}
}

func (o *office) orphans(want int64) {
	o.t.Helper()
	if got := o.asks.OrphanReplies(); got != want {
		o.t.Errorf("%d orphans, want %d", got, want)
	}
}

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

func TestRR_4_SessionIsHeldBeforeTheRequestIsSent(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		held := false
		o.store.onSend = func(path string) {
			if path == "work" {
				held = o.store.session.Load() != nil
			}
		}
		done := o.ask(t.Context(), "work", &semantics.Message{}, time.Second)
		r := o.take("work", 1)[0]
		o.sessionIs(true, r.ReplyToSessionID)
		o.reply(r, "yes")
		if got := (<-done).text(); got != "yes" || !held {
			t.Errorf("got %q, held before the send: %v", got, held)
		}
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

// jam lets a reply come that cannot be settled when ends has been called for it, or as an orphan.
func (o *office) jam(ends func(o *office, d *delivery.Delivery) error) {
	o.t.Helper()
	replies := make(chan *delivery.Delivery, 1)
	ctx, cancel := context.WithCancel(o.t.Context())
	defer cancel()
	o.asking.Go(func() {
		_, delivery, _ := o.asks.Request(ctx, semantics.ToQueue("work"), "replies", &semantics.Message{}, time.Minute)
		replies <- delivery
	})
	r := o.take("work", 1)[0]
	if ends == nil { // nobody waits for it
		cancel()
		<-replies
	}
	o.store.jams.Store(true)
	o.reply(r, "in the way")
	if ends != nil {
		wantCode(o.t, "settle", ends(o, <-replies), semantics.StoreUnavailable)
	}
	synctest.Wait()
}

func TestRR_6_SessionIsKeptAsLongAsNeeded(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		done := o.ask(t.Context(), "work", &semantics.Message{}, 5*time.Minute)
		r := o.take("work", 1)[0]
		<-time.After(4 * time.Minute) // many times the lock
		o.sessionIs(true, r.ReplyToSessionID)
		first := o.store.session.Load()
		o.reply(r, "at last")
		if got := (<-done).text(); got != "at last" {
			t.Errorf("got %q", got)
		}
		<-time.After(59 * time.Second)
		o.sessionIs(true, r.ReplyToSessionID)
		if o.store.session.Load() != first {
			t.Error("the session was taken more than once")
		}
		<-time.After(2 * time.Second)
		o.sessionIs(false, r.ReplyToSessionID)
		if n := o.asks.Held(); n != 0 {
			t.Errorf("%d held", n)
		}

		done = o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)
		again := o.take("work", 1)[0]
		o.reply(again, "anew")
		if got := (<-done).text(); got != "anew" || again.ReplyToSessionID != r.ReplyToSessionID {
			t.Errorf("got %q in session %q, want %q", got, again.ReplyToSessionID, r.ReplyToSessionID)
		}
	})
}

func TestRR_6_LostSessionIsTakenAgain(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		done := o.ask(t.Context(), "work", &semantics.Message{}, 2*time.Minute)
		r := o.take("work", 1)[0]
		if err := o.store.CloseSession(t.Context(), *o.store.session.Load()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		o.sessionIs(true, r.ReplyToSessionID)

		o.store.down.Store(true) // and the lock ends meanwhile
		if err := o.store.CloseSession(t.Context(), *o.store.session.Load()); err != nil {
			t.Fatal(err)
		}
		<-time.After(30 * time.Second)
		if a := <-o.ask(t.Context(), "work", &semantics.Message{}, time.Minute); semantics.CodeOf(a.err) != semantics.StoreUnavailable || a.sent != nil {
			t.Errorf("a request while the session cannot be held: %+v", a)
		}
		o.reply(r, "still there")
		o.store.down.Store(false)
		if got := (<-done).text(); got != "still there" {
			t.Errorf("got %q", got)
		}
	})
}

// A lock whose answer was lost is in our own way: its end is waited for.
func TestRR_6_SessionThatIsHeldAlready(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		done := o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)
		id := o.take("work", 1)[0].ReplyToSessionID
		<-done
		<-time.After(2 * time.Minute)
		if _, err := o.store.Store.AcceptSession(t.Context(), "replies", id); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		done = o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)
		o.reply(o.take("work", 1)[0], "yes")
		if got := (<-done).text(); got != "yes" || time.Since(began) > 6*time.Second {
			t.Errorf("got %q after %s", got, time.Since(began))
		}
	})
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

func TestRR_6_ReplyQueueIsDeleted(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		done := o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)
		o.take("work", 1)
		if err := o.store.DeleteEntity(t.Context(), semantics.QueueKind, "replies"); err != nil {
			t.Fatal(err)
		}
		a := <-done
		if e := semantics.AsError(a.err); e.Code != semantics.EntityNotFound || e.Details[semantics.DetailOutcome] != semantics.OutcomeUnknown {
			t.Errorf("got %v", a.err)
		}
	})
}

func TestRR_6_DrainEndsRequests(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		done := o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)
		r := o.take("work", 1)[0]
		began := time.Now()
		o.asks.BeginDrain()
		for _, a := range []answer{<-done, <-o.ask(t.Context(), "work", &semantics.Message{}, time.Minute)} {
			if e := semantics.AsError(a.err); e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailCause] != "draining" {
				t.Errorf("got %v", a.err)
			}
		}
		if held := o.asks.AwaitSettled(t.Context()); held != 0 || time.Since(began) > 0 {
			t.Errorf("%d held, after %s", held, time.Since(began))
		}
		o.sessionIs(false, r.ReplyToSessionID)
	})
}

// What a drain meets in hand is completed under the session, not after it.
func TestRR_6_DrainWaitsForRepliesInHand(t *testing.T) {
	inOffice(t, func(t *testing.T, o *office) {
		replies := make(chan *delivery.Delivery, 1)
		o.asking.Go(func() {
			_, delivery, err := o.asks.Request(t.Context(), semantics.ToQueue("work"), "replies", &semantics.Message{}, time.Minute)
			if err != nil {
				t.Error(err)
			}
			replies <- delivery
		})
		r := o.take("work", 1)[0]
		o.reply(r, "yes")
		delivery := <-replies
		o.asks.BeginDrain()
		<-time.After(time.Second)
		o.sessionIs(true, r.ReplyToSessionID)
		if err := delivery.Delivered(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		o.sessionIs(false, r.ReplyToSessionID)
		o.left(0)
	})
}
