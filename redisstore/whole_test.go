package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// watched is put before a script for tests: it looks at every call of Redis. A call can fail where its key is of a kind
// that its command is not for. That must be known before the script's first write, because what a script has written
// stays, also when it fails. So from then on each command must meet a key of which a command for the same kind was
// called before, or which was seen not to exist. What breaks this is noted in a set of Redis, as script, command and
// key. A script that may not write notes nothing: nothing of it is half done.
const watched = `
local redis = (function(real, script, faults)
  local kinds, writes, free = {}, {}, {}
  local function words(text, with)
    for word in string.gmatch(text, "%S+") do with(word) end
  end
  for kind, names in pairs({
    hash = "HGET HMGET HGETALL HSCAN HLEN HEXISTS HVALS HKEYS HSET HSETNX HDEL HINCRBY",
    zset = "ZCARD ZCOUNT ZLEXCOUNT ZRANGE ZREVRANGEBYSCORE ZRANGEBYSCORE ZSCORE ZMSCORE ZINTERCARD ZADD ZREM ZREMRANGEBYSCORE ZREMRANGEBYLEX ZPOPMIN",
    stream = "XLEN XRANGE XREVRANGE XADD XDEL", string = "GET",
  }) do
    words(names, function(name) kinds[name] = kind end)
  end
  words("HSET HSETNX HDEL HINCRBY ZADD ZREM ZREMRANGEBYSCORE ZREMRANGEBYLEX ZPOPMIN XADD XDEL SET PEXPIRE DEL UNLINK RENAME", function(name) writes[name] = true end)
  words("TIME INFO SPUBLISH EXISTS SET PEXPIRE DEL UNLINK RENAME", function(name) free[name] = true end)
  local known, wrote = {}, false
  local function call(name, ...)
    local kind, given = kinds[name], { ... }
    if not kind and not free[name] then
      error("watched does not know " .. name)
    end
    local first, last = 1, name == "EXISTS" and #given or 1
    if name == "ZINTERCARD" then
      first, last = 2, given[1] + 1
    end
    for i = first, kind and wrote and last or 0 do
      if known[given[i]] ~= kind and known[given[i]] ~= "absent" then
        real.call("SADD", faults, script .. " " .. name .. " " .. string.match(given[i], "[^:]*$"))
      end
    end
    local result = real.call(name, ...)
    for i = first, (kind or (name == "EXISTS" and result == 0)) and last or 0 do
      known[given[i]] = kind or "absent"
    end
    wrote = wrote or (writes[name] and (result ~= 0 or name == "HSET" or name == "ZADD")) or false
    return result
  end
  return { call = call, pcall = real.pcall }
end)(redis, "SCRIPT", "FAULTS")
`

// Sample is a run of a script: what it was called with, and what its keys held then.
type Sample struct {
	Script string
	Sha    string
	Keys   []string
	Args   []any
	Dumps  map[string]string // of the keys that exist
}

// Watcher looks over the scripts of stores. It is safe for concurrent use.
type Watcher struct {
	Faults string // key of the set of what could fail halfway

	mu      sync.Mutex
	runs    map[string]int
	samples map[string][]Sample
	scripts map[string]script // as they are watched, by name: over a thousand stores share them
}

// NewWatcher gives a watcher that notes faults under a key.
func NewWatcher(faults string) *Watcher {
	return &Watcher{Faults: faults, runs: map[string]int{}, samples: map[string][]Sample{}, scripts: map[string]script{}}
}

// Watch has all scripts of a store watched, and takes samples.
func (w *Watcher) Watch(s *Store) {
	all, names := make(map[string]script, len(s.scripts)), map[string]string{}
	for name, op := range s.scripts {
		all[name] = w.watchedScript(name, op)
		names[all[name].call.Hash()] = name
	}
	original := s.scripts
	s.scripts = all
	client := s.servers.(oneServer).Client
	client.AddHook(sampler{watcher: w, names: names, original: original, client: client})
}

// watchedScript gives a script that notes what could fail halfway.
func (w *Watcher) watchedScript(name string, op script) script {
	w.mu.Lock()
	defer w.mu.Unlock()
	known, ok := w.scripts[name]
	if !ok {
		first, rest, _ := strings.Cut(op.Text, "\n")
		before := strings.NewReplacer("SCRIPT", name, "FAULTS", w.Faults, "\n", " ").Replace(watched)
		copied := *op.Script
		copied.Text = first + "\n" + before + "\n" + rest
		known = script{Script: &copied, call: redis.NewScript(copied.Text)}
		w.scripts[name] = known
	}
	return known
}

// Samples gives the samples of every script that was run.
func (w *Watcher) Samples() map[string][]Sample {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.samples)
}

// wants reports whether a sample of this run is wanted: of the first runs, and of some of the others.
func (w *Watcher) wants(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[name]++
	n := w.runs[name]
	return n <= 20 || (n%23 == 0 && len(w.samples[name]) < 100)
}

type sampler struct {
	watcher  *Watcher
	names    map[string]string
	original map[string]script
	client   *redis.Client
}

func (h sampler) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessPipelineHook sees the scripts with a fence behind them (DUR-2), and those that count.
func (h sampler) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			h.see(ctx, cmd)
		}
		return next(ctx, cmds)
	}
}

func (h sampler) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		h.see(ctx, cmd)
		return next(ctx, cmd)
	}
}

// see takes a sample before a script runs, if one is wanted.
func (h sampler) see(ctx context.Context, cmd redis.Cmder) {
	args := cmd.Args()
	if !strings.HasPrefix(cmd.Name(), "evalsha") {
		return
	}
	if name := h.names[fmt.Sprint(args[1])]; name != "" && h.watcher.wants(name) {
		h.take(ctx, name, args)
	}
}

// take takes a sample. It does without one when Redis cannot be asked: some tests cut the connection.
func (h sampler) take(ctx context.Context, name string, args []any) {
	count, err := strconv.Atoi(fmt.Sprint(args[2]))
	if err != nil {
		return
	}
	sample := Sample{Script: name, Sha: h.original[name].call.Hash(), Args: args[3+count:], Dumps: map[string]string{}}
	pipe := h.client.TxPipeline()
	var dumps []*redis.StringCmd
	for _, key := range args[3 : 3+count] {
		text, isFirst := key.(string)
		if !isFirst {
			text = *key.(*string)
		}
		if !slices.Contains(sample.Keys, text) {
			dumps = append(dumps, pipe.Dump(ctx, text))
		}
		sample.Keys = append(sample.Keys, text)
	}
	if len(dumps) > 200 {
		return
	}
	_, _ = pipe.Exec(ctx)
	at := 0
	for i, key := range sample.Keys {
		if slices.Contains(sample.Keys[:i], key) {
			continue
		}
		value, err := dumps[at].Result()
		if at++; err == nil {
			sample.Dumps[key] = value
		} else if !errors.Is(err, redis.Nil) {
			return
		}
	}
	h.watcher.mu.Lock()
	defer h.watcher.mu.Unlock()
	h.watcher.samples[name] = append(h.watcher.samples[name], sample)
}

// LoadScripts puts the scripts as they are into a Redis.
func LoadScripts(t testing.TB, client *redis.Client) map[string]string {
	t.Helper()
	all, err := prepared()
	if err != nil {
		t.Fatal(err)
	}
	hashes := map[string]string{}
	for name, op := range all {
		if hashes[name], err = client.ScriptLoad(context.Background(), op.Text).Result(); err != nil {
			t.Fatal(err)
		}
	}
	return hashes
}
