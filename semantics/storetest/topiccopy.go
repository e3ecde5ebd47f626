package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var topicCopyTests = []ruleTest{
	testTOPIC_1_EachSubscriptionHasItsCopy,
	testTOPIC_1_CopiesAreIndependent,
	testTOPIC_1_NumbersOfEachSubscription,
	testTOPIC_1_CopyIsWhatWasSent,
	testMSG_6_EnqueuedSequenceNumberIsTheTopics,
	testMSG_6_EveryMessageHasANumber,
	testMSG_8_CopiesHaveTheTimeOfTheSend,
	testMSG_22_RefusedPublishLeavesNoTrace,
	testTOPIC_2_AnswerMeansStoredEverywhere,
	testTOPIC_2_AllSubscriptionsOrNone,
	testTOPIC_9_OptionsOfEachSubscription,
	testSEND_3_OrderInEverySubscription,
	testSEND_3_RefusedCallsTakeNoOthersAlong,
	testBATCH_1_AllOrNothingToATopic,
	testBATCH_2_CountLimitsOfATopic,
	testBATCH_3_BatchesDoNotMixInASubscription,
	testBATCH_4_OnePartitionPerCallToATopic,
	testTTL_6_ShortestOfThreeWins,
	testTTL_6_NeverIsNoBound,
	testTTL_6_EachSubscriptionByItself,
	testTTL_22_DefaultsOfTheTimeOfTheSend,
}

func testTOPIC_1_EachSubscriptionHasItsCopy(_ *testing.T, h *fixture) {
	h.createNews()
	h.publish(text("a"), text("b"))
	for _, source := range []semantics.Source{eu, us} {
		h.wantIDs(source, "a", "b")
		h.wantNumbers(h.receive(source, 9), 1, 2)
		r := h.runtimeOf(source)
		h.same([]int64{r.Active, r.Locked, r.SizeInBytes}, []int64{2, 2, 4})
	}
}

func testTOPIC_1_CopiesAreIndependent(_ *testing.T, h *fixture) {
	h.createNews()
	h.createSubscription(subscription("asia"), deliversAtMost(1))
	h.publishTexts("a", "b", "c", "d")
	got := h.receive(eu, 4)
	h.complete(eu, got[0])
	h.abandon(eu, got[1])
	h.deadLetterFrom(eu, got[2])
	h.setAside(eu, got[3])
	h.abandon(subscription("asia"), h.receiveOne(subscription("asia")))

	h.wantNumbers(h.peek(us), 1, 2, 3, 4)
	h.wantCounted(us, 0, 0, 0, 0)
	h.wantNumbers(h.peek(deadUS))
	h.wantCounted(eu, 1, 0)
	h.wantNumbers(h.receive(us, 9), 1, 2, 3, 4)
	h.wantNumbers(h.receive(eu, 9), 2)
	h.wantIDs(deadEU, "c")
	h.wantIDs(deadOf(subscription("asia")), "a")
	// A token of one means nothing to another.
	codes, err := h.broker.Complete(h.t.Context(), eu, tokensOf(h.receiveOne(subscription("asia"))))
	h.wantCodes(codes, err, semantics.MessageLockLost)
}

func testTOPIC_1_NumbersOfEachSubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscriptionWith(eu, []semantics.Rule{onSubject("s", "sport")})
	h.createSubscriptionWith(us, []semantics.Rule{onSubject("w", "weather")})
	for i, subject := range []string{"sport", "weather", "weather", "sport", "neither", "sport"} {
		h.publish(about(subject, text(fmt.Sprint(i))))
	}
	h.wantNumbers(h.peek(eu), 1, 2, 3) // from 1 on, without gaps
	h.wantIDs(eu, "0", "3", "5")
	h.wantNumbers(h.peek(us), 1, 2)
	h.wantIDs(us, "1", "2")
}

func testTOPIC_1_CopyIsWhatWasSent(_ *testing.T, h *fixture) {
	h.createNews()
	sent := &semantics.Message{
		MessageID: "id", SessionID: "s", PartitionKey: "s", CorrelationID: "c", Subject: "x", To: "to", ReplyTo: "r", ReplyToSessionID: "rs",
		ContentType: "text/plain", TimeToLive: ptr(time.Hour), Properties: properties{"p": semantics.Int64(1), "q": semantics.Null()},
		Body: []byte("{}"), BodyKind: semantics.BodyJSON, AMQP: []byte{2, 0, 0xff},
	}
	h.publish(sent)
	want := semantics.Received{
		Message: *sent, SequenceNumber: 1, EnqueuedSequenceNumber: 1, EnqueuedAt: h.Now(), ExpiresAt: h.in(time.Hour), Size: sent.Size(),
	}
	h.same(h.peek(eu), []*semantics.Received{&want})
	h.same(h.peek(us), []*semantics.Received{&want})
	want.DeliveryCount = 1
	got := h.receiveOne(eu)
	want.LockToken, want.LockedUntil = got.LockToken, h.in(lock)
	h.same(got, &want)
}

