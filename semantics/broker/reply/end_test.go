package reply_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

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
