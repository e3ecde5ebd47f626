package store

import (
	"fmt"
	"log/slog"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/embedded"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/redisstore"
)

// Examiner is the store that --store names, for a process beside the sidecars.
type Examiner struct {
	*redisstore.Store

	What  string // for people, without secrets
	Close func()
}

// OpenExaminer connects to the store that --store names. An embedded store must be running: its sidecar has started it.
// It does no network beyond the socket of that one.
func OpenExaminer(s *settings.StoreSettings, observe Observer, isLazy bool, logger *slog.Logger) (*Examiner, error) {
	password, err := s.RedisPassword()
	if err != nil {
		return nil, err
	}
	address, what, release := "", settings.MaskStore(s.Store), func() {}
	switch s.Store {
	case settings.Memory:
		return nil, cli.Misuse("--store memory is inside of its sidecar; no other process can read it")
	case settings.Embedded:
		if address, release, err = embedded.Running(s.DataDir); err != nil {
			return nil, fmt.Errorf("--store embedded: %w", err)
		}
		what = "embedded, with data in " + s.DataDir
	default:
		if address, err = redisURL(s.Store, password); err != nil {
			return nil, err
		}
	}
	options, err := redisOptions(s, address, observe, isLazy, logger)
	if err != nil {
		release()
		return nil, err
	}
	store, err := redisstore.Open(options)
	if err != nil {
		release()
		return nil, fmt.Errorf("--store: %w", err)
	}
	end := func() {
		_ = store.Close() // what it may complain about is gone with it
		release()
	}
	return &Examiner{Store: store, What: what, Close: end}, nil
}
