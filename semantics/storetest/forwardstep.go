package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// The steps of a transfer one by one, as they happen when the sidecar that runs it crashes, is slow, or is not the only
// one.
var forwardStepTests = []ruleTest{
	testFWD_1_BeginSetsAside,
	testFWD_1_BeginGivesWhatIsUnderWay,
	testFWD_1_BeginRefuses,
	testFWD_1_NobodyGetsWhatIsSetAside,
	testFWD_1_DiesAfterAnyStep,
	testFWD_1_DiesAfterAnyStepToATopic,
	testFWD_1_ArrivesOnce,
	testFWD_1_ArrivesInATopicOnce,
	testFWD_1_LateArrivalChangesNothing,
	testFWD_1_EndsOnce,
	testFWD_1_ManyForwardersAtOnce,
	testFWD_1_OptionChangesUnderWay,
	testFWD_1_OptionClearedUnderWay,
	testFWD_1_SourceDeletedUnderWay,
	testFWD_1_SourceMadeAgainUnderWay,
	testFWD_1_SourcesAreToldApart,
	testFWD_1_Destinations,
	testCNT_1_TransferCounts,
}

func testFWD_1_BeginSetsAside(_ *testing.T, h *fixture) {
	h.createForwarding(locksFor(5 * time.Second))
	h.sendTexts(5)
	h.Advance(time.Second)
	transfer := h.begin(orders, archive.Path, 3)
	h.same(messageIDs(transfer.Messages), []string{"m1", "m2", "m3"})
	for i, m := range transfer.Messages {
		h.same([]any{m.SequenceNumber, m.EnqueuedSequenceNumber, m.EnqueuedAt}, []any{int64(i + 1), int64(i + 1), h.in(-time.Second)})
	}
	h.same([]any{transfer.Source, semantics.Fold(transfer.To.Path), transfer.To.Kind, transfer.Age}, []any{orders, archive.Path, semantics.QueueKind, time.Duration(0)})
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2, Transfer: 3})
	h.Advance(24 * time.Hour) // far beyond a lock
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2, Transfer: 3})
	h.wantNumbers(h.begin(orders, archive.Path, 9).Messages, 1, 2, 3)
}

func testFWD_1_BeginGivesWhatIsUnderWay(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.createNamed(attic.Path)
	h.sendTexts(2)
	first := h.begin(orders, archive.Path, 9)
	h.sendTexts(1)
	h.Advance(1500 * ms)
	want := first
	want.Age = 1500 * ms
	h.same(h.begin(orders, archive.Path, 1), want)
	h.forwardTo(attic.Path)
	for _, path := range []string{attic.Path, archive.Path, "nowhere"} { // whatever is asked for
		h.same(h.begin(orders, path, 9), want)
	}
	h.forwardTo("")
	h.same(h.begin(orders, "", 9), want)
	h.end(first)
	h.forwardTo(attic.Path)
	next := h.begin(orders, attic.Path, 9)
	h.wantNumbers(next.Messages, 3)
	if next.ID == first.ID || next.Age != 0 || semantics.Fold(next.To.Path) != attic.Path {
		h.t.Errorf("after %q came %q of age %s to %q", first.ID, next.ID, next.Age, next.To.Path)
	}
}

func testFWD_1_BeginRefuses(t *testing.T, h *fixture) {
	h.createForwarding()
	h.createNamed(attic.Path)
	refused := func(want error, source semantics.Source, path string) {
		t.Helper()
		to, err := h.Store.Destination(t.Context(), path)
		h.ok(err)
		_, err = h.Store.BeginTransfer(t.Context(), source, to, 9)
		if !errors.Is(err, want) && (want != nil || semantics.CodeOf(err) != semantics.EntityNotFound) {
			t.Errorf("from %s to %q: got %v", source, path, err)
		}
	}
	h.same(len(h.begin(orders, "ARCHIVE", 9).Messages), 0) // there is nothing
	h.sendTexts(1)
	refused(semantics.ErrForwardingChanged, orders, attic.Path)
	refused(semantics.ErrForwardingChanged, orders, "")
	refused(semantics.ErrForwardingChanged, deadOrders, archive.Path)
	refused(semantics.ErrForwardingChanged, deadOrders, "") // although it forwards nowhere
	refused(nil, semantics.Source{Path: "missing"}, archive.Path)
	refused(nil, eu, archive.Path)
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1})
}

