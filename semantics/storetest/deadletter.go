package storetest

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var deadLetterTests = []ruleTest{
	testDLQ_1_AlwaysThere,
	testDLQ_3_TakesAllReceiveVerbs,
	testDLQ_3_NoSendToIt,
	testDLQ_4_NothingLeavesByItself,
	testDLQ_5_CountsAgainstTheSize,
	testDLQ_6_TextWithTheMax,
	testDLQ_7_TextOfExpiry,
	testDLQ_12_TextsAsGiven,
	testDLQ_15_TextsAreFieldsAndProperties,
	testDLQ_16_KeepsWhatTheMessageHad,
	testDLQ_16_OrderOfArrival,
	testDLQ_16_OrderWithinOneCall,
	testDLQ_17_CountsStayInStepWithMoves,
	testDLQ_18_PoisonDoesNotGoRoundForEver,
	testDLQ_21_ReadWhileSendsAreDisabled,
	testDLQ_21_ReceiveStatusForbidsReading,
}

func testDLQ_1_AlwaysThere(t *testing.T, h *fixture) {
	h.create()
	h.receiveNone(deadOrders)
	h.wantNumbers(h.peek(deadOrders))
	queues, _, err := h.broker.ListEntities(t.Context(), semantics.QueueKind, "", 0, "")
	h.ok(err)
	h.same(len(queues), 1) // the sub-queue is not listed as a queue
	err = h.broker.DeleteEntity(t.Context(), semantics.QueueKind, deadOrders.String())
	h.wantCode(err, semantics.InvalidArgument)
}

func testDLQ_3_TakesAllReceiveVerbs(t *testing.T, h *fixture) {
	h.create()
	h.sendTexts(4)
	h.deadLetter(h.receive(orders, 4)...)
	h.wantNumbers(h.peek(deadOrders), 1, 2, 3, 4)
	got := h.receive(deadOrders, 3)
	h.wantNumbers(got, 1, 2, 3)
	h.Advance(lock / 2)
	h.same(h.renew(deadOrders, got[0]).LockedUntil, h.Now().Add(lock))
	h.complete(deadOrders, got[0])
	h.abandon(deadOrders, got[1])
	h.release(deadOrders, got[2])
	taken := h.receiveAs(deadOrders, 1, semantics.ReceiveAndDelete)
	h.wantNumbers(taken.Messages, 2)
	h.ok(taken.Delivered(t.Context()))
	h.wantNumbers(h.receive(deadOrders, 9), 3, 4)
	h.Advance(lock)
	h.wantNumbers(h.receive(deadOrders, 9), 3, 4) // locks end here as well
}

func testDLQ_3_NoSendToIt(t *testing.T, h *fixture) {
	h.create()
	for _, address := range []string{deadOrders.String(), "ORDERS/$DeadLetterQueue", `orders\$deadletterqueue`} {
		h.refused(semantics.InvalidOperation, func() error {
			_, err := h.broker.Send(t.Context(), semantics.ToQueue(address), []*semantics.Message{text("a")})
			return err
		})
	}
}

func testDLQ_4_NothingLeavesByItself(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(1), livesFor(1000*ms))
	h.sendTexts(1)
	h.abandon(orders, h.receiveOne(orders))
	for range 3 {
		h.abandon(deadOrders, h.receiveOne(deadOrders))
		h.receiveOne(deadOrders)
		h.Advance(lock)
	}
	h.wantCounts(0, 0, 1)
	h.wantNumbers(h.peek(orders))
}

func testDLQ_5_CountsAgainstTheSize(_ *testing.T, h *fixture) {
	h.create()
	h.send(sized(100), sized(50))
	h.deadLetter(h.receiveOne(orders))
	h.same(h.runtime().SizeInBytes, int64(150))
	h.complete(orders, h.receiveOne(orders))
	h.same(h.runtime().SizeInBytes, int64(100))
	h.complete(deadOrders, h.receiveOne(deadOrders))
	h.same(h.runtime().SizeInBytes, int64(0))
}

func testDLQ_6_TextWithTheMax(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(7))
	h.sendTexts(1)
	for range 7 {
		h.abandon(orders, h.receiveOne(orders))
	}
	dead := h.receiveOne(deadOrders)
	h.same(dead.DeadLetterReason, "MaxDeliveryCountExceeded")
	if !strings.Contains(dead.DeadLetterErrorDescription, "7") {
		h.t.Errorf("description %q does not name the max", dead.DeadLetterErrorDescription)
	}
}

