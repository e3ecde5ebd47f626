package store

import (
	"fmt"
	"time"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/embedded"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/payloadkeys"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics/sealed"
)

// Examiner is the store that --store names, for a process that reads it beside the sidecars.
type Examiner struct {
	*redisstore.Store

	What  string // for people, without secrets
	Close func()
}

// OpenExaminer connects to the store that --store names. An embedded store must be running: its sidecar has started it.
// It does no network beyond the socket of that one. observe, which may be nil, is called after each script.
func OpenExaminer(
	s *settings.StoreSettings, observe func(script, status string, took time.Duration),
) (*Examiner, error) {
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
	options := redisOptions(s, address)
	options.Observe = observe
	if s.PayloadKeysFile != "" {
		keys, err := payloadkeys.Read(s.PayloadKeysFile)
		if err != nil {
			release()
			return nil, err
		}
		options.PayloadKeys = func() *sealed.Keys { return keys }
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
