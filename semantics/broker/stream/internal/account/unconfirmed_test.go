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

// The credit of a message comes back with its settlement, confirmed or not.
func TestDUR_2_CreditOfAnUnconfirmedSettlement(t *testing.T) {
	t.Parallel()
	life, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	source, store := semantics.Source{Path: "orders"}, released{}
	a := account.New(life, stop, account.Settings{Source: source, PrefetchesCut: new(atomic.Int64)}, 1, 30*time.Second)
	token := semantics.LockToken{1}
	n, _ := a.UseAll(false)
	messages := []*semantics.Received{{LockToken: token}}
	a.Deliver(delivery.New(life, source, semantics.PeekLock, messages, store, new(delivery.Removals)), n)
	_, groups := a.Settling([]semantics.LockToken{token})
	a.Settled(groups[0], nil, []semantics.Code{semantics.DurabilityNotMet}, nil)
	if n, _ := a.UseAll(false); n != 1 {
		t.Errorf("%d credits after the settlement, want 1", n)
	}
}
