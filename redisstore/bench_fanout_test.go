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
)

// BenchmarkFanOut publishes 1 KiB messages to a topic from many callers, one message a call, each with a copy for every
// subscription, and tells what a copy costs Redis in time and memory. Run it with a fixed number of iterations, for
// example -benchtime=3x. Figures are medians.
func BenchmarkFanOut(b *testing.B) {
	for _, subscriptions := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("subscriptions=%d", subscriptions), func(b *testing.B) { fanOut(b, subscriptions) })
	}
}

const benchCopies = 40_000 // of one iteration

func fanOut(b *testing.B, subscriptions int) {
	server := redistest.Start(b, "--auto-aof-rewrite-percentage", "0")
	defer server.Stop()
	cpu, memory := serverCPU(b, server.URL), serverMemory(b, server.URL)
	var perSecond, micros, bytes []float64
	for b.Loop() {
		s := redistest.Open(b, redisstore.Options{URL: server.URL, PoolSize: benchCallers})
		names := fannedTopic(b, s, subscriptions)
		before, began := memory(), cpu()
		seconds := publishAll(b, s, names)
		copies := float64(benchCopies / subscriptions * subscriptions)
		perSecond = append(perSecond, copies/seconds)
		micros = append(micros, (cpu()-began)/copies*1e6)
		bytes = append(bytes, (memory()-before)/copies)
		if err := s.DeleteEntity(context.WithoutCancel(b.Context()), semantics.TopicKind, "news"); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(median(perSecond), "copies/s")
	b.ReportMetric(median(micros), "redis-us/copy")
	b.ReportMetric(median(bytes), "bytes/copy")
	b.ReportMetric(0, "ns/op")
}

func fannedTopic(b *testing.B, s *redisstore.Store, subscriptions int) (names []string) {
	b.Helper()
	if err := createTopic(b, s, func(o *semantics.Options) { o.MaxSizeInMegabytes = semantics.MaxSizeMegabytes }); err != nil {
		b.Fatal(err)
	}
	for i := range subscriptions {
		names = append(names, fmt.Sprintf("s%04d", i))
		if err := subscribe(b, s, names[i]); err != nil {
			b.Fatal(err)
		}
	}
	return names
}

// publishAll gives the seconds that it takes.
func publishAll(b *testing.B, s *redisstore.Store, names []string) float64 {
	b.Helper()
	routes, err := s.Routes(b.Context(), "news")
	if err != nil {
		b.Fatal(err)
	}
	body := make([]byte, benchBody)
	var left atomic.Int64
	left.Store(int64(benchCopies / len(names)))
	var all sync.WaitGroup
	began := time.Now()
	for range benchCallers {
		all.Go(func() {
			for left.Add(-1) >= 0 {
				m := &semantics.Message{MessageID: "12345678-1234-1234-1234-123456789012", Body: body}
				calls := [][]semantics.Publication{{{Message: m, Copies: copiesOf(m, names...)}}}
				if o := s.Publish(b.Context(), "news", routes.Version, calls)[0]; o.Err != nil {
					b.Error(o.Err)
					return
				}
			}
		})
	}
	all.Wait()
	return time.Since(began).Seconds()
}

// serverMemory gives a reading of the bytes that Redis has allocated.
func serverMemory(b *testing.B, url string) func() float64 {
	b.Helper()
	options := redistest.ClientOptions(b, url)
	client := redis.NewClient(options)
	b.Cleanup(func() { _ = client.Close() })
	return func() float64 {
		for { // until what was deleted before is freed
			used, pending := 0.0, 0
			for line := range strings.Lines(client.Info(b.Context(), "memory").Val()) {
				_, _ = fmt.Sscanf(line, "used_memory:%f", &used)
				_, _ = fmt.Sscanf(line, "lazyfree_pending_objects:%d", &pending)
			}
			if pending == 0 {
				return used
			}
		}
	}
}
