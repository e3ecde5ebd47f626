package storetest

import (
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var topicDuplicateTests = []ruleTest{
	testDUP_1_OfATopic,
	testDUP_2_KeyInATopic,
	testDUP_4_WindowOfATopic,
	testDUP_8_BatchToATopic,
	testDUP_9_OnlyAtTheEntrance,
	testDUP_9_NotAfterAnAction,
	testDUP_10_OneOfManySendersToATopic,
	testDUP_10_RefusedPublishLeavesNoHistory,
	testDUP_11_HistoryOfATopicIsBounded,
}

func testDUP_1_OfATopic(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.same(h.publish(text("a")), []semantics.Stored{stored(1)})
	again := about("other properties are not compared", text("a"))
	h.same(h.publish(again), []semantics.Stored{duplicate(1)})
	h.same(h.publish(text("b")), []semantics.Stored{stored(2)}) // a duplicate takes no number
	h.wantIDs(eu, "a", "b")
	h.wantIDs(us, "a", "b")
	h.complete(eu, h.receive(eu, 9)...)
	h.deleteSubscription(us)
	h.createSubscription(us)
	h.same(h.publish(text("a")), []semantics.Stored{duplicate(1)}) // the history is the topic's (DUP-5)
	h.wantIDs(us)
	h.deleteTopic()
	h.createNews()
	h.same(h.publish(text("a"), text("a")), []semantics.Stored{stored(1), stored(2)}) // off by default
}

func testDUP_2_KeyInATopic(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates, sharesKeys)
	h.same(h.publish(text("a")), []semantics.Stored{stored(1)})
	h.same(h.publish(of("p", text("a"))), []semantics.Stored{stored(2)})
	h.same(h.publish(&semantics.Message{MessageID: "a", PartitionKey: "p"}), []semantics.Stored{duplicate(2)})
	h.same(h.publish(&semantics.Message{MessageID: "A", PartitionKey: "p"}), []semantics.Stored{stored(3)})
	h.wantIDs(us, "a", "a", "A")
}

func testDUP_4_WindowOfATopic(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates, remembersFor(30*time.Second))
	h.publishTexts("a")
	h.Advance(30*time.Second - ms)
	h.same(h.publish(text("a")), []semantics.Stored{duplicate(1)})
	h.Advance(ms) // which the duplicate has not put off
	h.same(h.publish(text("a")), []semantics.Stored{stored(2)})
	h.updateTopic(remembersFor(20*time.Second), "duplicateDetectionHistoryTimeWindow")
	h.Advance(20 * time.Second)
	h.same(h.publish(text("a")), []semantics.Stored{stored(3)})
}

func testDUP_8_BatchToATopic(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.publishTexts("a")
	got := h.publish(text("b"), text("a"), text("c"), text("b"), text("d"))
	h.same(got, []semantics.Stored{stored(2), duplicate(1), stored(3), duplicate(2), stored(4)})
	h.wantIDs(eu, "a", "b", "c", "d")
	h.wantIDs(us, "a", "b", "c", "d")
}

func testDUP_9_OnlyAtTheEntrance(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates)
	h.publishTexts("a")
	h.deadLetterFrom(eu, h.receiveOne(eu))
	results, _, err := h.broker.Resubmit(h.t.Context(), deadEU, broker.ResubmitOptions{})
	h.ok(err)
	h.same(results, moved([2]int64{1, 2})) // inside the window, and without bypassing anything
	h.wantIDs(eu, "a")
	h.createTopicNamed("plain") // nor does a subscription have a history of its own
	plain := semantics.Source{Path: "plain/Subscriptions/eu"}
	h.createSubscription(plain)
	for range 2 {
		h.ok(second(h.broker.Send(h.t.Context(), semantics.ToTopic("plain"), []*semantics.Message{text("a")})))
	}
	h.wantIDs(plain, "a", "a")
}

func testDUP_9_NotAfterAnAction(_ *testing.T, h *fixture) {
	h.createTopic(detectsDuplicates)
	h.createSubscriptionWith(eu, []semantics.Rule{doing(always("do"), "SET sys.MessageId = 'same'")})
	h.publish(text("a"), text("b"))
	h.publish(text("same"))
	h.wantIDs(eu, "same", "same", "same")
	h.same(h.publish(text("a")), []semantics.Stored{duplicate(1)}) // what counts is the id that was sent
}

func testDUP_10_OneOfManySendersToATopic(t *testing.T, h *fixture) {
	h.races()
	h.createNews(detectsDuplicates)
	brokers := h.sidecars()
	const senders = 12
	var mu sync.Mutex
	var originals int
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			results, err := brokers[s%len(brokers)].Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{text("a")})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if !results[0].Deduplicated {
				originals++
			}
			if results[0].SequenceNumber != 1 {
				t.Errorf("got number %d, want that of the original", results[0].SequenceNumber)
			}
		})
	}
	work.Wait()
	h.same(originals, 1)
	h.wantIDs(eu, "a")
	h.wantIDs(us, "a")
}

func testDUP_10_RefusedPublishLeavesNoHistory(_ *testing.T, h *fixture) {
	h.createTopic(detectsDuplicates, failsUnmatched)
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")}, holdsAtMost(1))
	h.refusedPublish(semantics.NoMatchingSubscription, text("a"))
	h.publish(about("sport", text("b")))
	h.refusedPublish(semantics.EntityFull, about("sport", text("c")))
	h.updateTopic(hasStatus(semantics.StatusSendDisabled), "status")
	h.wantCode(second(h.broker.Send(h.t.Context(), semantics.ToTopic(news), []*semantics.Message{about("sport", text("d"))})), semantics.EntityDisabled)
	h.updateTopic(hasStatus(semantics.StatusActive), "status")
	h.updateSubscription(eu, holdsAtMost(0), "maxMessageCount")
	h.same(h.publish(about("sport", text("a")), about("sport", text("c")), about("sport", text("d"))), []semantics.Stored{stored(2), stored(3), stored(4)})
}

func testDUP_11_HistoryOfATopicIsBounded(_ *testing.T, h *fixture) {
	h.createNews(detectsDuplicates, remembersAtMost(3))
	h.publish(text("a"), text("b"))
	h.refusedPublish(semantics.QuotaExceeded, text("c"), text("d"))
	h.publish(text("c"), text("a"), text("c"))
	err := h.refusedPublish(semantics.QuotaExceeded, text("d"))
	h.same([]string{err.Details[semantics.DetailEntity], err.Details[semantics.DetailLimit]}, []string{news, "3"})
	h.same(h.publish(text("b")), []semantics.Stored{duplicate(2)})
	h.Advance(window)
	h.publish(text("d"))
	h.wantIDs(eu, "a", "b", "c", "d")
}
