package storetest

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// Answers with large messages, and with many.
var largeTests = []ruleTest{
	testRECV_2_WhatIsLockedIsHandedOut,
	testRECV_6_AnswersOfAllSizes,
	testRECV_6_OneMessageAlwaysFits,
	testRECV_6_PropertiesCount,
	testRECV_10_AllSizesToManyReceivers,
	testSESS_25_AnswersOfASession,
	testSESS_25_AllSizesToManyHolders,
	testDEFER_4_MoreThanOneAnswer,
	testPEEK_4_AnswersOfAllSizes,
	testDLQ_3_LongTextsCount,
	testRULE_9_LargeRulesInPages,
}

const maxMegabyte = 1 << 20 // the largest message of largeMessages

func largeMessages(o *semantics.Options) { o.MaxMessageSizeInKilobytes = maxMegabyte >> 10 }

func ofSize(n int) *semantics.Message {
	return &semantics.Message{MessageID: "i", Body: make([]byte, n)}
}

// RandomLogUniform draws a number of 1 to most, of which every order of magnitude is as likely as the others.
func RandomLogUniform(r *rand.Rand, most int) int {
	return min(most, int(math.Exp(r.Float64()*math.Log(float64(most)+1))))
}

// sendBodies sends messages of these sizes, each in a call of its own.
func (h *fixture) sendBodies(sizes ...int) {
	h.t.Helper()
	for _, n := range sizes {
		h.send(ofSize(n))
	}
}

// wantOneAnswer checks that messages may be one answer, which has none too many.
func (h *fixture) wantOneAnswer(got []*semantics.Received) {
	h.t.Helper()
	total := int64(0)
	for _, m := range got {
		total += m.AnswerSize()
	}
	// What a store counts is about that.
	if len(got) > 1 && total > semantics.MaxAnswerBytes*21/20 {
		h.t.Fatalf("%d messages of %d bytes are one answer", len(got), total)
	}
}

// wantLocked checks that so many messages are locked as were handed out and not settled.
func (h *fixture) wantLocked(want int) {
	h.t.Helper()
	if got := h.counts().Locked; got != int64(want) {
		h.t.Fatalf("%d messages are locked, %d handed out and not settled", got, want)
	}
}

func testRECV_2_WhatIsLockedIsHandedOut(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1))
	for range 16 {
		h.sendBodies(250_000)
	}
	got := h.receive(orders, 1000)
	h.wantOneAnswer(got)
	h.wantLocked(len(got))
	h.same(len(got) > 6, true)
	h.complete(orders, got...)
	for done := len(got); done < 16; {
		more := h.receive(orders, 1000)
		h.wantLocked(len(more))
		h.same(more[0].SequenceNumber, int64(done+1))
		h.complete(orders, more...)
		done += len(more)
	}
	h.Advance(2 * lock)
	h.receiveNone(orders)
	h.wantCounts(0, 0, 0)
}

func testRECV_6_AnswersOfAllSizes(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1))
	for i := range 1000 {
		h.sendBodies((1 + i*37%101) << 10)
	}
	next := int64(1)
	for next <= 1000 {
		got := h.receive(orders, 250)
		h.wantOneAnswer(got)
		h.wantLocked(len(got))
		for _, m := range got {
			h.same(m.SequenceNumber, next)
			next++
		}
		h.complete(orders, got...)
	}
	h.Advance(2 * lock)
	h.wantCounts(0, 0, 0)
}

func testRECV_6_OneMessageAlwaysFits(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 8 << 10 })
	h.sendBodies(10, 5<<20, 10, 5<<20, 6<<20, 10)
	for _, want := range [][]int64{{1}, {2}, {3}, {4}, {5}, {6}} {
		got := h.receive(orders, 1000)
		h.wantNumbers(got, want...)
		h.wantLocked(1)
		h.complete(orders, got...)
	}
	h.sendBodies(10, 10, 10) // the large ones are gone
	h.wantNumbers(h.receive(orders, 1000), 7, 8, 9)
}

func testRECV_6_PropertiesCount(_ *testing.T, h *fixture) {
	h.create()
	properties := map[string]semantics.Value{}
	for i := range 15_000 { // each counts 4 bytes, and takes three times as many in an answer
		properties[string([]rune{'a' + rune(i%26), 'a' + rune(i/26%26), 'a' + rune(i/676%26)})] = semantics.Bool(true)
	}
	for range 30 {
		h.send(&semantics.Message{MessageID: "i", Properties: properties})
	}
	got := h.receive(orders, 1000)
	h.wantOneAnswer(got)
	h.wantLocked(len(got))

	h.settled(h.broker.Abandon(h.t.Context(), orders, tokens(got), semantics.AbandonOptions{Properties: map[string]semantics.Value{
		"more": semantics.String(strings.Repeat("x", 4000)),
	}}))
	h.wantOneAnswer(h.receive(orders, 1000))
}

