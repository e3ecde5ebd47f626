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

var onceTests = []ruleTest{
	testIDEM_1_RepeatGivesTheFirstAnswer,
	testIDEM_1_OtherMessages,
	testIDEM_1_ExactTwoMinutes,
	testIDEM_1_RefusedSendLeavesNoTrace,
	testIDEM_1_RepeatWhateverTheEntityIsNow,
	testIDEM_1_OneOfManyRepeatsStores,
	testIDEM_1_OldestGoFirst,
	testIDEM_1_EachTargetForItself,
	testIDEM_1_Bounds,
	testIDEM_2_BesideDuplicateDetection,
}

// answer is what a SendOnce returns.
type answer struct {
	Results  []semantics.SendResult
	Repeated bool
}

func (h *fixture) sendOnce(target semantics.Target, id string, messages ...*semantics.Message) answer {
	h.t.Helper()
	results, repeated, err := h.broker.SendOnce(h.t.Context(), target, id, messages)
	h.ok(err)
	return answer{results, repeated}
}

func (h *fixture) refusedOnce(code semantics.Code, target semantics.Target, id string, messages ...*semantics.Message) {
	h.t.Helper()
	_, _, err := h.broker.SendOnce(h.t.Context(), target, id, messages)
	h.wantCode(err, code)
}

// anotherBroker is that of another sidecar, where the store can have one.
func (h *fixture) anotherBroker() *broker.Broker {
	if h.Peer == nil {
		return h.newBroker(h.Store)
	}
	return h.newBroker(h.Peer())
}

// kinds are the targets that take sends, and how many messages one has taken.
func (h *fixture) kinds() map[semantics.Target]func() int64 {
	h.t.Helper()
	h.create()
	h.createNamed("sessions", func(o *semantics.Options) { o.RequiresSession = true })
	h.createNews()
	total := func(kind semantics.Kind, path string) func() int64 {
		return func() int64 {
			counts, err := h.Store.Runtime(h.t.Context(), kind, path)
			h.ok(err)
			return counts.Active + counts.Scheduled
		}
	}
	ofTopic, ofCopy := total(semantics.TopicKind, news), total(semantics.SubscriptionKind, eu.Path)
	return map[semantics.Target]func() int64{
		semantics.ToQueue(orders.Path): total(semantics.QueueKind, orders.Path),
		semantics.ToQueue("sessions"):  total(semantics.QueueKind, "sessions"),
		semantics.ToTopic(news):        func() int64 { return ofTopic() + ofCopy() },
	}
}

func testIDEM_1_RepeatGivesTheFirstAnswer(_ *testing.T, h *fixture) {
	other := h.anotherBroker()
	for target, total := range h.kinds() {
		batch := func() []*semantics.Message {
			return []*semantics.Message{
				{MessageID: "mine", SessionID: "s", Body: []byte("a")},
				{SessionID: "s", Body: []byte("b")}, // gets an id of Sidebus
				{SessionID: "s", Body: []byte("c"), ScheduledAt: h.in(time.Hour)},
			}
		}
		first := h.sendOnce(target, "id:1", batch()...)
		if first.Repeated || first.Results[1].MessageID == "" || first.Results[1].MessageID == first.Results[2].MessageID {
			h.t.Errorf("%v: got %+v", target, first)
		}
		first.Repeated = true
		h.Advance(time.Minute)
		h.same(h.sendOnce(target, "id:1", batch()...), first)
		results, repeated, err := other.SendOnce(h.t.Context(), target, "id:1", batch())
		h.ok(err)
		h.same(answer{results, repeated}, first)
		h.same(total(), int64(3))
		if next := h.sendOnce(target, "id:2", batch()...); next.Repeated || next.Results[0].SequenceNumber != 4 {
			h.t.Errorf("%v: another id gets %+v", target, next)
		}
	}
}

func testIDEM_1_OtherMessages(_ *testing.T, h *fixture) {
	message := func(id, body string) *semantics.Message {
		return &semantics.Message{MessageID: id, SessionID: "s", Body: []byte(body)}
	}
	for target, total := range h.kinds() {
		h.sendOnce(target, "r", message("a", "1"), message("", "2"))
		for _, others := range [][]*semantics.Message{
			{message("a", "1")},
			{message("a", "1"), message("", "2"), message("", "3")},
			{message("b", "1"), message("", "2")},
			{message("a", "1"), message("b", "2")},
			{message("", "1"), message("a", "2")},
			{message("a", "1"), message("", "22")},
		} {
			h.refusedOnce(semantics.InvalidArgument, target, "r", others...)
		}
		h.same(total(), int64(2))
		h.same(h.sendOnce(target, "r", message("a", "8"), message("", "9")).Repeated, true) // contents are not compared
	}
}

func testIDEM_1_ExactTwoMinutes(_ *testing.T, h *fixture) {
	for target, total := range h.kinds() {
		send := func() bool { return h.sendOnce(target, "r", part("s", "a")).Repeated }
		h.same(send(), false)
		h.Advance(2*time.Minute - ms)
		h.same(send(), true) // and does not begin the time again
		h.Advance(ms)
		h.same(send(), false)
		h.same(total(), int64(2))
	}
}

func testIDEM_1_RefusedSendLeavesNoTrace(_ *testing.T, h *fixture) {
	h.kinds()
	for _, target := range []semantics.Target{semantics.ToQueue(orders.Path), semantics.ToTopic(news)} {
		h.setStatusOf(target, semantics.StatusSendDisabled)
		h.refusedOnce(semantics.EntityDisabled, target, "r", text("a"))
		h.setStatusOf(target, semantics.StatusActive)
		h.same(h.sendOnce(target, "r", text("other"), text("messages")).Repeated, false)
	}
	h.refusedOnce(semantics.SessionIDMissing, semantics.ToQueue("sessions"), "r", text("a"))
	h.same(h.sendOnce(semantics.ToQueue("sessions"), "r", part("s", "a")).Repeated, false)
	h.refusedOnce(semantics.EntityNotFound, semantics.ToQueue("nowhere"), "r", text("a"))
}

