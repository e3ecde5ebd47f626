package redisstore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// BenchmarkDurability measures a send of one message of 1 KiB at each level, by one caller and by many, on the same
// Redis with the same replica: seconds until the answer, and processor time of the primary. Disk is measured on a Redis
// of its own that syncs before each answer. Run it with a fixed number of rounds, for example -benchtime=3x.
func BenchmarkDurability(b *testing.B) {
	pair := redistest.StartPair(b)
	defer pair.Stop()
	strict := redistest.Start(b, durable...)
	defer strict.Stop()
	for _, level := range []struct {
		url  string
		what redisstore.Durability
	}{
		{pair.URL, redisstore.Durability{}},
		{pair.URL, atReplica(patiently)},
		{strict.URL, redisstore.Durability{}},
		{strict.URL, atDisk(patiently)},
	} {
		settings := "everysec"
		if level.url == strict.URL {
			settings = "always"
		}
		for _, callers := range []int{1, benchCallers} {
			b.Run(fmt.Sprintf("%s/%s/callers=%d", settings, level.what.Level, callers), func(b *testing.B) {
				measureSends(b, level.url, level.what, callers)
			})
		}
	}
}

const benchSends = 2000

func measureSends(b *testing.B, url string, durability redisstore.Durability, callers int) {
	s := redistest.Open(b, redisstore.Options{URL: url, PoolSize: benchCallers, Durability: durability})
	if _, err := s.Check(b.Context()); err != nil {
		b.Fatal(err)
	}
	if _, _, err := s.CreateEntity(b.Context(), semantics.QueueKind, "bench", semantics.DefaultOptions()); err != nil {
		b.Fatal(err)
	}
	cpu := serverCPU(b, url)
	var each, used []float64
	for b.Loop() {
		before, began := cpu(), time.Now()
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				for range benchSends / callers {
					if _, err := s.Send(b.Context(), "bench", message(benchBody)); err != nil {
						b.Error(err)
						return
					}
				}
			})
		}
		all.Wait()
		sends := float64(benchSends / callers * callers)
		each = append(each, time.Since(began).Seconds()*1e6*float64(callers)/sends)
		used = append(used, (cpu()-before)*1e6/sends)
	}
	b.ReportMetric(median(each), "us/answer")
	b.ReportMetric(median(used), "redis-us/msg")
	b.ReportMetric(0, "ns/op")
}
