package amqp_test

import (
	"strings"
	"testing"

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
