package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Whatever a client does, it cannot tell Redis from the executable specification. `-rapid.checks=N` runs more.
func TestModel(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, func(t *testing.T) storetest.Pair {
		t.Helper()
		clock := storetest.NewClock()
		namespace := redistest.Namespace()
		auditor := redistest.NewAuditor(rawClient(t), namespace)
		return storetest.Pair{
			Reference: memstore.New(memstore.WithClock(clock.Now)),
			Subject:   redistest.Open(t, redisstore.Options{Now: clock.Now, Namespace: namespace}),
			Advance:   clock.Advance,
			Audit:     func(path string) error { return auditor.Audit(t.Context(), path) },
		}
	})
}
