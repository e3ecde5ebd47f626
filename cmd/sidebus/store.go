package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/embedded"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// Values of --store that are no URL.
const (
	storeEmbedded = "embedded"
	storeMemory   = "memory"
)

// Values of --ttl-sweep.
const (
	sweepEager = "eager"
	sweepLazy  = "lazy"
)

// openedStore is the store a sidecar serves from and what must end with it.
type openedStore struct {
	semantics.Store
	checker semantics.Checker
	sweep   sweep  // what to run beside serving, until its context ends
	what    string // for people, without secrets
	close   func() // after the last call
	abandon func() // just before the process exits at once
}

// sweep is the method of a semantics.Sweeper.
type sweep = func(ctx context.Context, upkeep semantics.Upkeep)

// observer is what the store tells of its work.
type observer struct {
	script       func(script, status string, took time.Duration)
	deadLettered func(entity, cause string, numbers []int64)
	removed      func(kind semantics.Kind, entity string)
}

// openStore makes the store that --store names. For a Redis elsewhere it does no network: the proxy checks it and
// waits for it. A private server is started and answers when openStore returns.
func openStore(ctx context.Context, s *settings, observe observer, logger *slog.Logger) (*openedStore, error) {
	password, err := s.redisPassword()
	if err != nil {
		return nil, err
	}
	switch {
	case s.Store == storeMemory:
		logger.Warn("messages are kept in memory only: nothing survives the end of this process", "store", storeMemory)
		memory := memstore.New(memstore.WithRemoved(observe.removed))
		return &openedStore{
			Store: memory, checker: memory, what: "memory, nothing survives", sweep: memory.Sweep, close: func() {}, abandon: func() {},
		}, nil
	case s.Store == storeEmbedded:
		return openEmbedded(ctx, s, observe, logger)
	}
	address, err := redisURL(s.Store, password)
	if err != nil {
		return nil, err
	}
	return openRedis(s, address, maskStore(s.Store), observe)
}

func openRedis(s *settings, address, what string, observe observer) (*openedStore, error) {
	store, err := redisstore.Open(redisstore.Options{
		URL: address, Namespace: s.Namespace, AllowEviction: s.RedisAllowEviction,
		DialTimeout: s.RedisDialTimeout, ReadTimeout: s.RedisReadTimeout, WriteTimeout: s.RedisWriteTimeout,
		PoolSize: s.RedisPoolSize, TLSCAFile: s.RedisTLSCAFile, TLSCertFile: s.RedisTLSCertFile,
		TLSKeyFile: s.RedisTLSKeyFile, TLSInsecureSkipVerify: s.RedisTLSInsecureSkipVer,
		Observe: observe.script, DeadLettered: observe.deadLettered, Removed: observe.removed,
		LazyExpiry: s.TTLSweep == sweepLazy, MaxEntities: s.MaxEntities,
	})
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return &openedStore{
		Store: store, checker: store, what: what, sweep: store.Sweep,
		close:   func() { _ = store.Close() }, // what it may complain about is gone with it
		abandon: func() {},
	}, nil
}

func openEmbedded(ctx context.Context, s *settings, observe observer, logger *slog.Logger) (*openedStore, error) {
	server, err := embedded.Start(ctx, s.DataDir, logger)
	if errors.Is(err, embedded.ErrNoServer) {
		return nil, fmt.Errorf("--store embedded: %w; install the package redis-server (Debian, Ubuntu), redis (Fedora, Alpine, brew) or valkey, "+
			"point --store at a Redis, or use --store memory, where nothing survives", err)
	}
	if err != nil {
		return nil, fmt.Errorf("--store embedded: %w", err)
	}
	what := fmt.Sprintf("embedded, %s with data in %s", server.Program(), server.Dir())
	store, err := openRedis(s, server.URL(), what, observe)
	if err != nil {
		server.Stop()
		return nil, err
	}
	closeClient := store.close
	store.close = func() { closeClient(); server.Stop() }
	store.abandon = server.Abandon
	return store, nil
}

// redisURL checks the kind of URL and puts the separate password into it. Its errors never repeat the URL, which may
// hold a password.
func redisURL(store, password string) (string, error) {
	scheme, _, isURL := strings.Cut(store, "://")
	switch {
	case !isURL:
		return "", bad("store", "is %q, must be a redis://, rediss:// or unix:// URL, embedded or memory", store)
	case scheme == "redis+sentinel" || scheme == "redis+cluster":
		return "", bad("store", "names %s://, but this version serves standalone Redis only; use redis://, rediss:// or unix://", scheme)
	case scheme != "redis" && scheme != "rediss" && scheme != "unix":
		return "", bad("store", "has the scheme %s://, must be redis://, rediss:// or unix://", scheme)
	}
	parsed, err := url.Parse(store)
	if err != nil || scheme == "unix" && parsed.Path == "" || scheme != "unix" && parsed.Host == "" {
		return "", bad("store", "is not a valid %s:// URL; special characters in user and password must be percent-encoded", scheme)
	}
	if password == "" {
		return store, nil
	}
	user := ""
	if parsed.User != nil {
		if _, has := parsed.User.Password(); has {
			return "", fmt.Errorf("--store has a password, and %s or --redis-password-file gives another; use one", passwordEnv)
		}
		user = parsed.User.Username()
	}
	parsed.User = url.UserPassword(user, password)
	return parsed.String(), nil
}
