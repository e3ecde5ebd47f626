package redisstore_test

import (
	"context"
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
	bare := bareQueue{l.raw, bareStream, bareGroup}
	if err := l.raw.XGroupCreate(ctx, bareStream, bareGroup, "0").Err(); err != nil && !redis.HasErrorPrefix(err, "BUSYGROUP") {
		l.b.Fatal(err)
	}
	send := share(l.b, messages, movedBatch, func(n int) (int, error) { return n, bare.send(ctx, n, content) })
	take := share(l.b, messages, movedBatch, func(n int) (int, error) {
		ids, err := bare.receive(ctx, n)
		if err != nil || len(ids) == 0 {
			return n, err
		}
		return len(ids), bare.complete(ctx, ids)
	})
	return [2]float64{send, take}
}

// bareQueue is a stream with a consumer group, without Sidebus.
type bareQueue struct {
	client        *redis.Client
	stream, group string
}

func (q bareQueue) send(ctx context.Context, n int, body []byte) error {
	_, err := q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for range n {
			p.XAdd(ctx, &redis.XAddArgs{Stream: q.stream, Values: []any{"m", body}})
		}
		return nil
	})
	return err
}

// receive returns the ids of up to n messages, none if there are none.
func (q bareQueue) receive(ctx context.Context, n int) ([]string, error) {
	got, err := q.client.XReadGroup(ctx, &redis.XReadGroupArgs{
		Group: q.group, Consumer: "c", Streams: []string{q.stream, ">"}, Count: int64(n), Block: -1,
	}).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(got[0].Messages))
	for i, m := range got[0].Messages {
		ids[i] = m.ID
	}
	return ids, nil
}

func (q bareQueue) complete(ctx context.Context, ids []string) error {
	_, err := q.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.XAck(ctx, q.stream, q.group, ids...)
		p.XDel(ctx, q.stream, ids...)
		return nil
	})
	return err
}

// empty removes all that the Redis has.
func (l *backlog) empty() { must(l.b, l.raw.FlushAll(l.b.Context()).Err()) }