func testMSG_6_EnqueuedSequenceNumberIsTheTopics(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	h.publishTexts("a", "b")
	h.createSubscriptionWith(us, []semantics.Rule{onSubject("s", "sport")})
	h.same(h.publish(text("c"), about("sport", text("d"))), []semantics.Stored{stored(3), stored(4)})
	number := func(m *semantics.Received) []int64 { return []int64{m.SequenceNumber, m.EnqueuedSequenceNumber} }
	h.same(number(h.receiveOne(us)), []int64{1, 4})
	for i, m := range h.receive(eu, 9) {
		h.same(number(m), []int64{int64(i + 1), int64(i + 1)})
	}
	// It sticks to the copy, also among the dead letters.
	h.Advance(lock)
	h.deadLetterFrom(us, h.receiveOne(us))
	h.same(number(h.peek(deadUS)[0]), []int64{1, 4})
}

func testMSG_6_EveryMessageHasANumber(_ *testing.T, h *fixture) {
	h.createTopic() // without subscriptions
	h.same(h.publish(text("a"), text("b")), []semantics.Stored{stored(1), stored(2)})
	h.same(h.publish(text("c")), []semantics.Stored{stored(3)})
	h.createSubscription(eu)
	h.same(h.publish(text("d")), []semantics.Stored{stored(4)})
	h.same(h.peek(eu)[0].EnqueuedSequenceNumber, int64(4))
}

func testMSG_8_CopiesHaveTheTimeOfTheSend(_ *testing.T, h *fixture) {
	h.createNews()
	h.publishTexts("a")
	first := h.Now()
	h.Advance(5 * ms)
	h.publishTexts("b")
	for _, source := range []semantics.Source{eu, us} {
		rows := h.peek(source)
		h.same([]time.Time{rows[0].EnqueuedAt, rows[1].EnqueuedAt}, []time.Time{first, h.Now()})
		h.same(h.runtimeOf(source).OldestEnqueuedAt, first)
	}
}

func testMSG_22_RefusedPublishLeavesNoTrace(_ *testing.T, h *fixture) {
	h.createTopic(detectsDuplicates, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscription(eu)
	h.publish(sized(1024))
	h.refusedPublish(semantics.MessageSizeExceeded, &semantics.Message{MessageID: "big", Body: make([]byte, 1022)})
	h.same(h.publish(text("big")), []semantics.Stored{stored(2)}) // no number was used up and no id remembered
	h.wantNumbers(h.peek(eu), 1, 2)
}

func testTOPIC_2_AnswerMeansStoredEverywhere(_ *testing.T, h *fixture) {
	h.createTopic()
	const many = 20
	for i := range many {
		h.createSubscription(subscription(fmt.Sprint("s", i)))
	}
	for i := range 5 {
		id := fmt.Sprint(i)
		h.publish(text(id))
		for s := range many {
			rows := h.peek(subscription(fmt.Sprint("s", s)))
			if len(rows) != i+1 || rows[i].MessageID != id {
				h.t.Fatalf("subscription %d has %d messages, want %d", s, len(rows), i+1)
			}
		}
	}
}

func testTOPIC_2_AllSubscriptionsOrNone(_ *testing.T, h *fixture) {
	h.createNews()
	h.createSubscription(subscription("full"), holdsAtMost(1))
	h.publishTexts("a")
	h.refusedPublish(semantics.EntityFull, text("b")) // the others would have capacity
	h.refusedPublish(semantics.EntityFull, text("b"), text("c"))
	h.complete(subscription("full"), h.receiveOne(subscription("full")))
	h.same(h.publish(text("b")), []semantics.Stored{stored(2)})
	for _, source := range []semantics.Source{eu, us} {
		h.wantIDs(source, "a", "b")
	}
}

func testTOPIC_9_OptionsOfEachSubscription(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu, deliversAtMost(1), locksFor(10*time.Second), delaysFor(time.Hour))
	h.createSubscription(us, hasSessions, buriesExpired, livesFor(1000*ms))
	h.publish(of("s", text("a")))
	h.same(h.receiveOne(eu).LockedUntil, h.in(10*time.Second))
	h.wantCode(second(h.broker.Receive(h.t.Context(), us, broker.ReceiveOptions{MaxMessages: 1})), semantics.SessionRequired)
	h.Advance(10 * time.Second)
	h.wantIDs(deadEU, "a")
	h.same(h.peek(deadEU)[0].DeadLetterReason, "MaxDeliveryCountExceeded")
	h.same(h.runtimeOf(us).DeadLetter, int64(1))
	h.same(h.peek(deadUS)[0].DeadLetterReason, "TTLExpiredException")
}