func (h *fixture) setStatusOf(target semantics.Target, status semantics.Status) {
	h.t.Helper()
	kind := semantics.QueueKind
	if target.IsTopic {
		kind = semantics.TopicKind
	}
	_, err := h.Store.UpdateEntity(h.t.Context(), kind, target.Path, semantics.Options{Status: status}, []string{"status"})
	h.ok(err)
}

func testIDEM_1_RepeatWhateverTheEntityIsNow(t *testing.T, h *fixture) {
	h.kinds()
	for _, target := range []semantics.Target{semantics.ToQueue(orders.Path), semantics.ToTopic(news)} {
		h.sendOnce(target, "r", text("a"))
		h.setStatusOf(target, semantics.StatusDisabled)
		h.same(h.sendOnce(target, "r", text("a")).Repeated, true)
	}
	h.ok(h.Store.DeleteEntity(t.Context(), semantics.QueueKind, orders.Path))
	h.create()
	h.same(h.sendOnce(semantics.ToQueue(orders.Path), "r", text("other messages, another queue")).Repeated, false)
	h.ok(h.Store.DeleteEntity(t.Context(), semantics.TopicKind, news))
	h.createNews()
	h.same(h.sendOnce(semantics.ToTopic(news), "r", text("other messages, another topic")).Repeated, false)
}

func testIDEM_1_OneOfManyRepeatsStores(_ *testing.T, h *fixture) {
	h.races()
	brokers := []*broker.Broker{h.broker, h.anotherBroker()}
	for target, total := range h.kinds() {
		const senders = 16
		answers := make([]answer, senders)
		var all sync.WaitGroup
		for i := range senders {
			all.Go(func() {
				results, repeated, err := brokers[i%len(brokers)].SendOnce(h.t.Context(), target, "r", []*semantics.Message{{SessionID: "s"}})
				h.ok(err)
				answers[i] = answer{results, repeated}
			})
		}
		all.Wait()
		first := 0
		for _, a := range answers {
			if !a.Repeated {
				first++
			}
			h.same(a.Results, answers[0].Results)
		}
		h.same(first, 1)
		h.same(total(), int64(1))
	}
}

func testIDEM_1_OldestGoFirst(t *testing.T, h *fixture) {
	h.races()
	h.create()
	id := func(i int) semantics.Once { return semantics.Once{RequestID: fmt.Sprint(i), Digest: "d", Seed: "s"} }
	var all sync.WaitGroup
	const first = 100 // in their order, the others side by side
	for i := range first {
		h.ok(h.Store.SendOnce(t.Context(), orders.Path, id(i), []*semantics.Message{text("m")}).Err)
		h.Advance(ms)
	}
	for part := range 50 {
		all.Go(func() {
			for i := first + part; i < semantics.MaxRequestsKept+first-1; i += 50 {
				h.ok(h.Store.SendOnce(t.Context(), orders.Path, id(i), []*semantics.Message{text("m")}).Err)
			}
		})
	}
	all.Wait()
	for i, want := range map[int]bool{first - 1: true, first: true} {
		h.same(h.Store.SendOnce(t.Context(), orders.Path, id(i), []*semantics.Message{text("m")}).Repeats != nil, want)
	}
	for i := range first - 1 {
		h.same(h.Store.SendOnce(t.Context(), orders.Path, id(i), []*semantics.Message{text("m")}).Repeats != nil, false)
	}
}

func testIDEM_1_EachTargetForItself(_ *testing.T, h *fixture) {
	for target := range h.kinds() {
		h.same(h.sendOnce(target, "r", part("s", "a")).Repeated, false)
		h.same(h.sendOnce(target, "R", part("s", "a")).Repeated, false) // ids are compared as they stand
	}
	h.same(h.sendOnce(semantics.ToQueue("ORDERS"), "r", part("s", "a")).Repeated, true)
}

func testIDEM_1_Bounds(_ *testing.T, h *fixture) {
	h.create()
	target := semantics.ToQueue(orders.Path)
	for _, id := range []string{"", strings.Repeat("x", 129), "\xff"} {
		h.refusedOnce(semantics.InvalidArgument, target, id, text("a"))
	}
	for i, id := range []string{"x", strings.Repeat("ü", 128), ":", "1:2:3:4", "a\nb\x00c d"} {
		h.same(h.sendOnce(target, id, text("a")).Repeated, false)
		h.same(h.sendOnce(target, id, text("a")), answer{[]semantics.SendResult{{Stored: stored(int64(i + 1)), MessageID: "a"}}, true})
	}
}

func testIDEM_2_BesideDuplicateDetection(_ *testing.T, h *fixture) {
	h.create(detectsDuplicates)
	h.createNews(detectsDuplicates)
	for _, target := range []semantics.Target{semantics.ToQueue(orders.Path), semantics.ToTopic(news)} {
		h.sendOnce(target, "1", text("a"))
		first := h.sendOnce(target, "2", text("a"), text("b"), text("b"))
		h.same(first.Results, []semantics.SendResult{
			{Stored: duplicate(1), MessageID: "a"}, {Stored: stored(2), MessageID: "b"}, {Stored: duplicate(2), MessageID: "b"},
		})
		h.Advance(time.Minute)
		h.same(h.sendOnce(target, "2", text("a"), text("b"), text("b")), answer{first.Results, true})
	}
}
