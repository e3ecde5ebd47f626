package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// The server of a partition forgets that expired messages become dead letters, which was acknowledged. The sweeper is
// the first that comes there, and does not remove them.
func TestDUR_4_ASweepBehindAForgottenUpdate(t *testing.T) {
	t.Parallel()
	f := newOneForgets(t)
	ctx := t.Context()
	plain, orders := f.name("plain", true), f.name("orders", false)
	must(t, makeQueue(t, f.changesBelow, plain))
	f.create(semantics.QueueKind, orders)
	short, m := time.Millisecond, f.message("short")
	m.TimeToLive = &short
	_, err := f.knows.Send(ctx, orders, []*semantics.Message{m})
	must(t, err)
	forget := f.cluster.Forgetting(t, "sb:{"+f.namespace+"/"+plain+"}:entity")
	option := "deadLetteringOnMessageExpiration"
	_, err = f.changes.UpdateEntity(
		ctx, semantics.QueueKind, orders, semantics.Options{DeadLetteringOnMessageExpiration: true}, []string{option},
	)
	must(t, err)
	forget()
	f.awaitServer(plain)

	raw := redistest.Client(t, f.cluster.URL)
	log := "sb:{" + f.namespace + "/" + f.knows.Path(orders, 0) + "}:log"
	await(t, func() bool {
		must(t, f.knowsBelow.SweepOnce(ctx, f.knower))
		length, err := raw.XLen(ctx, log).Result()
		must(t, err)
		return length == 0
	})
	letters, err := f.changer.Peek(ctx, semantics.Source{Path: orders, SubQueue: semantics.DeadLetterQueue}, 1, 10, semantics.ShowAll)
	f.wantIDs("the dead-letter queue", letters, err, "short")
}
