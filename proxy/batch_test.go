package proxy_test

import (
	"testing"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// What the client counts before it sends is what the sidecar counts, for every field and type of property.
func TestBATCH_5_SizeIsKnownBeforeSending(t *testing.T) {
	t.Parallel()
	id, key, some := "m-1", "k", "text"
	sent := []*sidebusv1.Message{
		{},
		{MessageId: &id},
		{Content: &sidebusv1.Message_Body{Body: make([]byte, 1000)}},
		{Content: &sidebusv1.Message_Text{Text: "grüße"}},
		{Content: &sidebusv1.Message_Json{Json: `{"a": 1}`}},
		{
			SessionId: &key, PartitionKey: &key, CorrelationId: &some, Subject: &some, To: &some, ReplyTo: &some,
			ReplyToSessionId: &some, ContentType: &some,
		},
	}
	for name, p := range properties {
		sent = append(sent, &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{name: p.value}})
	}
	at := newClock()
	w := &wire{sidecar: start(t, memstore.New(memstore.WithClock(at.Now))), clock: at}
	w.messages = w.sidecar.messages
	for _, m := range sent {
		w.put(t, m)
		if got := w.take(t, 1)[0].GetSize(); got != m.CountedSize() {
			t.Errorf("%v counts for %d bytes, the client says %d", m, got, m.CountedSize())
		}
	}
}

// A message that no longer fits is left out, the batch goes through as it is, and one byte more than it may have does not.
func TestBATCH_5_TryAdd(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		var batch sidebusv1.Batch
		half := text(string(make([]byte, 128<<10-36)))
		for range 2 {
			if !batch.TryAdd(half) {
				t.Fatal("two halves do not fit")
			}
		}
		if batch.TryAdd(text("")) || batch.Len() != 2 || batch.Size() != 256<<10 {
			t.Errorf("a full batch took one more: %d messages, %d bytes", batch.Len(), batch.Size())
		}
		if _, err := w.messages.Send(t.Context(), batch.Request(orders)); err != nil {
			t.Error(err)
		}
		over := sidebusv1.Batch{MaxBytes: 1 << 20}
		over.TryAdd(half)
		over.TryAdd(text(string(make([]byte, 128<<10-35))))
		refuse("one byte over", "MESSAGE_SIZE_EXCEEDED", "batch", sidebusv1.MessagesClient.Send, over.Request(orders)).check(t, w.messages)
	})
	var many sidebusv1.Batch
	for range 4500 {
		if !many.TryAdd(text("")) {
			t.Fatal("4500 small messages do not fit")
		}
	}
	if many.TryAdd(text("")) {
		t.Error("one message over the most was taken")
	}
}
