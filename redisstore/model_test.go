package redisstore_test

import (
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Whatever a client does, it cannot tell Redis from the executable specification. `-rapid.checks=N` runs more.
func TestModel(t *testing.T) {
	t.Parallel()
	storetest.RunModel(t, func(t *testing.T) storetest.Pair {
		t.Helper()
		clock, namespace := storetest.NewClock(), redistest.Namespace()
		ledger := redistest.NewLedger(clock.Now)
		auditor := redistest.NewAuditor(rawClient(t), namespace).With(ledger)
		open := func() *redisstore.Store {
			s, err := redisstore.Open(redisstore.Options{URL: redistest.URL(t), Namespace: namespace, Now: clock.Now, ReadTimeout: redistest.Patience})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		subject := open()
		t.Cleanup(func() { _ = subject.Close() })
		return storetest.Pair{
			Reference: memstore.New(memstore.WithClock(clock.Now)),
			Subject:   ledger.Keep(subject),
			Advance:   clock.Advance,
			Restart: func() semantics.Store {
				if err := subject.Close(); err != nil {
					t.Error(err)
				}
				subject = open()
				return ledger.Keep(subject)
			},
			Audit: func(path string) error { return auditor.Audit(t.Context(), path) },
		}
	})
}
