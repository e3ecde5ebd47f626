package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// BenchmarkLifecycle measures the store layer against bare streams on the same Redis in the same run: each iteration
// sends, receives and completes the same number of 1 KiB messages both ways, one after the other, and the ratio is
// taken pair by pair. Run it with a fixed number of pairs, for example -benchtime=5x. Figures are medians over the
// pairs.
func BenchmarkLifecycle(b *testing.B) {
	for _, batch := range []int{1, 10, 100} {
		b.Run(fmt.Sprintf("batch=%d", batch), func(b *testing.B) { compare(b, batch, min(40_000, 20_000*batch)) })
	}
}

// serverCPU gives a reading of the seconds of processor time that Redis has used.
func serverCPU(b *testing.B, url string) func() float64 {
	options := redistest.ClientOptions(b, url)
	client := redis.NewClient(options)
	b.Cleanup(func() { _ = client.Close() })
	return func() float64 {
		text, err := client.Info(b.Context(), "cpu").Result()
		if err != nil {
			b.Fatal(err)
		}
		used := 0.0
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			if name == "used_cpu_sys_main_thread" || name == "used_cpu_user_main_thread" {
				seconds, err := strconv.ParseFloat(value, 64)
				if err != nil {
					b.Fatal(err)
				}
				used += seconds
			}
		}
		return used
	}
}

const (
	benchCallers = 64
	benchBody    = 1024
)

// figures are seconds per message of the three steps.
type figures [3]float64

func (f figures) whole() float64 { return f[0] + f[1] + f[2] }

func compare(b *testing.B, batch, messages int) {
	server := redistest.Start(b, "--auto-aof-rewrite-percentage", "0")
	defer server.Stop()
	cpu := serverCPU(b, server.URL)
	var floors, ours []figures
	var floorCPU, ourCPU []float64
	for b.Loop() {
		start := cpu()
		floors = append(floors, streamsLifecycle(b, server.URL, batch, messages))
		middle := cpu()
		ours = append(ours, sidebusLifecycle(b, server.URL, batch, messages))
		floorCPU = append(floorCPU, (middle-start)/float64(messages)*1e6)
		ourCPU = append(ourCPU, (cpu()-middle)/float64(messages)*1e6)
	}
	b.ReportMetric(median(floorCPU), "redis-us/msg-streams")
	b.ReportMetric(median(ourCPU), "redis-us/msg-sidebus")
	for step, name := range []string{"send", "receive", "complete"} {
		report(b, name, floors, ours, func(f figures) float64 { return f[step] })
	}
	report(b, "lifecycle", floors, ours, figures.whole)
	b.ReportMetric(0, "ns/op")
}

func report(b *testing.B, name string, floors, ours []figures, of func(figures) float64) {
	var ratios, floor, our []float64
	for i := range floors {
		floor, our = append(floor, 1/of(floors[i])), append(our, 1/of(ours[i]))
		ratios = append(ratios, of(floors[i])/of(ours[i]))
	}
	b.ReportMetric(math.Round(median(floor)), name+"-streams/s")
	b.ReportMetric(math.Round(median(our)), name+"-sidebus/s")
	b.ReportMetric(median(ratios), name+"-ratio")
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// share runs work in benchCallers goroutines until so many messages are done, batch by batch, and gives seconds per
// message. A caller takes a batch before it works and gives back what it did not do, so no message is done beyond them.
func share(b *testing.B, messages, batch int, work func(n int) (done int, err error)) float64 {
	var left atomic.Int64
	left.Store(int64(messages))
	var wg sync.WaitGroup
	began := time.Now()
	for range benchCallers {
		wg.Go(func() {
			for n := take(&left, batch); n > 0; n = take(&left, batch) {
				done, err := work(n)
				if err != nil {
					b.Error(err)
					return
				}
				left.Add(int64(n - done))
			}
		})
	}
	wg.Wait()
	return time.Since(began).Seconds() / float64(messages)
}

// take takes a batch of what is left, or the rest.
func take(left *atomic.Int64, batch int) int {
	for {
		is := left.Load()
		n := min(is, int64(batch))
		if n <= 0 || left.CompareAndSwap(is, is-n) {
			return int(n)
		}
	}
}

func sidebusLifecycle(b *testing.B, url string, batch, messages int) figures {
	s := redistest.Open(b, redisstore.Options{URL: url, PoolSize: benchCallers})
	ctx := b.Context()
	options := semantics.DefaultOptions()
	options.MaxSizeInMegabytes = semantics.MaxSizeMegabytes
	if _, _, err := s.CreateEntity(ctx, semantics.QueueKind, "bench", options); err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.DeleteEntity(context.WithoutCancel(ctx), semantics.QueueKind, "bench") }()
	source := semantics.Source{Path: "bench"}
	body := make([]byte, benchBody)
	var tokens tray[semantics.LockToken]
	return figures{
		share(b, messages, batch, func(n int) (int, error) {
			some := make([]*semantics.Message, n)
			for i := range some {
				some[i] = &semantics.Message{MessageID: "12345678-1234-1234-1234-123456789012", Body: body}
			}
			_, err := s.Send(ctx, "bench", some)
			return n, err
		}),
		share(b, messages, batch, func(n int) (int, error) {
			got, err := s.Receive(ctx, source, n, semantics.RegisterNever)
			for _, m := range got.Messages {
				tokens.put(m.LockToken)
			}
			return len(got.Messages), err
		}),
		share(b, messages, batch, func(n int) (int, error) {
			some := tokens.take(n)
			if len(some) == 0 {
				return n, nil
			}
			codes, err := s.Complete(ctx, source, some)
			if slices.ContainsFunc(codes, func(c semantics.Code) bool { return c != "" }) {
				return 0, fmt.Errorf("complete: %v", codes)
			}
			return len(some), err
		}),
	}
}

func streamsLifecycle(b *testing.B, url string, batch, messages int) figures {
	options := redistest.ClientOptions(b, url)
	options.PoolSize, options.Protocol = benchCallers, 2
	client := redis.NewClient(options)
	defer client.Close()
	ctx := b.Context()
	const stream, group = "bench-stream", "g"
	if err := client.XGroupCreateMkStream(ctx, stream, group, "0").Err(); err != nil {
		b.Fatal(err)
	}
	defer client.Del(context.WithoutCancel(ctx), stream)
	bare, body := bareQueue{client, stream, group}, make([]byte, benchBody)
	var ids tray[string]
	return figures{
		share(b, messages, batch, func(n int) (int, error) { return n, bare.send(ctx, n, body) }),
		share(b, messages, batch, func(n int) (int, error) {
			got, err := bare.receive(ctx, n)
			if err != nil || len(got) == 0 {
				return n, err
			}
			for _, id := range got {
				ids.put(id)
			}
			return len(got), nil
		}),
		share(b, messages, batch, func(n int) (int, error) {
			some := ids.take(n)
			if len(some) == 0 {
				return n, nil
			}
			return len(some), bare.complete(ctx, some)
		}),
	}
}

// tray holds what one step leaves for the next.
type tray[T any] struct {
	mu    sync.Mutex
	items []T
}

func (t *tray[T]) put(item T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.items = append(t.items, item)
}

func (t *tray[T]) take(n int) []T {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = min(n, len(t.items))
	some := slices.Clone(t.items[:n])
	t.items = t.items[n:]
	return some
}
