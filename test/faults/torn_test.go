package faults

import (
	"context"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// tearAll tears what a Redis has written at some bytes. What is left holds whole scripts only.
func tearAll(t *testing.T, folder, namespace string) {
	t.Helper()
	written := readAll(t, folder)
	rng := rand.New(rand.NewPCG(*firstSeed, 4000))
	for range *cuts {
		tear(t, written, rng, namespace)
	}
}

// file is a file of a folder.
type file struct {
	name string
	text []byte
}

func readAll(t *testing.T, folder string) (all []file) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(folder, path)
		all = append(all, file{name, text})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// lastPart returns what Redis writes to: a rewrite of the append-only file begins another part, and only the last one can
// be torn.
func lastPart(t *testing.T, written []file) (last file) {
	t.Helper()
	latest := -1
	for _, f := range written {
		name, isPart := strings.CutSuffix(f.name, ".incr.aof")
		if !isPart {
			continue
		}
		number, err := strconv.Atoi(name[strings.LastIndexByte(name, '.')+1:])
		if err != nil {
			t.Fatal(err)
		}
		if number > latest {
			latest, last = number, f
		}
	}
	if latest < 0 {
		t.Fatal("the server has not written an append-only file")
	}
	return last
}

// tear starts a Redis with what was written before some byte, and sidecars on it, until all that is kept fits together
// and everything that is there was received.
func tear(t *testing.T, written []file, rng *rand.Rand, namespace string) {
	t.Helper()
	folder := t.TempDir()
	last := lastPart(t, written)
	at := rng.IntN(len(last.text) + 1)
	for _, f := range written {
		text := f.text
		if f.name == last.name {
			text = text[:at]
		}
		path := filepath.Join(folder, f.name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, text, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	server := redistest.Start(t, "--dir", folder)
	defer server.Stop()
	auditor := audit.New(redistest.Client(t, server.URL), namespace)
	store := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace})
	spread := partitioned.New(store)
	b := broker.New(spread, broker.WithRules(filter.Compile))
	defer b.Close()
	ctx, stop := context.WithCancel(t.Context())
	var sweeping sync.WaitGroup
	sweeping.Go(func() { store.Sweep(ctx, b) })
	defer sweeping.Wait()
	defer stop()
	sidecartest.Eventually(t, "all that is kept fits together", func() bool {
		return auditor.AuditAll(ctx) == nil
	})
	for _, path := range []string{"orders", "spread", semantics.SubscriptionPath("news", "a")} {
		counts, err := spread.Runtime(ctx, semantics.QueueKind, path)
		if semantics.CodeOf(err) == semantics.EntityNotFound {
			continue // it was not there yet
		}
		sidecartest.Eventually(t, "everything is received", func() bool {
			return err == nil && emptied(ctx, t, spread, b, path)
		})
		t.Logf("torn at byte %d: %d messages in %s", at, counts.Active, path)
	}
}

// emptied receives and completes what is there, and reports whether nothing is left.
func emptied(ctx context.Context, t *testing.T, store semantics.Store, b *broker.Broker, path string) bool {
	t.Helper()
	source := semantics.Source{Path: path}
	got, err := b.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 200})
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Messages) > 0 {
		err = errors.Join(got.Delivered(ctx), second(b.Complete(ctx, source, got.Tokens())))
	}
	counts, failed := store.Runtime(ctx, semantics.QueueKind, path)
	if err = errors.Join(err, failed); err != nil {
		t.Fatal(err)
	}
	return counts.Active == 0
}

func second[T any](_ T, err error) error { return err }
