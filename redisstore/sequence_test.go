package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
)

// Lua calculates exactly up to 2^53-1. The last number works like any other, and no send goes beyond it.
func TestMSG_5_LastNumber(t *testing.T) {
	t.Parallel()
	const last = 1<<53 - 1
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	must(t, s.raw.HSet(t.Context(), s.key("entity"), "sequence", last-2, "cursor", last-2).Err())
	send := func(n int) ([]semantics.Stored, error) {
		return s.Send(t.Context(), "orders", messagesOf(n, semantics.Message{Body: []byte("x")}))
	}
	if _, err := send(3); semantics.CodeOf(err) != semantics.Internal {
		t.Errorf("a send beyond the last number: got %v, want INTERNAL", err)
	}
	stored, err := send(2)
	must(t, err)
	if stored[0].SequenceNumber != last-1 || stored[1].SequenceNumber != last {
		t.Errorf("got %+v", stored)
	}
	if _, err := send(1); semantics.CodeOf(err) != semantics.Internal {
		t.Errorf("a send after the last number: got %v, want INTERNAL", err)
	}
	for range 2 { // handed out, given back to its place, handed out again
		batch, err := s.Receive(t.Context(), orders, 9, semantics.RegisterNever)
		must(t, err)
		if len(batch.Messages) != 2 || batch.Messages[1].SequenceNumber != last {
			t.Fatalf("got %+v", batch.Messages)
		}
		_, err = s.Release(t.Context(), orders, tokensOf(batch.Messages))
		must(t, err)
	}
	batch, err := s.Receive(t.Context(), orders, 9, semantics.RegisterNever)
	must(t, err)
	codes, err := s.Complete(t.Context(), orders, tokensOf(batch.Messages))
	must(t, err)
	if codes[0] != "" || codes[1] != "" {
		t.Errorf("complete: %v", codes)
	}
	must(t, audit.New(s.raw, s.namespace).Audit(t.Context(), "orders"))
}
