package storetest

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

var sendTests = []ruleTest{
	testSEND_1_AnswerMeansStored,
	testSEND_1_StoreKeepsItsOwnCopy,
	testSEND_3_OrderOfCalls,
	testSEND_3_OrderOfCallsAmongManySenders,
	testBATCH_1_AllOrNothing,
	testBATCH_2_CountLimits,
	testBATCH_2_TenMessagesWithTheirIDsPassAsOne,
	testBATCH_3_ConsecutiveNumbersInListOrder,
	testBATCH_3_BatchesDoNotMix,
}

func testSEND_1_AnswerMeansStored(_ *testing.T, h *fixture) {
	h.create()
	h.send(text("a"))
	h.wantCounts(1, 0, 0)
	h.wantNumbers(h.peek(orders), 1)
	h.wantNumbers(h.receive(orders, 1), 1)
}

func testSEND_1_StoreKeepsItsOwnCopy(_ *testing.T, h *fixture) {
	h.create()
	sent := lasting("a", 1000*ms)
	sent.Properties = map[string]semantics.Value{"p": semantics.Int64(1)}
	h.send(sent)
	sent.Body[0], *sent.TimeToLive, sent.Properties["p"] = 'X', ms, semantics.Int64(2)

	peeked := h.peek(orders)[0]
	want := lasting("a", 1000*ms)
	want.Properties = map[string]semantics.Value{"p": semantics.Int64(1)}
	h.same(&peeked.Message, want)
	peeked.Body[0], *peeked.TimeToLive, peeked.Properties["p"] = 'X', ms, semantics.Int64(2)
	got := h.receiveOne(orders)
	h.same(&got.Message, want)
	got.Body[0], *got.TimeToLive, got.Properties["p"] = 'X', ms, semantics.Int64(2)
	h.abandon(orders, got)
	h.same(&h.peek(orders)[0].Message, want)
}

func testSEND_3_OrderOfCalls(_ *testing.T, h *fixture) {
	h.create()
	for i := range 20 {
		h.same(h.send(text(fmt.Sprint(i))), int64(i+1))
	}
	for i, m := range h.receive(orders, 20) {
		h.same(m.MessageID, fmt.Sprint(i))
	}
}

func testSEND_3_OrderOfCallsAmongManySenders(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const senders, each = 8, 20
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			for i := range each {
				id := fmt.Sprintf("%d/%03d", s, i)
				if _, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text(id)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	last := map[string]string{}
	for i, m := range h.receive(orders, senders*each) {
		h.same(m.SequenceNumber, int64(i+1)) // without gaps
		sender, _, _ := strings.Cut(m.MessageID, "/")
		if m.MessageID <= last[sender] {
			t.Errorf("%s came after %s", m.MessageID, last[sender])
		}
		last[sender] = m.MessageID
	}
}

func testBATCH_1_AllOrNothing(_ *testing.T, h *fixture) {
	h.create(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes, o.MaxMessageCount = 1, 4 })
	h.send(text("first"))
	nameless := text("nameless")
	nameless.Properties = map[string]semantics.Value{"": semantics.Null()}
	bad := map[string]struct {
		message *semantics.Message
		code    semantics.Code
	}{
		"size":     {sized(1025), semantics.MessageSizeExceeded},
		"name":     {nameless, semantics.InvalidArgument},
		"keys":     {&semantics.Message{SessionID: "a", PartitionKey: "b"}, semantics.PartitionKeyMismatch},
		"lifetime": {lasting("short", 0), semantics.ArgumentOutOfRange},
	}
	for name, c := range bad {
		err := h.refusedSend(c.code, text("good"), text("good"), c.message)
		if got := err.Details[semantics.DetailIndex]; got != "2" {
			h.t.Errorf("%s: index of the bad message is %q, want 2", name, got)
		}
	}
	h.refusedSend(semantics.EntityFull, text("2"), text("3"), text("4"), text("5")) // three would fit
	h.same(h.send(text("2"), text("3"), text("4")), int64(2))
}

func testBATCH_2_CountLimits(_ *testing.T, h *fixture) {
	h.create()
	h.refusedSend(semantics.InvalidArgument)
	many := make([]*semantics.Message, semantics.MaxBatchMessages+1)
	for i := range many {
		many[i] = &semantics.Message{MessageID: "i"}
	}
	h.refusedSend(semantics.ArgumentOutOfRange, many...)
	h.send(many[:semantics.MaxBatchMessages]...)
	h.wantCounts(semantics.MaxBatchMessages, 0, 0)
}

func testBATCH_2_TenMessagesWithTheirIDsPassAsOne(_ *testing.T, h *fixture) {
	h.create()
	var batch []*semantics.Message
	for range 10 {
		batch = append(batch, text(semantics.NewRandomUUID().String()))
	}
	h.same(h.send(batch...), int64(1))
	for i, m := range h.receive(orders, 10) {
		h.same(m.MessageID, batch[i].MessageID)
	}
}

func testBATCH_3_ConsecutiveNumbersInListOrder(t *testing.T, h *fixture) {
	h.create()
	h.send(text("before"))
	results, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{text("z"), text("y"), text("x")})
	h.ok(err)
	h.same(results, []semantics.SendResult{{Stored: semantics.Stored{SequenceNumber: 2}, MessageID: "z"}, {Stored: semantics.Stored{SequenceNumber: 3}, MessageID: "y"}, {Stored: semantics.Stored{SequenceNumber: 4}, MessageID: "x"}})
	for i, m := range h.receive(orders, 4) {
		h.same(m.MessageID, []string{"before", "z", "y", "x"}[i])
	}
}

func testBATCH_3_BatchesDoNotMix(t *testing.T, h *fixture) {
	h.races()
	h.create()
	const senders, each = 6, 25
	var work sync.WaitGroup
	for s := range senders {
		work.Go(func() {
			batch := make([]*semantics.Message, each)
			for i := range batch {
				batch[i] = text(fmt.Sprintf("%d", s))
			}
			if _, err := h.broker.Send(t.Context(), semantics.ToQueue("orders"), batch); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	got := h.receive(orders, senders*each)
	for i, m := range got {
		if first := got[i-i%each]; m.MessageID != first.MessageID {
			t.Fatalf("message %d of sender %s lies within the batch of sender %s", m.SequenceNumber, m.MessageID, first.MessageID)
		}
	}
}
