package redisstore_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
)

// replays is a Redis in which samples of scripts are run again, some with a key that is broken.
type replays struct {
	ctx    context.Context
	client *redis.Client
	ran    int
}

// outcome is what a run left: what each key holds, and how it ended.
type outcome struct {
	held  map[string]string
	reply any
	err   error
}

// run restores a sample, breaks one of its keys unless it is "", and runs its script.
func (r *replays) run(t *testing.T, s redisstore.Sample, broken string) (before, after outcome) {
	t.Helper()
	ctx := r.ctx
	pipe := r.client.Pipeline()
	pipe.FlushDB(ctx)
	for key, dump := range s.Dumps {
		pipe.Restore(ctx, key, 0, dump)
	}
	if broken != "" {
		pipe.Del(ctx, broken)
		if strings.HasSuffix(broken, ":barred") { // the one key that is a text
			pipe.RPush(ctx, broken, "broken")
		} else {
			pipe.Set(ctx, broken, "broken", 0)
		}
	}
	keys := slices.Clone(s.Keys)
	slices.Sort(keys)
	keys = slices.Compact(keys)
	dumpAll := func() []*redis.StringCmd {
		dumps := make([]*redis.StringCmd, len(keys))
		for i, key := range keys {
			dumps[i] = pipe.Dump(ctx, key)
		}
		return dumps
	}
	first := dumpAll()
	call := pipe.EvalSha(ctx, s.Sha, s.Keys, s.Args...)
	second := dumpAll()
	_, _ = pipe.Exec(ctx)
	r.ran++
	held := func(dumps []*redis.StringCmd) map[string]string {
		found := map[string]string{}
		for i, key := range keys {
			if value, err := dumps[i].Result(); err == nil {
				found[key] = value
			} else if !errors.Is(err, redis.Nil) {
				t.Fatalf("dump %s: %v", key, err)
			}
		}
		return found
	}
	after.reply, after.err = call.Result()
	before.held, after.held = held(first), held(second)
	return before, after
}

func changed(before, after outcome) []string {
	var keys []string
	all := maps.Clone(before.held)
	maps.Copy(all, after.held)
	for key := range all {
		if before.held[key] != after.held[key] {
			keys = append(keys, key[strings.LastIndexByte(key, ':')+1:])
		}
	}
	slices.Sort(keys)
	return keys
}

// different gives few samples that differ in what they change and how they end, those that change most first.
func (r *replays) different(t *testing.T, samples []redisstore.Sample, most int) []redisstore.Sample {
	t.Helper()
	kinds := map[string]redisstore.Sample{}
	for _, s := range samples {
		before, after := r.run(t, s, "")
		status := fmt.Sprint(after.err)
		if list, ok := after.reply.([]any); ok {
			status = fmt.Sprint(list[0])
		}
		kinds[fmt.Sprintf("%03d %v %s", len(changed(before, after)), changed(before, after), status)] = s
	}
	var chosen []redisstore.Sample
	for _, kind := range slices.Backward(slices.Sorted(maps.Keys(kinds))) {
		if len(chosen) < most {
			chosen = append(chosen, kinds[kind])
		}
	}
	return chosen
}

// breakEach runs a sample with each of its keys broken in turn: the script either does all it should or changes
// nothing.
func (r *replays) breakEach(t *testing.T, s redisstore.Sample) {
	t.Helper()
	for _, key := range slices.Compact(slices.Sorted(slices.Values(s.Keys))) {
		before, after := r.run(t, s, key)
		if after.err == nil || errors.Is(after.err, redis.Nil) {
			continue
		}
		if keys := changed(before, after); len(keys) > 0 {
			t.Errorf("%s is half done when %s is of a wrong kind: it has changed %v and failed: %v", s.Script,
				key[strings.LastIndexByte(key, ':')+1:], keys, after.err)
		}
	}
}

// watchScripts watches the scripts of stores. When the test and all below it are over, no script can have been able to
// fail after its first write: each call of Redis then met a key whose kind was known, and with any one of its keys
// broken each script did all or nothing.
func watchScripts(t *testing.T) *redisstore.Watcher {
	t.Helper()
	w := redisstore.NewWatcher(redistest.Namespace() + "-faults")
	raw := rawClient(t)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		faults, err := raw.SMembers(ctx, w.Faults).Result()
		if err != nil {
			t.Error(err)
		}
		slices.Sort(faults)
		for _, fault := range faults {
			t.Errorf("%s: it is not known before the first write of the script what kind the key is (lua/lib/base/check_key_types.lua)", fault)
		}
		raw.Del(ctx, w.Faults)
		// A hash that is kept as a list is dumped the same each time.
		server := redistest.Start(t, "--hash-max-listpack-entries", "1000000", "--hash-max-listpack-value", "1000000", "--appendonly", "no")
		defer server.Stop()
		r := &replays{ctx: ctx, client: clientOf(t, server.URL)}
		samples, began := w.Samples(), time.Now()
		isPart := strings.Contains(flag.Lookup("test.run").Value.String(), "/")
		for name := range redisstore.LoadScripts(t, r.client) {
			if len(samples[name]) == 0 && !isPart {
				t.Errorf("%s was not run: let a test do it", name)
			}
			for _, sample := range r.different(t, samples[name], 6) {
				r.breakEach(t, sample)
			}
		}
		t.Logf("%d runs of scripts with a broken key in %s", r.ran, time.Since(began))
	})
	return w
}
