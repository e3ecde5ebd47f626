package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// The same holds of queues with several partitions: which partition a call goes to does not depend on the store.
func TestPART_1_ModelOverPartitions(t *testing.T) {
	t.Parallel()
	for _, n := range []int64{2, 5} {
		storetest.RunModel(t, func(t *testing.T) storetest.Pair {
			t.Helper()
			clock := storetest.NewClock()
			options := redisstore.Options{Now: clock.Now, ReadTimeout: redistest.Patience}
			return storetest.Pair{
				Reference: memstore.New(memstore.WithClock(clock.Now)),
				Subject:   redistest.Open(t, options),
				Advance:   clock.Advance,
			}.OverPartitions(n)
		})
	}
}

// The same model as in memory knows when a queue with several partitions is deleted when idle.
func TestIDLE_8_ModelOverPartitions(t *testing.T) {
	t.Parallel()
	storetest.RunIdleModel(t, func(t *testing.T) storetest.Harness {
		t.Helper()
		clock := storetest.NewClock()
		return storetest.Harness{
			Store: redistest.Open(t, redisstore.Options{Now: clock.Now, ReadTimeout: redistest.Patience}),
			Now:   clock.Now, Advance: clock.Advance,
		}
	})
}