func testDLQ_7_TextOfExpiry(_ *testing.T, h *fixture) {
	h.create(buriesExpired)
	h.send(lasting("a", 1000*ms))
	h.Advance(1000 * ms)
	h.receiveNone(orders)
	dead := h.receiveOne(deadOrders)
	h.same(dead.DeadLetterReason, "TTLExpiredException")
	if dead.DeadLetterErrorDescription == "" {
		h.t.Error("there is no description")
	}
}

func testDLQ_12_TextsAsGiven(t *testing.T, h *fixture) {
	h.create()
	texts := [][2]string{{"Ünlesbar: \U0001D11E", "line 1\n\tat \"x\"\x00"}, {"", ""}, {"only reason", ""}, {"", "only description"}}
	h.sendTexts(len(texts))
	for i, m := range h.receive(orders, len(texts)) {
		codes, err := h.broker.DeadLetter(t.Context(), orders, tokensOf(m), why(texts[i][0], texts[i][1]))
		h.settled(codes, err)
	}
	for i, m := range h.receive(deadOrders, len(texts)) {
		h.same([2]string{m.DeadLetterReason, m.DeadLetterErrorDescription}, texts[i])
	}
}

func testDLQ_15_TextsAreFieldsAndProperties(_ *testing.T, h *fixture) {
	h.create()
	m := text("a")
	m.Properties = map[string]semantics.Value{"mine": semantics.Int64(1), semantics.PropertyDeadLetterReason: semantics.String("old")}
	h.send(m)
	h.deadLetter(h.receiveOne(orders))
	want := map[string]semantics.Value{
		"mine":                                  semantics.Int64(1),
		semantics.PropertyDeadLetterReason:      semantics.String("poison"),
		semantics.PropertyDeadLetterDescription: semantics.String("cannot be read"),
	}
	for _, dead := range []*semantics.Received{h.peek(deadOrders)[0], h.receiveOne(deadOrders)} {
		h.same([]string{dead.DeadLetterReason, dead.DeadLetterErrorDescription}, []string{"poison", "cannot be read"})
		h.same(dead.Properties, want)
		h.same(dead.DeadLetterSource, "") // only set by forwarding
	}
}

func testDLQ_16_KeepsWhatTheMessageHad(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(3)
	m := lasting("a", time.Hour)
	m.SessionID, m.Subject, m.Properties = "s", "subject", map[string]semantics.Value{"p": semantics.Bool(true)}
	h.send(m)
	h.Advance(ms)
	h.receive(orders, 3)
	h.abandon(orders, h.receiveOne(orders))
	live := h.receiveOne(orders)
	h.Advance(ms)
	h.deadLetter(live)
	want := *live
	reason, description := "poison", "cannot be read"
	want.SetDeadLetter(semantics.DeadLetterTexts{Reason: &reason, Description: &description}, h.Now())
	want.LockToken, want.LockedUntil, want.DeliveryCount = semantics.LockToken{}, time.Time{}, 1
	h.Advance(ms)
	h.same(h.peek(deadOrders), []*semantics.Received{&want})
	got := h.receiveOne(deadOrders)
	want.LockToken, want.LockedUntil, want.DeliveryCount = got.LockToken, h.Now().Add(lock), 2
	h.same(got, &want)
}

func testDLQ_16_OrderOfArrival(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(12)
	got := h.receive(orders, 12)
	order := []int64{11, 2, 10, 9, 1, 12, 3}
	for _, number := range order {
		h.deadLetter(got[number-1])
		h.Advance(ms)
	}
	h.wantNumbers(h.peek(deadOrders), 1, 2, 3, 9, 10, 11, 12) // PEEK-3: by number
	some := h.receive(deadOrders, 3)
	h.wantNumbers(some, 11, 2, 10)
	h.release(deadOrders, some[1])
	h.wantNumbers(h.receive(deadOrders, 1), 2) // RECV-9: back to its place
	h.wantNumbers(h.receive(deadOrders, 10), 9, 1, 12, 3)
}

func testDLQ_16_OrderWithinOneCall(_ *testing.T, h *fixture) {
	h.create()
	h.sendTexts(12)
	got := h.receive(orders, 12)
	h.deadLetter(got[11], got[1], got[9], got[0])
	h.Advance(ms)
	h.deadLetter(got[4], got[3])
	h.wantNumbers(h.receive(deadOrders, 10), 1, 2, 10, 12, 4, 5)
}