// Many senders through every sidecar: each of their messages is once in every subscription, in the order of its sender,
// and the order of a subscription is that of the topic's numbers.
func testSEND_3_OrderInEverySubscription(t *testing.T, h *fixture) {
	h.races()
	h.createNews()
	const senders, each = 6, 15
	brokers := h.sidecars()
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			for i := range each {
				m := text(fmt.Sprintf("%d/%03d", s, i))
				if _, err := brokers[s%len(brokers)].Send(t.Context(), semantics.ToTopic(news), []*semantics.Message{m}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	for _, source := range []semantics.Source{eu, us} {
		last := map[string]string{}
		got := h.receive(source, 2*senders*each)
		h.same(len(got), senders*each)
		for i, m := range got {
			h.same([]int64{m.SequenceNumber, m.EnqueuedSequenceNumber}, []int64{int64(i + 1), int64(i + 1)})
			sender, _, _ := strings.Cut(m.MessageID, "/")
			if m.MessageID <= last[sender] {
				t.Errorf("%s: %s came after %s", source, m.MessageID, last[sender])
			}
			last[sender] = m.MessageID
		}
	}
}

func testSEND_3_RefusedCallsTakeNoOthersAlong(t *testing.T, h *fixture) {
	h.createTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscription(eu, holdsAtMost(3))
	h.createSubscription(us)
	calls := [][]*semantics.Message{
		{text("a")}, {sized(1025)}, {text("b")}, {text("x"), text("y")}, {}, {text("c")}, {text("z")},
	}
	results, errs := h.broker.SendEach(t.Context(), semantics.ToTopic(news), calls)
	want := []semantics.Code{"", semantics.MessageSizeExceeded, "", semantics.EntityFull, semantics.InvalidArgument, "", semantics.EntityFull}
	for i, err := range errs {
		h.wantCode(err, want[i])
	}
	h.same([]int64{results[0][0].SequenceNumber, results[2][0].SequenceNumber, results[5][0].SequenceNumber}, []int64{1, 2, 3})
	h.wantIDs(eu, "a", "b", "c")
	h.wantIDs(us, "a", "b", "c")
}

func testBATCH_1_AllOrNothingToATopic(_ *testing.T, h *fixture) {
	h.createTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 1 })
	h.createSubscription(eu, holdsAtMost(3))
	h.createSubscriptionWith(us, []semantics.Rule{onSubject("s", "sport")})
	h.publishTexts("first")
	for code, bad := range map[semantics.Code]*semantics.Message{
		semantics.MessageSizeExceeded:  sized(1025),
		semantics.ArgumentOutOfRange:   lasting("short", 0),
		semantics.PartitionKeyMismatch: {SessionID: "a", PartitionKey: "b"},
	} {
		err := h.refusedPublish(code, about("sport", text("good")), text("good"), bad)
		h.same(err.Details[semantics.DetailIndex], "2")
	}
	h.refusedPublish(semantics.EntityFull, about("sport", text("2")), text("3"), text("4")) // two would fit
	h.same(h.publish(about("sport", text("2")), text("3")), []semantics.Stored{stored(2), stored(3)})
	h.wantIDs(eu, "first", "2", "3")
	h.wantIDs(us, "2")
}

func testBATCH_2_CountLimitsOfATopic(_ *testing.T, h *fixture) {
	h.createNews()
	h.refusedPublish(semantics.InvalidArgument)
	many := make([]*semantics.Message, semantics.MaxBatchMessages+1)
	for i := range many {
		many[i] = &semantics.Message{MessageID: "i"}
	}
	h.refusedPublish(semantics.ArgumentOutOfRange, many...)
	h.deleteSubscription(us) // two copies of each would be too many: see testTOPIC_2_SoManyCopiesAtOnce
	h.publish(many[:semantics.MaxBatchMessages]...)
	h.same(h.runtimeOf(eu).Available, int64(semantics.MaxBatchMessages))
	h.wantNumbers(h.peekFrom(eu, semantics.MaxBatchMessages, 9), semantics.MaxBatchMessages)
}

func testBATCH_3_BatchesDoNotMixInASubscription(t *testing.T, h *fixture) {
	h.races()
	h.createNews()
	const senders, each = 6, 25
	brokers := h.sidecars()
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			batch := make([]*semantics.Message, each)
			for i := range batch {
				batch[i] = text(fmt.Sprint(s))
			}
			if _, err := brokers[s%len(brokers)].Send(t.Context(), semantics.ToTopic(news), batch); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	for _, source := range []semantics.Source{eu, us} {
		got := h.receive(source, senders*each)
		for i, m := range got {
			if first := got[i-i%each]; m.MessageID != first.MessageID {
				t.Fatalf("%s: message %d of sender %s lies within the batch of sender %s", source, m.SequenceNumber, m.MessageID, first.MessageID)
			}
		}
	}
}

