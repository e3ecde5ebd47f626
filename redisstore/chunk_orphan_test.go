package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// As TestOrphansOfAQueue, whose messages share no chunks.
func TestOrphansOfChunks(t *testing.T) {
	t.Parallel()
	s := openTransfers(t)
	s.make("orders", rich)
	ctx := t.Context()
	s.send(t, messagesOf(16, semantics.Message{Body: []byte("body")})...)
	batch, err := s.Receive(ctx, orders, 9, semantics.RegisterNever)
	must(t, err)
	tokens := tokensOf(batch.Messages)
	must(t, second(s.Complete(ctx, orders, tokens[:2])))
	must(t, second(s.Abandon(ctx, orders, tokens[2:4], semantics.AbandonOptions{})))
	must(t, second(s.Defer(ctx, orders, tokens[4:6], nil)))
	must(t, second(s.DeadLetter(ctx, orders, tokens[6:7], semantics.DeadLetterTexts{}, nil)))
	s.send(t, messagesOf(8, semantics.Message{})...)
	s.send(t, messagesOf(1, semantics.Message{})...)
	must(t, second(s.DeleteByNumber(ctx, orders, []int64{12})))
	var numbers []int64
	for n := range int64(25) {
		numbers = append(numbers, n+1)
	}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	breakAll(t, s.swept, s.clock, func(u *user) {
		ctx := u.t.Context()
		u.look(orders, numbers)
		u.ok("runtime", second(u.Runtime(ctx, semantics.QueueKind, "orders")))
		for range 3 {
			u.sweep()
			u.clock.Advance(3 * time.Minute)
		}
		u.worksOn(orders, &semantics.Message{MessageID: "new"})
		u.drain(dead)
		u.send(u.t, messagesOf(3, semantics.Message{})...)
		u.clock.Advance(time.Hour)
		u.sweep()
		u.purge(orders)
		u.purge(dead)
		u.ok("delete", u.DeleteEntity(ctx, semantics.QueueKind, "orders"))
	})
}