func testDLQ_17_CountsStayInStepWithMoves(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(2), buriesExpired)
	var batch []*semantics.Message
	for i := range 30 {
		m := text("m")
		if i%3 == 0 {
			m = lasting("m", 500*ms)
		}
		batch = append(batch, m)
	}
	h.send(batch...)
	size := h.runtime().SizeInBytes
	for range 8 {
		got := h.receive(orders, 7)
		if len(got) > 4 {
			h.deadLetter(got[0])
			h.abandon(orders, got[1:3]...)
			h.release(orders, got[3])
		}
		h.Advance(lock / 3)
		r := h.runtime()
		h.same([]int64{r.Total(), r.SizeInBytes}, []int64{30, size})
		main, dead := h.peek(orders), h.peek(deadOrders)
		h.same([]int64{int64(len(main)), int64(len(dead))}, []int64{r.Active, r.DeadLetter})
		seen := map[int64]bool{}
		for _, m := range append(main, dead...) {
			if seen[m.SequenceNumber] {
				h.t.Fatalf("message %d is in two places", m.SequenceNumber)
			}
			seen[m.SequenceNumber] = true
		}
	}
}

func testDLQ_18_PoisonDoesNotGoRoundForEver(_ *testing.T, h *fixture) {
	h.create(deliversAtMost(3))
	h.send(text("poison"), text("good"))
	deliveries := 0
	for {
		got := h.receive(orders, 1)
		if len(got) == 0 {
			break
		}
		if got[0].MessageID == "poison" {
			deliveries++
			h.abandon(orders, got[0])
			continue
		}
		h.complete(orders, got[0])
	}
	h.same(deliveries, 3)
	dead := h.peek(deadOrders)
	h.wantNumbers(dead, 1)
	h.same(string(dead[0].Body), "poison") // kept for analysis
}

func testDLQ_21_ReadWhileSendsAreDisabled(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("1", "2", "3", "4", "5", "6", "7", "8", "9")
	h.setStatus(semantics.StatusSendDisabled)
	h.wantNumbers(h.peek(deadOrders), 1, 2, 3, 4, 5, 6, 7, 8, 9)
	got := h.receive(deadOrders, 4)
	h.wantNumbers(got, 1, 2, 3, 4)
	h.renew(deadOrders, got[0])
	h.complete(deadOrders, got[0])
	h.abandon(deadOrders, got[1])
	h.release(deadOrders, got[2])
	h.setAside(deadOrders, got[3])
	h.complete(deadOrders, h.takeDeferred(deadOrders, 4)...)
	h.setAside(deadOrders, h.takeNumbers(deadOrders, 5)...)
	h.ok(h.reactivate(deadOrders, 5))
	taken := h.receiveAs(deadOrders, 2, semantics.ReceiveAndDelete)
	h.wantNumbers(taken.Messages, 2, 3)
	h.ok(taken.Delivered(t.Context()))
	h.same(h.deleteNumbers(deadOrders, 6), []semantics.Code{""})
	h.wantNumbers(h.receive(deadOrders, 10), 5, 7, 8, 9)
	h.Advance(lock)
	h.same(h.purge(deadOrders, broker.PurgeOptions{}), int64(4))
	h.same(h.runtime(), semantics.Runtime{})
}

func testDLQ_21_ReceiveStatusForbidsReading(t *testing.T, h *fixture) {
	h.create()
	h.deadLetterTexts("1", "2", "3")
	h.setAside(deadOrders, h.takeNumbers(deadOrders, 2)...)
	receive := func(mode semantics.Mode) func() error {
		return func() error {
			_, err := h.broker.Receive(t.Context(), deadOrders, broker.ReceiveOptions{MaxMessages: 1, Mode: mode})
			return err
		}
	}
	reads := []func() error{
		receive(semantics.PeekLock),
		receive(semantics.ReceiveAndDelete),
		func() error {
			_, err := h.broker.Peek(t.Context(), deadOrders, 0, 1, semantics.ShowAll)
			return err
		},
		func() error { return h.receiveDeferred(deadOrders, 2) },
		func() error { return h.receiveNumbers(deadOrders, 1) },
	}
	for _, status := range []semantics.Status{semantics.StatusReceiveDisabled, semantics.StatusDisabled} {
		h.setStatus(status)
		for _, read := range reads {
			h.refused(semantics.EntityDisabled, read)
		}
	}
	h.setStatus(semantics.StatusSendDisabled)
	h.wantNumbers(h.peek(deadOrders), 1, 2, 3)
	h.wantNumbers(h.receive(deadOrders, 3), 1, 3)
	h.takeDeferred(deadOrders, 2)
}