func tokens(messages []*semantics.Received) []semantics.LockToken {
	var all []semantics.LockToken
	for _, m := range messages {
		all = append(all, m.LockToken)
	}
	return all
}

// inHand are deliveries that were not settled yet.
type inHand struct {
	mu         sync.Mutex
	deliveries []*delivery.Delivery
}

func (in *inHand) of(side semantics.SubQueue) int {
	n := 0
	for _, d := range in.deliveries {
		if d.Source().SubQueue == side {
			n += len(d.Messages)
		}
	}
	return n
}

// wantDeadLocked is wantLocked for the dead-letter queue, page by page because nothing counts those.
func (h *fixture) wantDeadLocked(want int) {
	h.t.Helper()
	locked := 0
	for rows := h.peek(deadOrders); len(rows) > 0; rows = h.peekFrom(deadOrders, rows[len(rows)-1].SequenceNumber+1, broker.MaxPeekMessages) {
		for _, row := range rows {
			if row.Locked {
				locked++
			}
		}
	}
	if locked != want {
		h.t.Fatalf("%d dead letters are locked, %d handed out and not settled", locked, want)
	}
}

// takeTogether lets each source be received from at the same time, with a limit of its own, by other modes and brokers.
// What was received in the mode that deletes is confirmed.
func (h *fixture) takeTogether(r *rand.Rand, brokers []*broker.Broker, sources ...semantics.Source) *inHand {
	h.t.Helper()
	in := &inHand{}
	var work sync.WaitGroup
	for i, source := range sources {
		options := broker.ReceiveOptions{MaxMessages: RandomLogUniform(r, 1000), Mode: semantics.Mode(r.IntN(4) / 3)}
		work.Go(func() {
			delivery, err := brokers[i%len(brokers)].Receive(h.t.Context(), source, options)
			if err == nil && options.Mode == semantics.ReceiveAndDelete {
				err = delivery.Delivered(h.t.Context())
			}
			if err != nil {
				h.t.Error(err)
				return
			}
			h.wantOneAnswer(delivery.Messages)
			if options.Mode == semantics.PeekLock {
				in.mu.Lock()
				defer in.mu.Unlock()
				in.deliveries = append(in.deliveries, delivery)
			}
		})
	}
	work.Wait()
	if h.t.Failed() {
		h.t.FailNow()
	}
	return in
}

// settleAll ends all locks in some way.
func (h *fixture) settleAll(r *rand.Rand, in *inHand) {
	h.t.Helper()
	for _, d := range in.deliveries {
		if len(d.Messages) == 0 {
			continue
		}
		source, all := d.Source(), tokens(d.Messages)
		switch r.IntN(5) {
		case 0:
			h.ok(d.Undelivered(h.t.Context()))
		case 1:
			h.settled(h.broker.Abandon(h.t.Context(), source, all, semantics.AbandonOptions{}))
		case 2:
			if source.SubQueue == semantics.MainQueue {
				h.settled(h.broker.DeadLetter(h.t.Context(), source, all, broker.DeadLetterOptions{}))
				break
			}
			fallthrough
		default:
			h.settled(h.broker.Complete(h.t.Context(), source, all))
		}
	}
}

func testRECV_10_AllSizesToManyReceivers(t *testing.T, h *fixture) {
	h.create(largeMessages, deliversAtMost(1000))
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	brokers := h.sidecars()
	for range 8 {
		for range 40 {
			h.sendBodies(RandomLogUniform(r, maxMegabyte-1))
		}
		sources := make([]semantics.Source, 12)
		for i := range sources {
			sources[i] = orders
			if i%4 == 3 {
				sources[i] = deadOrders
			}
		}
		in := h.takeTogether(r, brokers, sources...)
		h.wantLocked(in.of(semantics.MainQueue))
		h.wantDeadLocked(in.of(semantics.DeadLetterQueue))
		h.settleAll(r, in)
		h.wantLocked(0)
		h.wantDeadLocked(0)
	}
	for _, source := range []semantics.Source{orders, deadOrders} {
		for got := h.receive(source, 1000); len(got) > 0; got = h.receive(source, 1000) {
			h.wantOneAnswer(got)
			if source == orders {
				h.wantLocked(len(got))
				h.same(slices.IsSortedFunc(got, func(a, b *semantics.Received) int { return cmp.Compare(a.SequenceNumber, b.SequenceNumber) }), true)
			}
			h.complete(source, got...)
		}
	}
	h.wantCounts(0, 0, 0)
}