// Dead letters of a source that forwards them can be received, so others may try to get what is set aside.
func testFWD_1_NobodyGetsWhatIsSetAside(_ *testing.T, h *fixture) {
	h.create(keepsDeadFor(5*time.Second), forwardsDeadTo(archive.Path))
	h.createNamed(archive.Path)
	h.deadLetterTexts("a", "b", "c")
	h.wantNumbers(h.begin(deadOrders, archive.Path, 2).Messages, 1, 2)
	h.wantNumbers(h.receive(deadOrders, 9), 3)
	h.same(h.receiveNumbers(deadOrders, 1) != nil, true)
	h.same(h.deleteNumbers(deadOrders, 1, 2), []semantics.Code{semantics.MessageNotFound, semantics.MessageNotFound})
	h.same(h.purge(deadOrders, broker.PurgeOptions{Before: h.in(time.Second)}), int64(0))
	missing := semantics.MessageNotFound
	h.same(h.resubmit(broker.ResubmitOptions{Numbers: []int64{1, 2}}), []broker.ResubmitResult{notMoved(1, missing), notMoved(2, missing)})
	for _, m := range h.peek(deadOrders) { // it can be looked at, and can be seen to be out of reach
		h.same(m.Locked, true)
	}
	h.Advance(lock)
	h.same(h.counts(), semantics.Runtime{Transfer: 2}) // the third was kept long enough
	h.forward()
	h.wantIDs(archive, "a", "b")
	h.same(h.counts(), semantics.Runtime{})
}

// The sidecar that runs a transfer crashes after some step, and another one finds the transfer.
func testFWD_1_DiesAfterAnyStep(_ *testing.T, h *fixture) {
	h.createForwarding()
	others := h.sidecars()
	for _, steps := range []func(transfer semantics.Transfer){
		func(semantics.Transfer) {},
		func(transfer semantics.Transfer) { h.arrive(transfer) },
		func(transfer semantics.Transfer) { h.arrive(transfer); h.end(transfer) },
	} {
		h.sendTexts(5)
		steps(h.begin(orders, archive.Path, 3))
		h.forwardBy(others[len(others)-1])
		h.same(h.counts(), semantics.Runtime{})
		got := h.receive(archive, 9)
		h.same(messageIDs(got), []string{"m1", "m2", "m3", "m4", "m5"})
		h.complete(archive, got...)
	}
}

func testFWD_1_DiesAfterAnyStepToATopic(_ *testing.T, h *fixture) {
	h.createNews()
	h.create(forwardsTo(news))
	for _, steps := range []int{1, 2, 3} {
		h.sendTexts(3)
		transfer := h.begin(orders, news, 2)
		if steps > 1 {
			h.arriveInNews(transfer)
		}
		if steps > 2 {
			h.end(transfer)
		}
		h.createRule(us, always(fmt.Sprintf("r%d", steps))) // so that the routes are not those of before
		h.forward()
		for _, source := range []semantics.Source{eu, us} {
			got := h.receive(source, 9)
			h.same(messageIDs(got), []string{"m1", "m2", "m3"})
			h.complete(source, got...)
		}
	}
	h.same(h.counts(), semantics.Runtime{})
}

// arriveInNews lets all of a transfer arrive at the topic, with a copy for each subscription, and returns what became
// of each message.
func (h *fixture) arriveInNews(transfer semantics.Transfer) []semantics.Arrival {
	h.t.Helper()
	publications := carried(transfer)
	for i, p := range publications {
		publications[i].Copies = []semantics.Copy{{Subscription: "eu", Message: p.Message}, {Subscription: "us", Message: p.Message}}
	}
	arrivals, err := h.Store.Arrive(h.t.Context(), transfer, h.routes().Version, publications, true)
	h.ok(err)
	return arrivals
}

func testFWD_1_ArrivesOnce(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, holdsAtMost(3))
	h.create(forwardsTo(archive.Path))
	h.sendTexts(5)
	transfer := h.begin(orders, archive.Path, 9)
	want := []semantics.Code{"", "", "", semantics.EntityFull, semantics.EntityFull}
	h.same(h.arrive(transfer), want)
	h.complete(archive, h.receive(archive, 9)...)
	// The queue has free capacity now, but the decision stays. It also holds for a sidecar that begins again, with any
	// messages.
	h.same(h.arrive(transfer), want)
	h.same(h.arrive(h.begin(orders, archive.Path, 9)), want)
	h.updateNamed(archive, hasStatus(semantics.StatusDisabled), "status")
	h.same(h.arrive(transfer), want)
	h.updateNamed(archive, hasStatus(semantics.StatusActive), "status")
	h.wantIDs(archive)
	h.forward()
	h.wantIDs(archive)
	h.wantIDs(undelivered(orders), "m4", "m5")
}

