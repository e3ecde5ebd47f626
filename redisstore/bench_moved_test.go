package redisstore_test

import (
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

const (
	movedBatch = 10
	bareStream = "bare"
	bareGroup  = "g"
	bareRounds = 3
)

// move sends messages and then receives and completes as many, and returns the seconds of each for a message.
func (l *backlog) move(messages int) [2]float64 {
	content := make([]byte, benchBody)
	send := share(l.b, messages, movedBatch, func(n int) (int, error) {
		some := make([]*semantics.Message, n)
		for i := range some {
			some[i] = &semantics.Message{MessageID: "12345678-1234-1234-1234-123456789012", Body: content}
		}
		_, err := l.store.Send(l.b.Context(), "orders", some)
		return n, err
	})
	return [2]float64{send, share(l.b, messages, movedBatch, l.consume)}
}

// moveBare does the same with a bare stream and a consumer group.
func (l *backlog) moveBare(messages int) [2]float64 {
	ctx, content := l.b.Context(), make([]byte, benchBody)
	if err := l.raw.XGroupCreate(ctx, bareStream, bareGroup, "0").Err(); err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		l.b.Fatal(err)
	}
	send := share(l.b, messages, movedBatch, func(n int) (int, error) {
		_, err := l.raw.Pipelined(ctx, func(p redis.Pipeliner) error {
			for range n {
				p.XAdd(ctx, &redis.XAddArgs{Stream: bareStream, Values: []any{"m", content}})
			}
			return nil
		})
		return n, err
	})
	take := share(l.b, messages, movedBatch, func(n int) (int, error) {
		got, err := l.raw.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: bareGroup, Consumer: "c", Streams: []string{bareStream, ">"}, Count: int64(n), Block: -1,
		}).Result()
		if errors.Is(err, redis.Nil) {
			return n, nil
		}
		if err != nil {
			return 0, err
		}
		ids := make([]string, len(got[0].Messages))
		for i, m := range got[0].Messages {
			ids[i] = m.ID
		}
		_, err = l.raw.Pipelined(ctx, func(p redis.Pipeliner) error {
			p.XAck(ctx, bareStream, bareGroup, ids...)
			p.XDel(ctx, bareStream, ids...)
			return nil
		})
		return len(ids), err
	})
	return [2]float64{send, take}
}

// empty removes all that the Redis has.
func (l *backlog) empty() { must(l.b, l.raw.FlushAll(l.b.Context()).Err()) }
