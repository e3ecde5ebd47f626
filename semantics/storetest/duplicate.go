package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var duplicateTests = []ruleTest{
	testDUP_1_RememberedIsDropped,
	testDUP_1_OffByDefault,
	testDUP_2_KeyIsTheMessageID,
	testDUP_2_PartitionIsPartOfTheKey,
	testDUP_3_WindowIsThePresentOne,
	testDUP_3_DefaultAndBounds,
	testDUP_4_ExactWindow,
	testDUP_5_NothingClearsTheHistory,
	testDUP_5_DeletionOfTheQueueDoes,
	testDUP_6_ScheduledTakePart,
	testDUP_6_CancelDoesNotForget,
	testDUP_6_ForgetOnCancel,
	testDUP_7_AnswerNamesTheOriginal,
	testDUP_8_BatchDropsOnlyDuplicates,
	testDUP_10_OneOfManySendersStores,
	testDUP_10_RefusedSendLeavesNoHistory,
	testDUP_11_HistoryIsBounded,
	testDUP_11_HistoryTakesNoRoom,
	testBATCH_4_OnePartitionPerCall,
}

// window is how long queues made without saying otherwise remember ids.
const window = 10 * time.Minute

func sharesKeys(o *semantics.Options) { o.EnablePartitioning = true }

func testDUP_1_RememberedIsDropped(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(1)})
	h.Advance(ms)
	again := text("a")
	again.Body, again.Subject = []byte("another body"), "other properties are not compared"
	h.same(h.sendAll(again), []semantics.Stored{duplicate(1)})
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1})
	h.same(string(h.receiveOne(orders).Body), "a")
	h.same(h.sendAll(text("b")), []semantics.Stored{stored(2)}) // a duplicate takes no number
	h.same(h.accessed(), h.Now())
}

func testDUP_1_OffByDefault(_ *testing.T, h *fixture) {
	h.create()
	h.same(h.sendAll(text("a"), text("a")), []semantics.Stored{stored(1), stored(2)})
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(3)})
}

func testDUP_2_KeyIsTheMessageID(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.sendAll(&semantics.Message{MessageID: "id", PartitionKey: "p"})
	got := h.sendAll(&semantics.Message{MessageID: "id", PartitionKey: "q"}, &semantics.Message{MessageID: "ID"}, &semantics.Message{MessageID: "id\x00"})
	h.same(got, []semantics.Stored{duplicate(1), stored(2), stored(3)}) // with case, and the partition is nothing here
	// Ids that Sidebus makes are never the same.
	h.same(h.sendAll(&semantics.Message{}, &semantics.Message{}), []semantics.Stored{stored(4), stored(5)})
}

func testDUP_2_PartitionIsPartOfTheKey(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, sharesKeys)
	send := func(id, partition, session string) semantics.Stored {
		return h.sendAll(&semantics.Message{MessageID: id, PartitionKey: partition, SessionID: session})[0]
	}
	h.same(send("id", "", ""), stored(1))
	h.same(send("id", "p", ""), stored(2))
	h.same(send("id", "q", ""), stored(3))
	h.same(send("id", "", "p"), duplicate(2)) // the session id counts as partition key
	h.same(send("id", "p", "p"), duplicate(2))
	h.same(send("id", "", "s"), stored(4))
	h.same(send("id", "s", ""), duplicate(4))
	h.same(send("id", "P", ""), stored(5))
	h.same(send("id", "", ""), duplicate(1))
	// However partition and id are put together, they must not run into each other.
	h.same(send("bc", "a", ""), stored(6))
	h.same(send("c", "ab", ""), stored(7))
	h.same(send("a:b", "c", ""), stored(8))
	h.same(send("b", "c:a", ""), stored(9))
	h.same(send("b", "a:c", ""), stored(10))
	h.same(send("b\x00c", "a", ""), stored(11))
	h.same(send("c", "a\x00b", ""), stored(12))
}

func testDUP_3_WindowIsThePresentOne(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(text("a"))
	h.Advance(30 * time.Second)
	h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(1)})
	h.update(remembersFor(30*time.Second+ms), "duplicateDetectionHistoryTimeWindow")
	h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(1)})
	h.update(remembersFor(30*time.Second), "duplicateDetectionHistoryTimeWindow")
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(2)})
}