func testBATCH_4_OnePartitionPerCallToATopic(_ *testing.T, h *fixture) {
	h.createNews(sharesKeys)
	h.refusedPublish(semantics.PartitionKeyMismatch, of("a", text("1")), of("b", text("2")))
	h.refusedPublish(semantics.PartitionKeyMismatch, of("a", text("1")), text("2"))
	h.publish(of("a", text("1")), of("a", text("2")))
	h.wantIDs(eu, "1", "2")
	h.deleteTopic()
	h.createNews()
	h.publish(of("a", text("1")), of("b", text("2")), text("3"))
	h.wantIDs(us, "1", "2", "3")
}

func testTTL_6_ShortestOfThreeWins(_ *testing.T, h *fixture) {
	const short, middle, long = 1000 * ms, 2000 * ms, 3000 * ms
	for _, c := range []struct{ message, topic, subscription time.Duration }{
		{short, middle, long},
		{short, long, middle},
		{middle, short, long},
		{middle, long, short},
		{long, short, middle},
		{long, middle, short},
	} {
		h.createTopic(livesFor(c.topic))
		h.createSubscription(eu, livesFor(c.subscription), buriesExpired)
		h.publish(lasting("a", c.message))
		row := h.peek(eu)[0]
		h.same([]any{row.ExpiresAt, *row.TimeToLive}, []any{h.in(short), short})
		h.Advance(short - ms)
		h.release(eu, h.receiveOne(eu))
		h.Advance(ms)
		h.receiveNone(eu)
		h.wantIDs(deadEU, "a")
		h.deleteTopic()
	}
}

func testTTL_6_NeverIsNoBound(_ *testing.T, h *fixture) {
	for _, c := range []struct{ message, topic, subscription, want time.Duration }{
		{0, semantics.Never, semantics.Never, 0},
		{0, 2000 * ms, semantics.Never, 2000 * ms},
		{0, semantics.Never, 2000 * ms, 2000 * ms},
		{0, 3000 * ms, 2000 * ms, 2000 * ms},
		{0, 2000 * ms, 3000 * ms, 2000 * ms}, // the topic's applies if it is smaller
		{2000 * ms, semantics.Never, semantics.Never, 2000 * ms},
		{3000 * ms, 2000 * ms, semantics.Never, 2000 * ms},
		{3000 * ms, semantics.Never, 2000 * ms, 2000 * ms},
	} {
		h.createTopic(livesFor(c.topic))
		h.createSubscription(eu, livesFor(c.subscription))
		m := text("a")
		if c.message > 0 {
			m = lasting("a", c.message)
		}
		h.publish(m)
		row := h.peek(eu)[0]
		if c.want == 0 {
			h.same([]any{row.ExpiresAt, row.TimeToLive == nil}, []any{time.Time{}, true})
		} else {
			h.same([]any{row.ExpiresAt, *row.TimeToLive}, []any{h.in(c.want), c.want})
		}
		h.deleteTopic()
	}
}

func testTTL_6_EachSubscriptionByItself(_ *testing.T, h *fixture) {
	h.createTopic(livesFor(5000 * ms))
	h.createSubscription(eu, livesFor(1000*ms))
	h.createSubscription(us)
	h.publish(lasting("a", 9000*ms), lasting("b", 3000*ms))
	var left [][]time.Duration
	for _, source := range []semantics.Source{eu, us} {
		rows := h.peek(source)
		left = append(left, []time.Duration{rows[0].ExpiresAt.Sub(h.Now()), rows[1].ExpiresAt.Sub(h.Now())})
	}
	h.same(left, [][]time.Duration{{1000 * ms, 1000 * ms}, {5000 * ms, 3000 * ms}})
	h.Advance(1000 * ms)
	h.receiveNone(eu)
	h.wantNumbers(h.receive(us, 9), 1, 2)
}

func testTTL_22_DefaultsOfTheTimeOfTheSend(_ *testing.T, h *fixture) {
	h.createNews(livesFor(5000 * ms))
	h.publishTexts("a")
	h.updateTopic(livesFor(2000*ms), "defaultMessageTimeToLive")
	h.updateSubscription(eu, livesFor(1000*ms), "defaultMessageTimeToLive")
	h.publishTexts("b")
	var left []time.Duration
	for _, row := range append(h.peek(eu), h.peek(us)...) {
		left = append(left, row.ExpiresAt.Sub(h.Now()))
	}
	h.same(left, []time.Duration{5000 * ms, 1000 * ms, 5000 * ms, 2000 * ms})
}
