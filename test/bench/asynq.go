package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sidebus/sidebus/test/figures"
)

// asynqTasks are tasks on a Redis with the settings of Sidebus'.
func asynqTasks(ctx context.Context, dir string) (*opened, error) {
	server, err := startRedis(ctx, dir)
	if err != nil {
		return nil, err
	}
	redis := asynq.RedisClientOpt{Network: "unix", Addr: server.socket, PoolSize: callers}
	client := asynq.NewClient(redis)
	carry := func(_ context.Context, messages int) error {
		done := make(chan struct{})
		var got atomic.Int64
		workers := asynq.NewServer(
			redis,
			asynq.Config{Concurrency: callers, LogLevel: asynq.FatalLevel, TaskCheckInterval: 10 * time.Millisecond},
		)
		err := workers.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			if got.Add(1) == int64(messages) {
				close(done)
			}
			return nil
		}))
		if err != nil {
			return err
		}
		defer workers.Shutdown()
		err = fromCallers(messages, func(more func() bool) error {
			for more() {
				if _, err := client.Enqueue(asynq.NewTask("bench", make([]byte, bodySize))); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		<-done
		return nil
	}
	return &opened{
		round:    carrying(processes{"client": figures.OwnCPU, "redis": server.cpu}, carry),
		versions: map[string]string{"asynq": moduleVersion("github.com/hibiken/asynq"), "redis": redisVersion(ctx)},
		settings: map[string]string{
			"client": "64 callers, one task a call; 64 workers; poll every 10 ms", "redis": redisSettings,
		},
		stop: func() { _ = client.Close(); server.stop() },
	}, nil
}
