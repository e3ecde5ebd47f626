package redistest

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/semantics"
)

// EntityPast is what was kept of one entity, a topic with its subscriptions, at one instant.
type EntityPast struct {
	client *redis.Client
	tag    string
	dumps  []any // names and values by turns
}

var (
	dumpAll = redis.NewScript(`local dumps = {}
for _, key in ipairs(redis.call("KEYS", ARGV[1])) do
  dumps[#dumps + 1] = key
  dumps[#dumps + 1] = redis.call("DUMP", key)
end
return dumps`)
	restoreAll = redis.NewScript(`for _, key in ipairs(redis.call("KEYS", ARGV[1])) do
  redis.call("DEL", key)
end
for i = 2, #ARGV, 2 do
  redis.call("RESTORE", ARGV[i], 0, ARGV[i + 1])
end
return 1`)
)

// RememberEntity keeps all that there is of one entity now, so that it alone can be brought back. It is one step, while
// others go on.
func RememberEntity(t testing.TB, client *redis.Client, namespace, path string) *EntityPast {
	t.Helper()
	p := &EntityPast{client: client, tag: "sb:{" + namespace + "/" + semantics.Fold(path) + "}:"}
	dumps, err := dumpAll.Run(context.WithoutCancel(t.Context()), client, nil, audit.KeysOf(p.tag)).Slice()
	if err != nil {
		t.Fatalf("dump %s: %v", path, err)
	}
	p.dumps = dumps
	return p
}

// Return lets the entity forget all that has happened to it since, in one step. Other entities remember it, as when
// they are on another shard of a cluster. No connection is lost by it.
func (p *EntityPast) Return(t testing.TB) {
	t.Helper()
	args := append([]any{audit.KeysOf(p.tag)}, p.dumps...)
	if err := restoreAll.Run(context.WithoutCancel(t.Context()), p.client, nil, args...).Err(); err != nil {
		t.Fatalf("return to the past: %v", err)
	}
}
