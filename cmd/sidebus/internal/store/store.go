// Package store opens the store that --store names.
package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/embedded"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/payloadkeys"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// Opened is the store a sidecar serves from and what must end with it.
type Opened struct {
	semantics.Store
	Checker semantics.Checker
	Sharer  semantics.Sharer // nil: no other sidecar uses the store
	Sweep   sweep            // what to run beside serving, until its context ends
	What    string           // for people, without secrets
	Stop    func()           // after the last call
	StopNow func()           // just before the process exits at once
}

// sweep is the method of a semantics.Sweeper.
type sweep = func(ctx context.Context, upkeep semantics.Upkeep)

// Observer has the callbacks of the store.
type Observer struct {
	Script       func(script, status string, took time.Duration)
	DeadLettered func(entity, cause string, numbers []int64)
	Removed      func(kind semantics.Kind, entity string)
	UpkeepFailed func(entity string, err error)
	Orphaned     func(entity string, positions []int64)
}

// Open makes the store that --store names. For a Redis elsewhere it does no network: the proxy checks it and
// waits for it. A private server is started and answers when Open returns.
func Open(ctx context.Context, s *settings.Settings, observe Observer, logger *slog.Logger) (*Opened, error) {
	password, err := s.RedisPassword()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Store == settings.Memory:
		logger.Warn(
			"messages are kept in memory only and are lost when this process ends; nothing survives", "store",
			settings.Memory,
		)
		if s.PayloadKeysFile != "" {
			logger.Warn("--payload-keys-file has no effect: nothing is written outside of this process", "store", settings.Memory)
		}
		memory := memstore.New(memstore.WithRemoved(observe.Removed))
		return &Opened{
			Store: partitioned.New(memory), Checker: memory, What: "memory, nothing survives", Sweep: memory.Sweep, Stop: func() {},
			StopNow: func() {},
		}, nil
	case s.Store == settings.Embedded:
		return openEmbedded(ctx, s, observe, logger)
	}
	address, err := redisURL(s.Store, password)
	if err != nil {
		return nil, err
	}
	return openRedis(s, address, settings.MaskStore(s.Store), observe, logger)
}

func openRedis(
	s *settings.Settings, address, what string, observe Observer, logger *slog.Logger,
) (*Opened, error) {
	options, err := redisOptions(&s.StoreSettings, address, observe, s.TTLSweep == settings.SweepLazy, logger)
	if err != nil {
		return nil, err
	}
	options.MaxEntities = s.MaxEntities
	store, err := redisstore.Open(options)
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return &Opened{
		Store: partitioned.New(store), Checker: store, Sharer: store, What: what, Sweep: store.Sweep,
		Stop:    func() { _ = store.Close() }, // what it may complain about is gone with it
		StopNow: func() {},
	}, nil
}

func redisOptions(
	s *settings.StoreSettings, address string, observe Observer, isLazy bool, logger *slog.Logger,
) (redisstore.Options, error) {
	level, _ := semantics.ParseDurability(s.Durability) // checked before
	keys, err := payloadkeys.Open(s.PayloadKeysFile, logger)
	return redisstore.Options{
		URL: address, Namespace: s.Namespace, AllowEviction: s.RedisAllowEviction,
		DialTimeout: s.RedisDialTimeout, ReadTimeout: s.RedisReadTimeout, WriteTimeout: s.RedisWriteTimeout,
		PoolSize: s.RedisPoolSize, TLSCAFile: s.RedisTLSCAFile, TLSCertFile: s.RedisTLSCertFile,
		TLSKeyFile: s.RedisTLSKeyFile, TLSInsecureSkipVerify: s.RedisTLSInsecureSkipVer,
		Durability: redisstore.Durability{Level: level, Replicas: s.DurabilityReps, Timeout: s.DurabilityWait},
		Observe:    observe.Script, DeadLettered: observe.DeadLettered, Removed: observe.Removed,
		UpkeepFailed: observe.UpkeepFailed, Orphaned: observe.Orphaned,
		LazyExpiry: isLazy, PayloadKeys: keys,
	}, err
}

func openEmbedded(ctx context.Context, s *settings.Settings, observe Observer, logger *slog.Logger) (*Opened, error) {
	var more []string
	if s.Durability == semantics.DurabilityDisk.String() {
		more = []string{"--appendfsync", "always"}
	}
	server, err := embedded.Start(ctx, s.DataDir, logger, more...)
	if errors.Is(err, embedded.ErrNoServer) {
		return nil, fmt.Errorf(
			"--store embedded: %w; install the package redis-server (Debian, Ubuntu), redis (Fedora, Alpine, brew) or valkey; "+
				"or set --store or SIDEBUS_STORE to the URL of a Redis, such as redis://redis:6379 in a container; "+
				"or use --store memory, which loses all messages when Sidebus stops",
			err,
		)
	}
	if err != nil {
		return nil, fmt.Errorf("--store embedded: %w", err)
	}
	what := fmt.Sprintf("embedded, %s with data in %s", server.Program(), server.Dir())
	store, err := openRedis(s, server.URL(), what, observe, logger)
	if err != nil {
		server.Stop()
		return nil, err
	}
	closeClient := store.Stop
	store.Stop = func() { closeClient(); server.Stop() }
	store.StopNow = server.Abandon
	return store, nil
}
