package amqp_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/semantics"
)

// TestMessagesCountAsRequests has a client that holds the memory for requests with a message that does not end.
func TestMessagesCountAsRequests(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 10 << 10 }, "maxMessageSizeInKilobytes")
	holding, other := s.dial(nil).open(), s.dial(nil).open()
	held, sender := holding.sender("q"), other.sender("q")
	piece := []byte(strings.Repeat("x", 60<<10))
	id := uint32(0)
	for range requestMemory / 3 / len(piece) { // a request takes several times its size
		holding.send(&frame.Transfer{Handle: held, DeliveryID: &id, More: true}, piece...)
	}
	holding.sender("q") // so that all of it has arrived
	large := data(strings.Repeat("x", 400<<10))
	if r, ok := other.transferLarge(sender, large).(frame.Rejected); !ok || r.Error.Condition != "com.microsoft:server-busy" {
		t.Errorf("while the memory is used: %+v", r)
	}
	if state, ok := other.transfer(sender, data("small")).(frame.Accepted); !ok {
		t.Errorf("a small message while the memory is used: %+v", state)
	}
	holding.send(&frame.Transfer{Handle: held, Aborted: true})
	holding.sender("q")
	if state, ok := other.transferLarge(sender, large).(frame.Accepted); !ok {
		t.Errorf("when it is free again: %+v", state)
	}
}

// TestDeliveriesCountAsAnswers has a client that holds the memory for answers with a message that it takes in part.
func TestDeliveriesCountAsAnswers(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 10 << 10 }, "maxMessageSizeInKilobytes")
	holding, other := s.dial(nil).open(), s.dial(nil).open()
	other.transferLarge(other.sender("q"), data(strings.Repeat("x", requestMemory/2)))
	other.transferLarge(other.sender("q"), data(strings.Repeat("x", 20<<10)))
	holding.attach(frame.Attach{IsReceiver: true, Source: &frame.Source{Address: "q"}})
	one := uint32(1)
	holding.send(&frame.Flow{IncomingWindow: 1, NextIncomingID: new(uint32), Handle: new(uint32), LinkCredit: &one})
	want[*frame.Transfer](holding) // the first frame; the window has no space for others
	management := other.node("q/$management")
	peek := func() any {
		status, _ := management.ask("com.microsoft:peek-message", codec.Map{
			codec.Entry("from-sequence-number", int64(2)), codec.Entry("message-count", int32(1)),
		})
		return status.Get("statusCode")
	}
	if got := peek(); got != int32(503) {
		t.Errorf("while the memory is used, a peek has the status %v", got)
	}
	holding.send(&frame.Detach{Closed: true})
	want[*frame.Detach](holding)
	for deadline := time.Now().Add(patience); peek() != int32(200); {
		if time.Now().After(deadline) {
			t.Fatal("the memory is not free")
		}
	}
}

// TestAnswersThatAreNotTaken has a client that makes a request and gives no credit for the answer.
func TestAnswersThatAreNotTaken(t *testing.T) {
	t.Parallel()
	s := start(t, nil)
	s.queue("q", nil)
	c := s.dial(nil).open()
	c.attach(frame.Attach{Name: "answers", IsReceiver: true, Source: &frame.Source{Address: "q/$management"}, Target: &frame.Target{}})
	state := c.transfer(c.sender("q/$management"), sections(
		uint64(0x73), codec.List{uint64(42), nil, nil, nil, "answers"}, uint64(0x74), codec.Map{}, uint64(0x77), codec.Map{},
	))
	if _, ok := state.(frame.Accepted); !ok {
		t.Fatalf("the request is %#v", state)
	}
	if d := want[*frame.Detach](c); d.Handle != 0 || d.Error == nil || d.Error.Condition != "amqp:resource-limit-exceeded" {
		t.Errorf("detached %d with %v", d.Handle, d.Error)
	}
}

// transferLarge sends a message in several frames.
func (c *client) transferLarge(handle uint32, payload []byte) frame.State {
	c.Helper()
	id := c.next
	c.next++
	for rest := payload; len(rest) > 0; {
		piece := rest[:min(len(rest), 60<<10)]
		rest = rest[len(piece):]
		c.send(&frame.Transfer{Handle: handle, DeliveryID: &id, More: len(rest) > 0}, piece...)
	}
	return want[*frame.Disposition](c).State
}
