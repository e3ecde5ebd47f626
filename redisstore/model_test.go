package redisstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// Whatever a client does, it cannot tell Redis from the executable specification. `-rapid.checks=N` runs more.
func TestModel(t *testing.T) {
	t.Parallel()
	runModel(t, func(open func() *redisstore.Store) closing { return open() })
}

// The same holds when no call takes a short way through its script.
func TestModelOfRareWays(t *testing.T) {
	t.Parallel()
	runModel(t, func(open func() *redisstore.Store) closing {
		s := open()
		s.TakeNoShortWays()
		return s
	})
}

// And when some do.
func TestModelOfMixedWays(t *testing.T) {
	t.Parallel()
	runModel(t, func(open func() *redisstore.Store) closing { return redisstore.Mix(open(), open()) })
}

// closing is a Store that can be closed.
type closing interface {
	partitioned.Below
	Close() error
}

func runModel(t *testing.T, from func(open func() *redisstore.Store) closing) {
	t.Helper()
	storetest.RunModel(t, func(t *testing.T) storetest.Pair {
		t.Helper()
		clock, namespace := storetest.NewClock(), redistest.NamespaceUntil(t, redistest.URL(t))
		ledger := redistest.NewLedger(clock.Now)
		auditor := audit.New(redistest.Client(t, redistest.URL(t)), namespace).With(ledger)
		open := func() *redisstore.Store {
			s, err := redisstore.Open(redisstore.Options{URL: redistest.URL(t), Namespace: namespace, Now: clock.Now, ReadTimeout: redistest.Patience})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		subject := from(open)
		t.Cleanup(func() { _ = subject.Close() })
		return storetest.Pair{
			Reference: memstore.New(memstore.WithClock(clock.Now)),
			Subject:   ledger.Keep(subject),
			Advance:   clock.Advance,
			IsApart:   strings.HasPrefix(redistest.URL(t), "redis+cluster://"),
			Restart: func() semantics.Store {
				if err := subject.Close(); err != nil {
					t.Error(err)
				}
				subject = from(open)
				return ledger.Keep(subject)
			},
			Audit: func(path string) error {
				return errors.Join(auditor.HoldRequests(t.Context(), path), auditor.Audit(t.Context(), path))
			},
		}
	})
}
