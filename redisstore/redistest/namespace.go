package redistest

import (
	"context"
	"encoding/hex"
	"math/rand/v2"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/audit"
)

// Namespace returns a namespace no other test has.
func Namespace() string {
	var b [8]byte
	for i := range b {
		b[i] = byte(rand.Uint32())
	}
	return "test-" + hex.EncodeToString(b[:])
}

// ending is a test, or one run of a model.
type ending interface{ Cleanup(do func()) }

// NamespaceUntil returns a namespace no other test has, on the servers of a URL, which is emptied when the test ends:
// an audit asks the server for all keys of an entity, which takes the longer the more keys there are of other tests.
// What the test cleans up after this call still finds them.
func NamespaceUntil(t ending, url string) string {
	namespace := Namespace()
	t.Cleanup(func() { empty(url, namespace) })
	return namespace
}

// empty removes the keys of a namespace, unless its servers are gone.
func empty(url, namespace string) {
	client, err := connect(url)
	if err != nil {
		return
	}
	defer client.Close() //nolint:errcheck // nothing depends on it any more
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	defer cancel()
	remove := func(ctx context.Context, client *redis.Client) error {
		_, err := client.Pipelined(ctx, func(p redis.Pipeliner) error {
			found := client.Scan(ctx, 0, audit.KeysOf("sb:{"+namespace), 1000).Iterator()
			for found.Next(ctx) {
				p.Unlink(ctx, found.Val())
			}
			return found.Err()
		})
		return err
	}
	switch c := client.(type) {
	case *redis.ClusterClient:
		_ = c.ForEachMaster(ctx, remove)
	case *redis.Client:
		_ = remove(ctx, c)
	}
}
