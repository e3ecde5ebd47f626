package reply_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

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