func testDUP_3_DefaultAndBounds(t *testing.T, h *fixture) {
	_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{RequiresDuplicateDetection: true}, []string{"requiresDuplicateDetection"})
	h.ok(err)
	set := func(d time.Duration) error {
		options := semantics.Options{DuplicateDetectionHistoryTimeWindow: d}
		_, err := h.broker.UpdateEntity(t.Context(), semantics.QueueKind, "orders", options, []string{"duplicateDetectionHistoryTimeWindow"})
		return err
	}
	const shortest, longest = 20 * time.Second, 7 * 24 * time.Hour
	number := h.send(text("a"))
	for _, d := range []time.Duration{window, shortest, longest} {
		if d != window { // which is there already
			h.ok(set(d))
		}
		h.Advance(d - ms)
		h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(number)})
		h.Advance(ms)
		number++
		h.same(h.sendAll(text("a")), []semantics.Stored{stored(number)})
	}
	for _, d := range []time.Duration{shortest - ms, longest + ms, 0, -ms} {
		h.refused(semantics.ArgumentOutOfRange, func() error { return set(d) })
		options := semantics.Options{RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: d}
		_, err := h.broker.CreateEntity(t.Context(), semantics.QueueKind, "other", options, []string{"requiresDuplicateDetection", "duplicateDetectionHistoryTimeWindow"})
		h.wantCode(err, semantics.ArgumentOutOfRange)
	}
}

func testDUP_4_ExactWindow(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, remembersFor(20*time.Second))
	h.send(text("a"))
	for range 4 { // duplicates do not extend it
		h.Advance(5*time.Second - ms)
		h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(1)})
	}
	h.Advance(3 * ms)
	h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(1)})
	h.Advance(ms) // start + window
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(2)})
	h.Advance(20*time.Second - ms)
	h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(2)}) // a new window began
}

func testDUP_5_NothingClearsTheHistory(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(text("completed"), lasting("expired", 1000*ms), text("dead"), text("purged"), text("deleted"), text("dead purged"))
	h.complete(orders, h.takeNumbers(orders, 1)...)
	h.deadLetter(h.takeNumbers(orders, 3, 6)...)
	h.same(h.deleteNumbers(orders, 5), []semantics.Code{""})
	h.Advance(1000 * ms)
	h.same(h.purge(orders, broker.PurgeOptions{DeadLetters: true}), int64(3))
	h.same(h.runtime(), semantics.Runtime{})
	got := h.sendAll(text("completed"), text("expired"), text("dead"), text("purged"), text("deleted"), text("dead purged"))
	for i, s := range got {
		h.same(s, duplicate(int64(i+1)))
	}
}

func testDUP_5_DeletionOfTheQueueDoes(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(text("a"), later("b", h.in(time.Hour)))
	h.drop()
	h.create(detectsDuplicates)
	h.same(h.sendAll(text("b"), text("a")), []semantics.Stored{stored(1), stored(2)})
}

func testDUP_6_ScheduledTakePart(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, remembersFor(20*time.Second))
	h.send(text("sent"))
	at := h.in(10 * time.Second)
	h.same(h.sendAll(later("sent", at), later("scheduled", at)), []semantics.Stored{duplicate(1), stored(2)})
	h.same(h.sendAll(text("scheduled")), []semantics.Stored{duplicate(2)})
	h.same(h.sendAll(later("scheduled", at.Add(time.Hour))), []semantics.Stored{duplicate(2)})
	h.same(h.counts(), semantics.Runtime{Active: 1, Available: 1, Scheduled: 1})
	h.Advance(10 * time.Second) // activation is not an acceptance: it is neither checked nor remembered
	h.same(h.counts(), semantics.Runtime{Active: 2, Available: 2})
	h.same(h.sendAll(text("scheduled")), []semantics.Stored{duplicate(2)})
	h.Advance(10 * time.Second)
	h.same(h.sendAll(text("scheduled")), []semantics.Stored{stored(4)})
}

