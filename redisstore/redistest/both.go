package redistest

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// OnBoth plays a scenario over the store in memory and over a real Redis. There audit compares all that is kept of an
// entity, and what is locked with what was handed out; in memory there is nothing to look into.
func OnBoth(t *testing.T, scenario func(t *testing.T, store semantics.Store, audit func(path string) error)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		scenario(t, memstore.New(), func(string) error { return nil })
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		namespace, ledger := NamespaceUntil(t, URL(t)), NewLedger(time.Now)
		client := openClient(t)
		auditor := audit.New(client, namespace).With(ledger)
		scenario(t, ledger.Keep(Open(t, redisstore.Options{Namespace: namespace})), func(path string) error {
			return auditor.Audit(context.WithoutCancel(t.Context()), path)
		})
	})
}

func openClient(t *testing.T) *redis.Client {
	t.Helper()
	options := ClientOptions(t, URL(t))
	client := redis.NewClient(options)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
