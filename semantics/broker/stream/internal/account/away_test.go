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

// A partition that is away says nothing about locks: the client keeps its message, and a settlement is repeated.
func TestPART_7_LocksOfAPartitionThatIsAway(t *testing.T) {
	t.Parallel()
	life, stop := context.WithCancelCause(t.Context())
	defer stop(nil)
	source := semantics.Source{Path: "orders"}
	a := account.New(life, stop, account.Settings{Source: source, PrefetchesCut: new(atomic.Int64), MaxAutoRenew: time.Minute}, 1, 30*time.Second)
	token := semantics.LockToken{1}
	n, _ := a.UseAll(false)
	a.Deliver(delivery.New(life, source, semantics.PeekLock, []*semantics.Received{{LockToken: token}}, released{}, new(delivery.Removals)), n)
	renewed := func(code semantics.Code) int {
		a.MessagesRenewed([]semantics.LockToken{token}, []semantics.Renewal{{Code: code}})
		return len(a.MessagesToRenew(true))
	}
	if n := renewed(semantics.StoreUnavailable); n != 1 {
		t.Errorf("%d locks are to be renewed while the partition is away, want 1", n)
	}
	_, groups := a.Settling([]semantics.LockToken{token})
	a.Settled(groups[0], nil, []semantics.Code{semantics.StoreUnavailable}, nil)
	if doubts := a.Doubts(); len(doubts) != 1 || len(doubts[0].Tokens) != 1 {
		t.Errorf("got %v, want a settlement that is repeated", doubts)
	}
}