func testDUP_6_CancelDoesNotForget(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(later("a", h.in(time.Hour)))
	h.ok(h.cancel(1))
	h.same(h.sendAll(text("a")), []semantics.Stored{duplicate(1)})
	h.send(later("b", h.in(time.Hour)))
	_, err := h.cancelIDs("b")
	h.ok(err)
	h.same(h.sendAll(text("b")), []semantics.Stored{duplicate(2)})
	h.same(h.runtime(), semantics.Runtime{})
}

func testDUP_6_ForgetOnCancel(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, sharesKeys, func(o *semantics.Options) { o.ForgetOnCancel = true })
	at := h.in(time.Hour)
	h.send(later("a", at))
	h.ok(h.cancel(1))
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(2)})
	h.send(&semantics.Message{MessageID: "b", PartitionKey: "p", ScheduledAt: at})
	h.send(&semantics.Message{MessageID: "b", PartitionKey: "q", ScheduledAt: at})
	h.ok(h.cancel(3))
	// of its partition only
	h.same(h.sendAll(&semantics.Message{MessageID: "b", PartitionKey: "q"}), []semantics.Stored{duplicate(4)})
	h.same(h.sendAll(&semantics.Message{MessageID: "b", PartitionKey: "p", ScheduledAt: at}), []semantics.Stored{stored(5)})
	n, err := h.cancelIDs("b")
	h.ok(err)
	h.same(n, 2)
	h.same(h.sendAll(&semantics.Message{MessageID: "b", PartitionKey: "q"}), []semantics.Stored{stored(6)})
	// What was accepted with the id later on stays remembered.
	h.send(later("c", h.in(3*window)))
	h.Advance(window)
	h.same(h.sendAll(text("c")), []semantics.Stored{stored(8)})
	h.ok(h.cancel(7))
	h.same(h.sendAll(text("c")), []semantics.Stored{duplicate(8)})
}

func testDUP_7_AnswerNamesTheOriginal(t *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(text("x"), text("a"))
	results, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("a"), text("x"), text("y")})
	h.ok(err)
	h.same(results, []semantics.SendResult{
		{Stored: duplicate(2), MessageID: "a"}, {Stored: duplicate(1), MessageID: "x"}, {Stored: stored(3), MessageID: "y"},
	})
}

func testDUP_8_BatchDropsOnlyDuplicates(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(text("old"))
	at := h.in(time.Hour)
	got := h.sendAll(text("a"), text("old"), text("b"), later("a", at), later("c", at), text("c"), text("b"), text("d"))
	want := []semantics.Stored{stored(2), duplicate(1), stored(3), duplicate(2), stored(4), duplicate(4), duplicate(3), stored(5)}
	h.same(got, want)
	h.same(h.counts(), semantics.Runtime{Active: 4, Available: 4, Scheduled: 1})
	h.same(h.sendAll(text("a"), text("a")), []semantics.Stored{duplicate(2), duplicate(2)})
}

func testDUP_10_OneOfManySendersStores(t *testing.T, h *fixture) {
	h.races()
	h.create(detectsDuplicates)
	brokers := h.sidecars()
	for range 10 {
		results := make([]semantics.Stored, 8)
		id := semantics.NewRandomUUID().String()
		var work sync.WaitGroup
		for i := range results {
			work.Go(func() {
				got, err := brokers[i%len(brokers)].Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text(id)})
				if err != nil {
					t.Error(err)
					return
				}
				results[i] = got[0].Stored
			})
		}
		work.Wait()
		original, dropped := int64(0), 0
		for _, r := range results {
			if r.Deduplicated {
				dropped++
			} else {
				original = r.SequenceNumber
			}
		}
		h.same(dropped, len(results)-1)
		for _, r := range results {
			h.same(r.SequenceNumber, original)
		}
		h.same(h.receiveOne(orders).SequenceNumber, original)
		h.receiveNone(orders)
	}
}

