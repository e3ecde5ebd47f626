package partitioned_test

import (
	"context"
	"testing"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Whatever has one partition obeys every rule as if there were none.
func TestPART_1_OnePartitionIsAsBefore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		h := storetest.Memory(t)
		below, sweep, peer, limited := h.Store.(partitioned.Below), h.Sweep, h.Peer, h.WithTopicLimits
		h.Store = partitioned.New(below)
		h.Peer = func() semantics.Store { return partitioned.New(peer().(partitioned.Below)) }
		h.Sweep = func(ctx context.Context, _ semantics.Store, upkeep semantics.Upkeep) error {
			return sweep(ctx, below, upkeep)
		}
		h.WithTopicLimits = func(subscriptions, sqlFilters, correlationFilters int) semantics.Store {
			return partitioned.New(limited(subscriptions, sqlFilters, correlationFilters).(partitioned.Below))
		}
		return h
	})
}

// placed is a Store that lays entities into slots.
type placed struct{ partitioned.Below }

func (placed) Slot(path string) (slot, of int) {
	sum := 0
	for _, c := range []byte(path) {
		sum = (sum*31 + int(c)) % 1000
	}
	return sum, 1000
}

// Each partition lies in its own share of the slots, and every sidecar finds it there.
func TestPART_1_PartitionsAreSpreadEvenly(t *testing.T) {
	t.Parallel()
	below := placed{memstore.New()}
	options := semantics.DefaultOptions()
	options.Partitions = 16
	store, other := partitioned.New(below), partitioned.New(below)
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "Orders", options); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Send(t.Context(), "ORDERS", []*semantics.Message{{MessageID: "a"}}); err != nil {
		t.Fatal(err)
	}
	for p := range 16 {
		path := store.Path("orders", p)
		if slot, of := below.Slot(path); slot*16/of != p || path != other.Path("orders", p) {
			t.Errorf("partition %d is at %s in slot %d of %d, another sidecar looks at %s", p, path, slot, of, other.Path("orders", p))
		}
	}
}