func testFWD_1_ArrivesInATopicOnce(_ *testing.T, h *fixture) {
	h.createNews()
	h.create(forwardsTo(news))
	h.sendTexts(2)
	transfer := h.begin(orders, news, 9)
	stored := []semantics.Arrival{{}, {}}
	h.same(h.arriveInNews(transfer), stored)
	h.createRule(us, always("more"))
	h.same(h.arriveInNews(transfer), stored)
	// by routes of before: the answer is there
	got, err := h.Store.Arrive(h.t.Context(), transfer, 0, carried(transfer), true)
	h.ok(err)
	h.same(got, stored)
	h.wantIDs(eu, "m1", "m2")
	h.wantIDs(us, "m1", "m2")
}

// One that was held up for long comes when others have ended its transfer and begun more.
func testFWD_1_LateArrivalChangesNothing(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(1)
	first := h.begin(orders, archive.Path, 9)
	h.arrive(first)
	h.end(first)
	h.arrive(first)
	h.wantIDs(archive, "m1")
	h.send(text("m2"), text("m3"))
	second := h.begin(orders, archive.Path, 9)
	h.arrive(first)
	h.end(first)
	h.same(h.counts(), semantics.Runtime{Transfer: 2})
	h.arrive(second)
	h.isOvertaken(first)
	h.wantIDs(archive, "m1", "m2", "m3")
	h.end(second)
	h.Advance(30 * time.Minute)
	h.arrive(second)
	h.isOvertaken(first)
	h.wantIDs(archive, "m1", "m2", "m3")
}

func testFWD_1_EndsOnce(t *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(2)
	transfer := h.begin(orders, archive.Path, 9)
	h.arrive(transfer)
	reason, description := "why", "how"
	deadLettered := semantics.Fate{DeadLetter: &semantics.DeadLetterTexts{Reason: &reason, Description: &description}}
	h.ok(h.Store.EndTransfer(t.Context(), transfer, []semantics.Fate{{}, deadLettered}))
	h.ok(h.Store.EndTransfer(t.Context(), transfer, []semantics.Fate{deadLettered, deadLettered})) // the other one is over
	h.wantNumbers(h.peek(undelivered(orders)), 2)
	h.same(h.counts(), semantics.Runtime{TransferDeadLetter: 1})
	h.sendTexts(1)
	next := h.begin(orders, archive.Path, 9)
	h.end(transfer)
	h.same(h.counts(), semantics.Runtime{Transfer: 1, TransferDeadLetter: 1})
	h.same(h.begin(orders, archive.Path, 9), next)
}