func testDUP_10_RefusedSendLeavesNoHistory(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, sharesKeys, remembersAtMost(3), holdsAtMost(2), func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	refused := func(code semantics.Code, with ...*semantics.Message) {
		h.t.Helper()
		h.refusedSend(code, append([]*semantics.Message{text("a")}, with...)...)
	}
	refused(semantics.MessageSizeExceeded, sized(1025))
	refused(semantics.PartitionKeyMismatch, &semantics.Message{MessageID: "b", PartitionKey: "p"})
	refused(semantics.EntityFull, text("b"), text("c"))
	refused(semantics.ArgumentOutOfRange, lasting("b", 0))
	h.setStatus(semantics.StatusSendDisabled)
	refused(semantics.EntityDisabled)
	h.setStatus(semantics.StatusActive)
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(1)})
	// A refusal does not check the history, but only messages that are stored need capacity.
	h.same(h.sendAll(text("a"), text("b"), text("b")), []semantics.Stored{duplicate(1), stored(2), duplicate(2)})
	h.refusedSend(semantics.EntityFull, text("a"), text("b"), text("c"))
	h.same(h.sendAll(text("b"), text("a")), []semantics.Stored{duplicate(2), duplicate(1)}) // although it is full
	h.update(holdsAtMost(1), "maxMessageCount")
	h.same(h.sendAll(text("b"), text("a")), []semantics.Stored{duplicate(2), duplicate(1)}) // or more than full
	h.refusedSend(semantics.MessageSizeExceeded, text("a"), &semantics.Message{MessageID: "b", Body: make([]byte, 1024)})
}

func testDUP_11_HistoryIsBounded(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates, remembersAtMost(3), remembersFor(20*time.Second))
	h.send(text("a"))
	h.Advance(10 * time.Second)
	h.send(text("b"))
	err := h.refusedSend(semantics.QuotaExceeded, text("c"), text("d"))
	h.same(err.Details[semantics.DetailLimit], "3")
	h.send(text("c"))
	h.refusedSend(semantics.QuotaExceeded, text("d"))
	h.refusedSend(semantics.QuotaExceeded, later("d", h.in(time.Hour)))
	h.complete(orders, h.receive(orders, 9)...)
	h.refusedSend(semantics.QuotaExceeded, text("d")) // never silently forgotten
	h.same(h.sendAll(text("a"), text("c")), []semantics.Stored{duplicate(1), duplicate(3)})
	h.Advance(10*time.Second - ms)
	h.refusedSend(semantics.QuotaExceeded, text("d"))
	h.Advance(ms) // the window of the first is over
	h.same(h.sendAll(text("d"), text("d")), []semantics.Stored{stored(4), duplicate(4)})
	h.refusedSend(semantics.QuotaExceeded, text("a"))
	h.update(remembersAtMost(4), "duplicateHistoryMaxEntries")
	h.same(h.sendAll(text("a")), []semantics.Stored{stored(5)})
}

func testDUP_11_HistoryTakesNoRoom(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.send(text("a"), text("b"))
	h.same(h.runtime().SizeInBytes, int64(4))
	h.complete(orders, h.receive(orders, 2)...)
	h.same(h.runtime().SizeInBytes, int64(0))
}

func testBATCH_4_OnePartitionPerCall(_ *testing.T, h *fixture) {
	part := func(partition, session string) *semantics.Message {
		return &semantics.Message{MessageID: "a", PartitionKey: partition, SessionID: session}
	}
	h.create(sharesKeys, holdsAtMost(4))
	h.sendAll(part("p", ""), part("p", "p"), part("", "p"))
	for _, batch := range [][]*semantics.Message{
		{part("p", ""), part("q", "")},
		{part("", "p"), part("", "q")},
		{part("p", ""), part("", "")},
		{part("", ""), part("p", "")},
		{part("p", ""), part("P", "")},
		{part("p", ""), part("q", ""), part("p", "")}, // and not ENTITY_FULL
	} {
		h.same(h.refusedSend(semantics.PartitionKeyMismatch, batch...).Details[semantics.DetailIndex], "1")
	}
	h.setStatus(semantics.StatusSendDisabled)
	h.refusedSend(semantics.EntityDisabled, part("p", ""), part("q", "")) // status before kind (ERR-5)
	h.drop()
	h.create() // where there are no partitions, several may mix
	h.sendAll(part("p", ""), part("", "s"), part("", ""))
}