func testSESS_25_AnswersOfASession(t *testing.T, h *fixture) {
	h.createSessions(func(o *semantics.Options) { o.SessionInFlight = 1000 })
	for range 100 {
		h.send(&semantics.Message{SessionID: "a", Body: make([]byte, 100_000)})
	}
	held := h.accept("a")
	next := int64(1)
	for next <= 100 {
		mode := semantics.Mode(next % 2)
		delivery, err := h.broker.Receive(t.Context(), held, broker.ReceiveOptions{MaxMessages: 1000, Mode: mode})
		h.ok(err)
		h.wantOneAnswer(delivery.Messages)
		h.wantLocked(len(delivery.Messages))
		h.same(len(delivery.Messages) > 0, true)
		for _, m := range delivery.Messages {
			h.same(m.SequenceNumber, next)
			next++
		}
		if mode == semantics.ReceiveAndDelete {
			h.ok(delivery.Delivered(t.Context()))
		} else {
			h.complete(held, delivery.Messages...)
		}
	}
	h.wantLocked(0)
	h.same(h.counts().Active, int64(0))
}

func testSESS_25_AllSizesToManyHolders(t *testing.T, h *fixture) {
	h.createSessions(largeMessages, func(o *semantics.Options) { o.SessionInFlight = 1000; o.MaxDeliveryCount = 1000 })
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	ids := []string{"a", "b", "c", "d", "e", "f"}
	var held []semantics.Source
	for _, id := range ids {
		held = append(held, h.accept(id))
	}
	for range 6 {
		for range 30 {
			m := ofSize(RandomLogUniform(r, maxMegabyte-8))
			m.SessionID = ids[RandomLogUniform(r, len(ids))-1]
			h.send(m)
		}
		in := h.takeTogether(r, []*broker.Broker{h.broker}, slices.Concat(held, held[:2])...)
		h.wantLocked(in.of(semantics.MainQueue))
		h.settleAll(r, in)
		h.wantLocked(0)
	}
}

func testDEFER_4_MoreThanOneAnswer(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 4 << 10 })
	h.sendBodies(3<<20, 250_000, 250_000, 250_000, 250_000, 250_000, 250_000, 250_000, 250_000, 250_000, 250_000)
	var all []int64
	for range 11 {
		m := h.receiveOne(orders)
		h.setAside(orders, m)
		all = append(all, m.SequenceNumber)
	}
	for _, numbers := range [][]int64{all, all[1:]} {
		err := h.wantCode(h.receiveDeferred(orders, numbers...), semantics.ArgumentOutOfRange)
		h.wantLocked(0)
		fitting := strings.Split(err.Details[semantics.DetailNumbers], ",")
		h.same(err.Details[semantics.DetailField], "sequenceNumbers")
		got := h.takeDeferred(orders, numbers[:len(fitting)]...)
		h.same(len(got), len(fitting))
		h.wantLocked(len(got))
		h.release(orders, got...)
	}
	h.sendBodies(1<<20, 1<<20, 1<<20)
	h.wantCode(h.receiveNumbers(orders, 12, 13, 14), semantics.ArgumentOutOfRange)
	h.wantLocked(0)
	h.wantNumbers(h.takeNumbers(orders, 14), 14)
}

func testPEEK_4_AnswersOfAllSizes(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 8 << 10 })
	sizes := []int{5 << 20, 10, 10, 1_900_000, 5 << 20, 10}
	for range 60 {
		sizes = append(sizes, 100_000)
	}
	h.sendBodies(sizes...)
	for from := int64(1); from <= int64(len(sizes)); {
		got := h.peekFrom(orders, from, 250)
		h.wantOneAnswer(got)
		h.same(len(got) > 0 && got[0].SequenceNumber == from, true)
		from = got[len(got)-1].SequenceNumber + 1
	}
}

func testDLQ_3_LongTextsCount(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(250)
	long := strings.Repeat("ä", 4096)
	h.settled(h.broker.DeadLetter(t.Context(), orders, tokens(h.receive(orders, 1000)),
		broker.DeadLetterOptions{Reason: &long, Description: &long}))
	h.wantOneAnswer(h.peek(deadOrders))
	for left := 250; left > 0; {
		got := h.receive(deadOrders, 1000)
		h.wantOneAnswer(got)
		h.wantDeadLocked(len(got))
		h.complete(deadOrders, got...)
		left -= len(got)
	}
}
