package proxy_test

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// lasting is a message with a time to live.
func lasting(ttl time.Duration) *sidebusv1.Message {
	m := text("x")
	m.TimeToLive = durationpb.New(ttl)
	return m
}

// Messages that may expire before a receiver can get them are counted when they are stored, of all wires.
func TestTTL_14_ShortLivedMessagesAreCounted(t *testing.T) {
	t.Parallel()
	const short, long = time.Second - time.Millisecond, time.Second
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/queues/once", `{"requiresDuplicateDetection":true}`)
		w.put(t, lasting(short), lasting(long), text("for good"))
		w.put(t, lasting(time.Millisecond))
		w.eventuallyCounts(t, 2, "sidebus_messages_short_lived_total", `entity="orders"`)

		twice := lasting(short)
		twice.MessageId = new("same")
		for range 2 {
			if _, err := w.messages.Send(t.Context(), &sidebusv1.SendRequest{Target: "queues/once", Messages: []*sidebusv1.Message{twice}}); err != nil {
				t.Fatal(err)
			}
		}
		w.eventuallyCounts(t, 1, "sidebus_messages_short_lived_total", `entity="once"`)

		p := w.publish(t)
		p.send(&sidebusv1.PublishRequest{RequestId: "a", Target: orders, Messages: []*sidebusv1.Message{lasting(long), lasting(short)}})
		p.send(&sidebusv1.PublishRequest{RequestId: "b", Target: orders, Messages: []*sidebusv1.Message{lasting(long)}})
		p.answers(2)
		w.eventuallyCounts(t, 3, "sidebus_messages_short_lived_total", `entity="orders"`)
	})
}
