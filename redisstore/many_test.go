package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// An idle sidecar with ten receivers that wait on empty queues costs Redis two commands a second at most (P8). They are
// counted while every queue is looked at again once in every sidecar, which takes ten seconds.
func TestP8_IdleSidecars(t *testing.T) {
	t.Parallel()
	const sidecars, waiting, all, most = 12, 10, 90, 2.0
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	options := redistest.ClientOptions(t, server.URL)
	raw := redis.NewClient(options)
	defer raw.Close()
	namespace := redistest.Namespace()
	maker := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace})
	queues(t, maker, all)

	var looks, reads atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var work sync.WaitGroup
	var brokers []*broker.Broker
	defer func() {
		stop()
		work.Wait()
		for _, b := range brokers {
			b.Close()
		}
	}()
	for i := range sidecars {
		s := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace, Observe: func(script, _ string, _ time.Duration) {
			if script == "receive" {
				looks.Add(1)
			}
		}})
		s.CountReads(&reads)
		b := brokerOver(s)
		brokers = append(brokers, b)
		work.Go(func() { s.Sweep(ctx, b) })
		for j := range waiting {
			source := semantics.Source{Path: fmt.Sprintf("q%04d", (i*waiting+j)%all)}
			work.Go(func() {
				if _, err := b.Receive(ctx, source, broker.ReceiveOptions{MaxMessages: 1, MaxWait: semantics.MaxWait}); ctx.Err() == nil {
					t.Error(err)
				}
			})
		}
	}
	await(t, func() bool { // everybody waits, and the first look at all entities is over
		n := int64(0)
		for i := range all {
			n += raw.ZCard(t.Context(), fmt.Sprintf("sb:{%s/q%04d}:waiting", namespace, i)).Val()
		}
		return n == sidecars*waiting && raw.HExists(t.Context(), "sb:{"+namespace+"}:whole_sweep", "next").Val()
	})
	count := func(do func()) float64 {
		reads.Store(0)
		before := topLevel(t, raw)
		do()
		total := reads.Load()
		told := fmt.Sprintf("%d reads", total)
		for name, n := range topLevel(t, raw) {
			if n -= before[name]; n > 0 {
				told += fmt.Sprintf(", %d %s", n, name)
				total += n
			}
		}
		t.Log(told)
		return float64(total)
	}
	began := time.Now()
	looks.Store(0)
	idle := count(func() { await(t, func() bool { return looks.Load() >= sidecars*waiting }) }) / sidecars / time.Since(began).Seconds()
	stop()
	work.Wait()

	// What is rarer: the entities that somebody waits on are told of, and one of 200 sidecars looks at all 1,500
	// queues.
	var uses []semantics.Use
	for i := range waiting {
		uses = append(uses, semantics.Use{Path: fmt.Sprintf("q%04d", i)})
	}
	maker.CountReads(&reads)
	must(t, maker.NoteUse(t.Context(), uses)) // over a connection that stands
	tell := count(func() { must(t, maker.NoteUse(t.Context(), uses)) }) / semantics.NoteEvery.Seconds()
	raw.HDel(t.Context(), "sb:{"+namespace+"}:whole_sweep", "next") // else it is not time
	look := count(func() {
		_, err := maker.LookOnce(t.Context(), nil, nil)
		must(t, err)
	}) / all * 1500 / 200 / time.Minute.Seconds()
	t.Logf("%.2f commands a second for each sidecar, of which %.2f tell of uses and %.2f look at all queues", idle+tell+look, tell, look)
	if idle+tell+look > most {
		t.Errorf("an idle sidecar sends %.2f commands a second, want %.1f at most", idle+tell+look, most)
	}
}

// topLevel counts the commands that Redis got of a kind that no script calls.
func topLevel(t *testing.T, raw *redis.Client) map[string]int64 {
	t.Helper()
	found := map[string]int64{}
	for line := range strings.Lines(raw.Info(t.Context(), "commandstats").Val()) {
		name, rest, _ := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		switch name {
		case "evalsha", "evalsha_ro", "eval", "eval_ro", "ping", "ssubscribe", "sunsubscribe", "hello", "client|setname", "client|setinfo", "select", "auth":
			var n int64
			_, err := fmt.Sscanf(rest, "calls=%d", &n)
			must(t, err)
			found[name] = n
		}
	}
	return found
}
