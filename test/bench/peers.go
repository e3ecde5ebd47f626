package main

import (
	"context"
	"errors"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	bodySize = 1024
	window   = 1000 // messages under way at a time, for who can have several
	callers  = 64   // of who calls for each message
)

// natsJetStream is one node with a file store and its default sync, asynchronous publishing and a pull of 500.
var natsJetStream = carrier{
	name: "nats-jetstream",
	open: func(ctx context.Context, dir string) (*opened, error) {
		s, err := server.NewServer(
			&server.Options{JetStream: true, StoreDir: dir, Port: -1, NoLog: true, NoSigs: true, DontListen: false},
		)
		if err != nil {
			return nil, err
		}
		go s.Start()
		if !s.ReadyForConnections(10 * time.Second) {
			return nil, errors.New("it does not start")
		}
		conn, err := nats.Connect(s.ClientURL())
		if err != nil {
			return nil, err
		}
		stop := func() { conn.Close(); s.Shutdown(); s.WaitForShutdown() }
		js, err := jetstream.New(conn, jetstream.WithPublishAsyncMaxPending(window))
		if err != nil {
			return nil, err
		}
		stream, err := js.CreateStream(
			ctx,
			jetstream.StreamConfig{Name: "bench", Subjects: []string{"bench"}, Retention: jetstream.WorkQueuePolicy},
		)
		if err != nil {
			return nil, err
		}
		consumer, err := stream.CreateConsumer(
			ctx,
			jetstream.ConsumerConfig{Durable: "bench", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: window},
		)
		if err != nil {
			return nil, err
		}
		carry := func(ctx context.Context, messages int) error {
			done := make(chan error, 1)
			var got atomic.Int64
			consuming, err := consumer.Consume(func(m jetstream.Msg) {
				if got.Add(1) == int64(messages) {
					done <- m.DoubleAck(ctx) // all earlier ones are on the same connection
					return
				}
				if err := m.Ack(); err != nil {
					done <- err
				}
			}, jetstream.PullMaxMessages(500))
			if err != nil {
				return err
			}
			defer consuming.Stop()
			body := make([]byte, bodySize)
			for range messages {
				if _, err := js.PublishAsync("bench", body, jetstream.WithStallWait(time.Minute)); err != nil {
					return err
				}
			}
			<-js.PublishAsyncComplete()
			return <-done
		}
		// The server is in this process.
		return &opened{carry, map[string]func() time.Duration{"client+server": ownCPU}, stop}, nil
	},
}

// asynqTasks are tasks on a Redis of their own with the same settings as that of Sidebus.
var asynqTasks = carrier{
	name:  "asynq",
	share: 5,
	open: func(ctx context.Context, dir string) (*opened, error) {
		address, redisPID, stopRedis, err := startRedis(ctx, dir)
		if err != nil {
			return nil, err
		}
		redis := asynq.RedisClientOpt{Network: "unix", Addr: address, PoolSize: callers}
		client := asynq.NewClient(redis)
		carry := func(_ context.Context, messages int) error {
			done := make(chan struct{})
			var got atomic.Int64
			s := asynq.NewServer(
				redis,
				asynq.Config{
					Concurrency:       callers,
					LogLevel:          asynq.FatalLevel,
					TaskCheckInterval: 10 * time.Millisecond,
				},
			)
			err := s.Start(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
				if got.Add(1) == int64(messages) {
					close(done)
				}
				return nil
			}))
			if err != nil {
				return err
			}
			var failed atomic.Pointer[error]
			var left atomic.Int64
			left.Store(int64(messages))
			var work sync.WaitGroup
			for range callers {
				work.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := client.Enqueue(asynq.NewTask("bench", make([]byte, bodySize))); err != nil {
							failed.Store(&err)
							return
						}
					}
				})
			}
			work.Wait()
			if err := failed.Load(); err != nil {
				return *err
			}
			<-done
			s.Shutdown()
			return nil
		}
		return &opened{carry, map[string]func() time.Duration{
			"client": ownCPU,
			"redis":  func() time.Duration { return cpuOf(redisPID) },
		}, func() { _ = client.Close(); stopRedis() }}, nil
	},
}

// startRedis runs a redis-server in dir, as Sidebus recommends it, and returns its socket and process.
func startRedis(ctx context.Context, dir string) (
	socket string, pid int, stop func(), err error,
) {
	socket = filepath.Join(dir, "redis.sock")
	command := exec.CommandContext(
		ctx, "redis-server", "--port", "0", "--unixsocket", socket, "--dir", dir, "--save", "", "--appendonly", "yes",
		"--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0", "--maxmemory-policy", "noeviction",
		"--stream-node-max-bytes", "16384", "--loglevel", "warning",
	)
	if err := command.Start(); err != nil {
		return "", 0, nil, err
	}
	stop = func() { _ = command.Process.Kill(); _ = command.Wait() }
	for range 1000 {
		if exec.CommandContext(ctx, "redis-cli", "-s", socket, "ping").Run() == nil {
			return socket, command.Process.Pid, stop, nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	return "", 0, nil, errors.New("redis-server does not answer")
}
