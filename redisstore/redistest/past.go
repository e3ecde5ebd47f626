package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Past is what a namespace held at one instant.
type Past struct {
	client    *redis.Client
	namespace string
	dumps     map[string]string
}

// Remember keeps all that a namespace holds now, so that it can be brought back. It is not a snapshot of one instant,
// so no client may change the namespace meanwhile.
func Remember(t testing.TB, client *redis.Client, namespace string) *Past {
	t.Helper()
	p := &Past{client: client, namespace: namespace, dumps: map[string]string{}}
	for _, key := range p.keys(t) {
		dump, err := client.Dump(t.Context(), key).Result()
		if err != nil {
			t.Fatalf("dump %s: %v", key, err)
		}
		p.dumps[key] = dump
	}
	return p
}

// Return makes Redis forget all that has happened in the namespace since, in one step, as if it had come back older
// than it was. No client loses its connection. Other namespaces stay as they are.
func (p *Past) Return(t testing.TB) {
	t.Helper()
	keys := p.keys(t)
	_, err := p.client.TxPipelined(context.Background(), func(tx redis.Pipeliner) error {
		for _, key := range keys {
			tx.Unlink(t.Context(), key)
		}
		for key, dump := range p.dumps {
			tx.RestoreReplace(t.Context(), key, 0, dump)
		}
		return nil
	})
	if err != nil {
		t.Fatalf("return to the past: %v", err)
	}
}

func (p *Past) keys(t testing.TB) []string {
	t.Helper()
	var keys []string
	for _, pattern := range []string{"sb:{" + p.namespace + "}:*", "sb:{" + p.namespace + "/*"} {
		for found := p.client.Scan(t.Context(), 0, pattern, 1000).Iterator(); found.Next(t.Context()); {
			keys = append(keys, found.Val())
		}
	}
	return keys
}
