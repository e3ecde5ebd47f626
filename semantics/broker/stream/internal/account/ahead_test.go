package account_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
	"github.com/sidebus/sidebus/semantics/broker/stream/internal/account"
)

// released has the tokens that were released, by source.
type released map[semantics.Source][]semantics.LockToken

func (r released) Complete(context.Context, semantics.Source, []semantics.LockToken) ([]semantics.Code, error) {
	return nil, nil
}

func (r released) Release(_ context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	r[source] = append(r[source], tokens...)
	return make([]semantics.Code, len(tokens)), nil
}

// A fetch that ends with nothing, as when the client lowers its credits, leaves what was fetched before as it is.
func TestRECV_12_AFetchThatEndsWithNothing(t *testing.T) {
	t.Parallel()
	life, stop := context.WithCancelCause(t.Context())
	source, store := semantics.Source{Path: "orders"}, released{}
	a := account.New(life, stop, account.Settings{Source: source, Prefetch: 5, PrefetchesCut: new(atomic.Int64)}, 1, 30*time.Second)
	messages := make([]*semantics.Received, 4)
	for i := range messages {
		messages[i] = &semantics.Received{LockToken: semantics.LockToken{byte(i + 1)}}
	}
	n, _ := a.UseAll(false)
	a.Deliver(delivery.New(life, source, semantics.PeekLock, messages, store, new(delivery.Removals)), n)
	n, _ = a.UseAll(false)
	a.Deliver(&delivery.Delivery{}, n)
	now, _ := a.TakeAhead(false)
	if len(now.Tokens()) != 1 || now.Source() != source {
		t.Errorf("the client gets %d messages of %q, want 1 of %q", len(now.Tokens()), now.Source().Path, source.Path)
	}
	a.Stop(nil)
	_, back := a.TakeAhead(false)
	if err := back.Undelivered(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(store[source]) != 3 {
		t.Errorf("released %v, want 3 of %q", store, source.Path)
	}
}
