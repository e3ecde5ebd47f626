package storetest

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// smallOnes are n small messages.
func smallOnes(n int) []*semantics.Message {
	messages := make([]*semantics.Message, n)
	for i := range messages {
		messages[i] = text(strconv.Itoa(i))
	}
	return messages
}

// refusedForCopies checks that a send to news is refused for the copies it makes, and what the error says of them.
func (h *fixture) refusedForCopies(field string, limit int64, messages ...*semantics.Message) *semantics.Error {
	h.t.Helper()
	err := h.refusedPublish(semantics.MessageSizeExceeded, messages...)
	h.same([]string{err.Details[semantics.DetailField], err.Details[semantics.DetailLimit], err.Details[semantics.DetailEntity]},
		[]string{field, strconv.FormatInt(limit, 10), news})
	return err
}

// A step stores all copies of a send or none, so there is a bound to them: messages times subscriptions.
func testTOPIC_2_SoManyCopiesAtOnce(_ *testing.T, h *fixture) {
	h.createNews()
	h.refusedForCopies("copies", semantics.MaxCopies, smallOnes(semantics.MaxCopies/2+1)...)
	h.same(len(h.publish(smallOnes(semantics.MaxCopies/2)...)), semantics.MaxCopies/2)
	h.same(h.runtimeOf(us).Active, int64(semantics.MaxCopies/2))
	h.deleteSubscription(us)
	h.publish(smallOnes(semantics.MaxCopies/2 + 1)...)
	h.same(h.runtimeOf(eu).Active, int64(semantics.MaxCopies+1))
}

// wideSize is the size of messages of which createWide's topic takes one at a time, and no more.
const wideSize = 256 << 10

func (h *fixture) createWide() {
	h.t.Helper()
	h.createTopic()
	for i := range semantics.MaxCopyBytes / wideSize {
		h.createSubscription(subscription(fmt.Sprintf("s%02d", i)))
	}
}

func testTOPIC_2_SoManyBytesOfCopiesAtOnce(_ *testing.T, h *fixture) {
	h.createWide()
	const size = wideSize
	h.publish(sized(size))
	h.createSubscription(eu)
	h.refusedForCopies("bytes of copies", semantics.MaxCopyBytes, sized(size))
	h.publish(sized(size - size/8))
	h.same(h.runtimeOf(eu).Active, int64(1))
	// A larger bound of messages also permits more bytes of copies.
	h.updateTopic(func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = semantics.MaxCopyBytes>>10 + 256 }, "maxMessageSizeInKilobytes")
	h.publish(sized(size))
	h.same(h.runtimeOf(eu).Active, int64(2))
}

// A scheduled message is enqueued with others only as far as one step takes them, so only its own copies count.
func testTOPIC_2_ScheduledMakeTheirCopiesLater(_ *testing.T, h *fixture) {
	h.createNews()
	messages := smallOnes(semantics.MaxCopies/2 + 1)
	for _, m := range messages {
		m.ScheduledAt = h.in(time.Minute)
	}
	h.publish(messages...)
	h.Advance(time.Minute)
	h.activate()
	h.same([]int64{h.runtimeOf(eu).Active, h.runtimeOf(us).Active}, []int64{semantics.MaxCopies/2 + 1, semantics.MaxCopies/2 + 1})
}

// One message alone can make too many: each rule with an action makes a copy (TOPIC-5).
func testTOPIC_2_SoManyCopiesOfOneMessage(_ *testing.T, h *fixture) {
	h.createTopic()
	h.createSubscription(eu)
	m := text("wide")
	copies := make([]semantics.Copy, semantics.MaxCopies+1)
	for i := range copies {
		copies[i] = semantics.Copy{Subscription: "eu", Message: m}
	}
	send := func(at time.Time, copies []semantics.Copy) error {
		m.ScheduledAt = at
		return h.Store.Publish(h.t.Context(), news, h.routes().Version, [][]semantics.Publication{{{Message: m, Copies: copies}}})[0].Err
	}
	h.wantCode(send(time.Time{}, copies), semantics.MessageSizeExceeded)
	err := h.wantCode(send(h.in(time.Minute), copies), semantics.MessageSizeExceeded)
	h.same(err.Details[semantics.DetailIndex], "0")
	h.same(h.topicRuntime(), semantics.Runtime{Subscriptions: 1})
	h.ok(send(time.Time{}, copies[1:]))
	h.same(h.runtimeOf(eu).Active, int64(semantics.MaxCopies))
}

// What makes too many copies of one message cannot be forwarded there, but holds up no other.
func testFWD_8_TooManyCopies(_ *testing.T, h *fixture) {
	h.createWide()
	h.createSubscription(eu)
	h.create(forwardsTo(news))
	h.send(sized(wideSize - 20))
	h.send(text("a"))
	h.forward()
	h.wantIDs(eu, "a")
	h.wantUndelivered(semantics.ReasonDestinationFull, "MESSAGE_SIZE_EXCEEDED", "sized")
}
