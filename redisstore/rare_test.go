package redisstore

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// shortWays are the functions of scripts that serve the common case, by script. Each returns nil or false if the case is
// another one, and the script goes on.
var shortWays = map[string][]string{
	"send": {"append_chunks", "append_in_sessions"}, "receive": {"take_run"}, "complete": {"complete_runs"},
	"complete_and_receive": {"complete_runs"},
}

// rareScripts are the scripts with short ways, which they never take.
var rareScripts = sync.OnceValue(func() map[string]script {
	all, err := lua.Scripts()
	if err != nil {
		panic(err)
	}
	rare := map[string]script{}
	for name, ways := range shortWays {
		copied := *all[name]
		for _, way := range ways {
			before, after, found := strings.Cut(copied.Text, "\nlocal function "+way+"(")
			parameters, body, _ := strings.Cut(after, "\n")
			if !found {
				panic(name + " has no function " + way)
			}
			copied.Text = before + "\nlocal function " + way + "(" + parameters + "\n  do return nil end\n" + body
		}
		rare[name] = script{Script: &copied, call: redis.NewScript(copied.Text)}
	}
	return rare
})

// TakeNoShortWays makes every call of the store take the long way through its script.
func (s *Store) TakeNoShortWays() {
	all := map[string]script{}
	for name, op := range s.scripts {
		all[name] = op
	}
	for name, op := range rareScripts() {
		all[name] = op
	}
	s.scripts = all
}

// MixedStore is a Store of which every third call of Send, Receive, Complete and CompleteAndReceive takes the long way.
type MixedStore struct {
	partitioned.Below

	rare *Store

	mu    sync.Mutex
	calls int
}

// Mix makes a MixedStore of two stores over the same data, of which the second one takes no short ways.
func Mix(s, rare *Store) *MixedStore {
	rare.TakeNoShortWays()
	return &MixedStore{Below: s, rare: rare}
}

func (m *MixedStore) next() semantics.Store {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.calls++
	if m.calls%3 == 0 {
		return m.rare
	}
	return m.Below
}

// Receive implements semantics.Receiver.
func (m *MixedStore) Receive(
	ctx context.Context, source semantics.Source, limit int, register semantics.Register,
) (semantics.Batch, error) {
	return m.next().Receive(ctx, source, limit, register)
}

// Send implements semantics.Sender.
func (m *MixedStore) Send(
	ctx context.Context, path string, messages []*semantics.Message,
) ([]semantics.Stored, error) {
	return m.next().Send(ctx, path, messages)
}

// Complete implements semantics.Settler.
func (m *MixedStore) Complete(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken,
) ([]semantics.Code, error) {
	return m.next().Complete(ctx, source, tokens)
}

// CompleteAndReceive implements semantics.Receiver.
func (m *MixedStore) CompleteAndReceive(
	ctx context.Context, source semantics.Source, tokens []semantics.LockToken, limit int, register semantics.Register,
) (semantics.NextBatch, error) {
	return m.next().CompleteAndReceive(ctx, source, tokens, limit, register)
}

// Close closes both stores.
func (m *MixedStore) Close() error {
	_ = m.rare.Close()
	return m.Below.(*Store).Close() //nolint:forcetypeassert // Mix made it
}

func TestShortWaysAreFunctionsOfTheirScripts(t *testing.T) {
	t.Parallel()
	if len(rareScripts()) != len(shortWays) {
		t.Error("a script has no short way")
	}
}

// BehaveAsBeforeChunks makes every call of the store check its keys as versions did that know no chunks.
func (s *Store) BehaveAsBeforeChunks() {
	s.TakeNoShortWays()
	for name, op := range s.scripts {
		copied := *op.Script
		copied.Text = strings.ReplaceAll(copied.Text, `values[17] == "1" and keys[33] or keys[5]`, "keys[33]")
		s.scripts[name] = script{Script: &copied, call: redis.NewScript(copied.Text)}
	}
}

// BehaveAsBeforeSharedBodies makes every call of the store look for the chunks of a subscription where versions did that
// know chunks but no shared bodies.
func (s *Store) BehaveAsBeforeSharedBodies() {
	s.scripts = maps.Clone(s.scripts)
	for name, op := range s.scripts {
		copied := *op.Script
		copied.Keys = slices.Clone(op.Keys)
		for i := range copied.Keys {
			if copied.Keys[i].Name == "chunks" {
				copied.Keys[i].Name = "stop"
			}
		}
		s.scripts[name] = script{Script: &copied, call: op.call}
	}
}