func testFWD_1_ManyForwardersAtOnce(t *testing.T, h *fixture) {
	h.races()
	h.createNamed(archive.Path)
	h.createNamed(attic.Path, forwardsTo(archive.Path))
	h.create(forwardsTo(attic.Path))
	const many = 120
	brokers := h.sidecars()
	var senders, forwarders sync.WaitGroup
	sent := make(chan struct{})
	senders.Go(func() {
		for i := range many {
			if _, err := h.broker.Send(t.Context(), semantics.ToQueue(orders.Path), []*semantics.Message{text(fmt.Sprint(i))}); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range 4 {
		forwarders.Go(func() {
			for over := false; !over; {
				select {
				case <-sent:
					over = true // again, for all messages that are there now
				default:
				}
				for range 2 {
					for _, source := range []semantics.Source{orders, attic} {
						if err := brokers[i%len(brokers)].Forward(t.Context(), source); err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	senders.Wait()
	close(sent)
	forwarders.Wait()
	h.forward()
	var want []string
	for i := range many {
		want = append(want, fmt.Sprint(i))
	}
	h.same(messageIDs(h.takeAll(archive)), want) // each once, and in order
	h.same(h.counts(), semantics.Runtime{})
	h.same(h.countsOf(attic), semantics.Runtime{})
}

func testFWD_1_OptionChangesUnderWay(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.createNamed(attic.Path)
	h.sendTexts(3)
	h.begin(orders, archive.Path, 2)
	h.forwardTo(attic.Path)
	h.sendTexts(1)
	h.forward()
	h.wantIDs(archive, "m1", "m2")
	h.wantIDs(attic, "m3", "m1")
	h.same(h.counts(), semantics.Runtime{})
}

func testFWD_1_OptionClearedUnderWay(t *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(3)
	h.arrive(h.begin(orders, archive.Path, 2))
	h.forwardTo("")
	h.wantNumbers(h.receive(orders, 9), 3) // and nothing that has arrived already
	h.ok(h.broker.Forward(t.Context(), orders))
	h.wantIDs(archive, "m1", "m2")
	h.same(h.counts(), semantics.Runtime{Active: 1, Locked: 1})
}

func testFWD_1_SourceDeletedUnderWay(t *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(2)
	transfer := h.begin(orders, archive.Path, 9)
	h.arrive(transfer)
	h.drop()
	h.end(transfer)
	h.arrive(transfer)
	h.ok(h.broker.Forward(t.Context(), orders))
	h.wantIDs(archive, "m1", "m2")
}

// The other queue of the name has transfers of its own, in the same instant.
func testFWD_1_SourceMadeAgainUnderWay(_ *testing.T, h *fixture) {
	h.createForwarding()
	h.sendTexts(2)
	old := h.begin(orders, archive.Path, 9)
	h.drop()
	h.create(forwardsTo(archive.Path))
	h.same(len(h.begin(orders, archive.Path, 9).Messages), 0)
	h.send(text("new"))
	transfer := h.begin(orders, archive.Path, 9)
	h.end(old)
	h.same(h.begin(orders, archive.Path, 9), transfer)
	h.same(h.arrive(transfer), []semantics.Code{""})
	h.same(h.counts(), semantics.Runtime{Transfer: 1})
	h.end(transfer)
	h.wantIDs(archive, "new")
}

// Main queue, dead-letter queue and queues of similar names have each their own transfer to one destination.
func testFWD_1_SourcesAreToldApart(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path)
	h.createTopic()
	sources := []semantics.Source{orders, {Path: "orders/eu"}, {Path: "news/eu"}, eu}
	for _, source := range sources {
		if source == eu {
			h.createSubscription(eu)
			h.publishTexts("dead"+source.Path, "main"+source.Path)
		} else {
			h.createNamed(source.Path)
			h.sendToQueue(source, text("dead"+source.Path), text("main"+source.Path))
		}
		h.deadLetterFrom(source, h.receiveOne(source))
		options := optionsOf([]change{forwardsTo(archive.Path), forwardsDeadTo(archive.Path)})
		kind := semantics.QueueKind
		if source == eu {
			kind = semantics.SubscriptionKind
		}
		h.ok(second(h.Store.UpdateEntity(h.t.Context(), kind, source.Path, options, []string{"forwardTo", "forwardDeadLetteredMessagesTo"})))
	}
	var transfers []semantics.Transfer
	var want []string
	for _, source := range sources {
		transfers = append(transfers, h.begin(source, archive.Path, 9), h.begin(deadOf(source), archive.Path, 9))
		want = append(want, "main"+source.Path, "dead"+source.Path)
	}
	for range 2 {
		for _, transfer := range transfers {
			h.same(h.arrive(transfer), []semantics.Code{""})
		}
	}
	h.wantIDs(archive, want...)
	h.forward()
	h.wantIDs(archive, want...)
}

func testFWD_1_Destinations(t *testing.T, h *fixture) {
	h.createNamed("Archive")
	h.createTopic()
	h.createSubscription(eu)
	find := func(path string) semantics.Destination {
		t.Helper()
		found, err := h.Store.Destination(t.Context(), path)
		h.ok(err)
		h.same(semantics.Fold(found.Path), semantics.Fold(path))
		return found
	}
	h.same(find("missing").Incarnation, int64(0))
	h.same(find(eu.Path).Incarnation, int64(0))
	queue, topic := find("aRCHIVE"), find(news)
	h.same([]semantics.Kind{queue.Kind, topic.Kind}, []semantics.Kind{semantics.QueueKind, semantics.TopicKind})
	seen := []int64{0, queue.Incarnation}
	for range 3 {
		h.deleteQueue(archive)
		h.same(find(archive.Path).Incarnation, int64(0))
		h.createNamed(archive.Path)
		again := find(archive.Path)
		if slices.Contains(seen, again.Incarnation) {
			t.Errorf("incarnation %d is that of an earlier one of %d", again.Incarnation, seen)
		}
		seen = append(seen, again.Incarnation)
		h.updateNamed(archive, livesFor(time.Hour), "defaultMessageTimeToLive")
		h.same(find(archive.Path), again)
	}
}

func testCNT_1_TransferCounts(_ *testing.T, h *fixture) {
	h.createNamed(archive.Path, hasStatus(semantics.StatusDisabled))
	h.create(forwardsDeadTo(archive.Path))
	h.deadLetterTexts("a", "b")
	h.send(text("c"), text("d"), text("e"), later("f", h.in(time.Hour)))
	size := h.runtime().SizeInBytes
	h.forwardTo(archive.Path)
	h.begin(orders, archive.Path, 2)
	h.begin(deadOrders, archive.Path, 1)
	r := h.runtime()
	h.same(r.SizeInBytes, size)
	h.same(r.Total(), int64(6))
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1, Scheduled: 1, DeadLetter: 1, Transfer: 3})
	h.forward()
	r = h.runtime()
	h.same(r.SizeInBytes, size)
	h.same(r.Total(), int64(6))
	h.same(h.counts(), semantics.Runtime{Scheduled: 1, TransferDeadLetter: 5})
}
