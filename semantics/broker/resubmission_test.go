package broker_test

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// A resubmission that is so slow that others carry it on, and another after it, does not know what became of its
// letters. It must not say that they were sent: here the topic took none.
func TestDLQ_22_SlowResubmissionIsInDoubt(t *testing.T) {
	store := &meddled{Store: memstore.New()}
	slow, fast := broker.New(store), broker.New(store.Store)
	defer slow.Close()
	defer fast.Close()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, orders := t.Context(), semantics.Source{Path: "orders"}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	must(fast.CreateEntity(ctx, semantics.TopicKind, "news", semantics.Options{Status: semantics.StatusSendDisabled}, []string{"status"}))
	must(fast.CreateEntity(ctx, semantics.QueueKind, "orders", semantics.Options{}, nil))
	sendMany(t, fast, "orders", 2)
	for range 2 {
		batch, err := store.Receive(ctx, orders, 1, semantics.RegisterNever)
		must(nil, err)
		must(store.DeadLetter(ctx, orders, []semantics.LockToken{batch.Messages[0].LockToken}, semantics.DeadLetterTexts{}, nil))
	}
	options := broker.ResubmitOptions{Target: "news", TargetIsTopic: true}
	store.before = func(step string) error {
		if step != "arrive" {
			return nil
		}
		store.before = nil
		must(nil, fast.Forward(ctx, dead)) // ends what the slow one began
		enabled := semantics.Options{Status: semantics.StatusActive}
		must(fast.UpdateEntity(ctx, semantics.TopicKind, "news", enabled, []string{"status"}))
		second := options
		second.Numbers = []int64{2}
		_, _, err := fast.Resubmit(ctx, dead, second)
		return err
	}
	first := options
	first.Numbers = []int64{1}
	results, _, err := slow.Resubmit(ctx, dead, first)
	e := semantics.AsError(err)
	if e == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != semantics.OutcomeUnknown {
		t.Errorf("the slow one is told %+v, %v", results, err)
	}
}

// A forwarder that was overtaken looks once more, and does not count what it did not bring.
func TestDUR_4_OvertakenForwarderLooksAgain(t *testing.T) {
	b, store := newForwarding(t)
	sendMany(t, b, "from", 1)
	from := semantics.Source{Path: "from"}
	other := broker.New(store.Store)
	defer other.Close()
	store.before = func(step string) error {
		if step != "arrive" {
			return nil
		}
		store.before = nil
		for range 2 {
			if err := other.Forward(t.Context(), from); err != nil {
				return err
			}
			sendMany(t, other, "from", 1)
		}
		return nil
	}
	if err := b.Forward(t.Context(), from); err != nil {
		t.Fatal(err)
	}
	if forwarded, refused := b.Forwarded(); countOf(t, b, "to") != 3 || countOf(t, b, "from") != 0 || forwarded != 1 || refused != 0 {
		t.Errorf("%d arrived, %d are left, %d were counted, %d refused", countOf(t, b, "to"), countOf(t, b, "from"), forwarded, refused)
	}
}
