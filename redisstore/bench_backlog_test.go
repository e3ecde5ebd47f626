package redisstore_test

import (
	"fmt"
	"os"
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

// full says whether the benchmarks of large amounts run as large as docs/benchmarks has them. By default they only show
// that they work.
func full() bool { return os.Getenv("SIDEBUS_BENCH_FULL") != "" }

func sized(whole, small int) int {
	if full() {
		return whole
	}
	return small
}

// backlog is a queue that holds many messages on a Redis of its own.
type backlog struct {
	b      *testing.B
	server *redistest.Server
	raw    *redis.Client
	store  *redisstore.Store
}

func openBacklog(b *testing.B, change func(*semantics.Options)) *backlog {
	return openBacklogOn(b, 16384, change)
}

// openBacklogOn uses a Redis with nodes of streams of so many bytes.
func openBacklogOn(b *testing.B, nodeBytes int, change func(*semantics.Options)) *backlog {
	server := redistest.Start(b, "--auto-aof-rewrite-percentage", "0", "--stream-node-max-bytes", strconv.Itoa(nodeBytes))
	b.Cleanup(server.Stop)
	options := redistest.ClientOptions(b, server.URL)
	l := &backlog{
		b: b, server: server, raw: redis.NewClient(options),
		store: redistest.Open(b, redisstore.Options{URL: server.URL, PoolSize: benchCallers, Namespace: "default"}),
	}
	b.Cleanup(func() { _ = l.raw.Close() })
	if _, err := l.store.Check(b.Context()); err != nil { // loads the scripts
		b.Fatal(err)
	}
	queue := semantics.DefaultOptions()
	queue.MaxSizeInMegabytes, queue.LockDuration = semantics.MaxSizeMegabytes, semantics.MaxLockDuration
	change(&queue)
	if _, _, err := l.store.CreateEntity(b.Context(), semantics.QueueKind, "orders", queue); err != nil {
		b.Fatal(err)
	}
	return l
}

// fill sends messages in batches of 100, as fillBy does.
func (l *backlog) fill(messages, body int) { l.fillBy(100, messages, body) }

// fillBy sends messages of a body with an id of 36 characters, as a sender without ids of its own gets them.
func (l *backlog) fillBy(batch, messages, body int) {
	content := make([]byte, body)
	share(l.b, messages, batch, func(n int) (int, error) {
		some := make([]*semantics.Message, n)
		for i := range some {
			some[i] = &semantics.Message{MessageID: "12345678-1234-1234-1234-123456789012", Body: content}
		}
		_, err := l.store.Send(l.b.Context(), "orders", some)
		return n, err
	})
}

func (l *backlog) length() int64 {
	return l.raw.XLen(l.b.Context(), "sb:{default/orders}:log").Val()
}

// drain receives and completes all there is.
func (l *backlog) drain() {
	for l.length() > 0 {
		share(l.b, int(l.length()), 250, l.consume)
	}
}

func (l *backlog) consume(n int) (int, error) {
	got, err := l.store.Receive(l.b.Context(), orders, n, semantics.RegisterNever)
	if err != nil || len(got.Messages) == 0 {
		return n, err
	}
	tokens := make([]semantics.LockToken, len(got.Messages))
	for i, m := range got.Messages {
		tokens[i] = m.LockToken
	}
	_, err = l.store.Complete(l.b.Context(), orders, tokens)
	return len(tokens), err
}

// memory returns what Redis uses for data. The store's connections end before: Redis counts their buffers at most once
// a second, and until then takes them for data.
func (l *backlog) memory() int64 {
	killed := l.raw.ClientKillByFilter(l.b.Context(), "TYPE", "normal", "SKIPME", "yes")
	if err := killed.Err(); err != nil {
		l.b.Fatal(err)
	}
	text, err := l.raw.Info(l.b.Context(), "memory").Result()
	if err != nil {
		l.b.Fatal(err)
	}
	return infoNumber(l.b, text, "used_memory_dataset:") // without the buffers of clients and of the append-only file
}

func infoNumber(b *testing.B, info, field string) int64 {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(strings.TrimSpace(line), field); ok {
			n, err := strconv.ParseUint(value, 10, 64)
			if err != nil {
				b.Fatal(err)
			}
			return int64(n) //nolint:gosec // Redis gives differences that may be below zero, but without sign
		}
	}
	b.Fatalf("INFO has no %s", field)
	return 0
}

// watchScripts makes Redis note every command that takes more than a millisecond, and count anew.
func (l *backlog) watchScripts() {
	_, err := l.raw.Pipelined(l.b.Context(), func(p redis.Pipeliner) error {
		p.ConfigSet(l.b.Context(), "slowlog-log-slower-than", "1000")
		p.ConfigSet(l.b.Context(), "slowlog-max-len", "1000000")
		p.Do(l.b.Context(), "SLOWLOG", "RESET")
		p.ConfigResetStat(l.b.Context())
		return nil
	})
	if err != nil {
		l.b.Fatal(err)
	}
}

// slowScripts gives the mean time of a script since watchScripts, in us as Redis measures it, and how many of a hundred
// took more than a millisecond.
func (l *backlog) slowScripts() (mean, slowPercent float64) {
	slow, err := l.raw.Do(l.b.Context(), "SLOWLOG", "LEN").Int64()
	if err != nil {
		l.b.Fatal(err)
	}
	text, err := l.raw.Info(l.b.Context(), "commandstats").Result()
	if err != nil {
		l.b.Fatal(err)
	}
	for line := range strings.Lines(text) {
		var calls, us float64
		if n, _ := fmt.Sscanf(line, "cmdstat_evalsha:calls=%f,usec=%f", &calls, &us); n == 2 {
			return us / calls, float64(slow) / calls * 100
		}
	}
	l.b.Fatal("no scripts have run")
	return 0, 0
}

// BenchmarkBacklog measures whether a long queue is slower than a short one (P6), and the scripts' own time while it is
// long (P10). Each pair moves the same messages through a short and through a long queue, in batches of 10. Bare streams
// do the same beside it: what a long one costs them is memory that is in no cache.
func BenchmarkBacklog(b *testing.B) {
	const short = 1000
	long, moved := sized(1_000_000, 20_000), sized(50_000, 2_000)
	queues := [2]*backlog{openBacklog(b, func(*semantics.Options) {}), openBacklog(b, func(*semantics.Options) {})}
	queues[0].fill(short, benchBody)
	queues[1].fill(long, benchBody)
	queues[1].watchScripts()
	var sends, takes []float64
	var ratios, bareRatios [2][]float64
	for b.Loop() {
		ofShort, ofLong := queues[0].move(moved), queues[1].move(moved)
		sends, takes = append(sends, 1/ofLong[0]), append(takes, 1/ofLong[1])
		for step := range ratios {
			ratios[step] = append(ratios[step], ofShort[step]/ofLong[step])
		}
	}
	mean, slow := queues[1].slowScripts()
	for i, messages := range []int{short, long} {
		queues[i].empty()
		queues[i].fillStream(bareStream, messages, benchBody)
	}
	for range bareRounds {
		ofShort, ofLong := queues[0].moveBare(moved), queues[1].moveBare(moved)
		for step := range bareRatios {
			bareRatios[step] = append(bareRatios[step], ofShort[step]/ofLong[step])
		}
	}
	b.ReportMetric(median(sends), "send/s")
	b.ReportMetric(median(takes), "receive+complete/s")
	b.ReportMetric(median(ratios[0]), "send-ratio")
	b.ReportMetric(median(ratios[1]), "receive+complete-ratio")
	b.ReportMetric(median(bareRatios[0]), "bare-send-ratio")
	b.ReportMetric(median(bareRatios[1]), "bare-receive+complete-ratio")
	b.ReportMetric(mean, "us/script")
	b.ReportMetric(slow, "%over-1ms")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMemory measures what Redis uses for a queued message above its body and properties (P7), and what part of
// it is left when the queue was drained: of messages sent together and alone, at Redis' default, and with the nodes that
// Sidebus recommends. A bare stream with an entry for each message is measured beside it.
func BenchmarkMemory(b *testing.B) {
	for _, nodeBytes := range []int{4096, 16384} {
		for _, batch := range []int{100, 1} {
			b.Run(fmt.Sprintf("node=%d/batch=%d", nodeBytes, batch), func(b *testing.B) {
				memoryOf(b, nodeBytes, batch, sized(200_000, 5_000))
			})
		}
	}
}

func memoryOf(b *testing.B, nodeBytes, batch, messages int) {
	for b.Loop() {
		l := openBacklogOn(b, nodeBytes, func(*semantics.Options) {})
		l.fill(100, benchBody) // what is allocated once
		l.drain()
		before := l.memory()
		l.fillBy(batch, messages, benchBody)
		filled := l.memory()
		l.drain()
		after := l.memory()
		b.ReportMetric(float64(filled-before)/float64(messages)-benchBody-36, "bytes/message")
		b.ReportMetric(float64(after-before)/float64(filled-before)*100, "%left")
		l.fillStream("bare", messages, benchBody+36)
		b.ReportMetric(float64(l.memory()-after)/float64(messages)-benchBody-36, "bare-bytes/message")
	}
	b.ReportMetric(0, "ns/op")
}

// fillStream fills a bare stream with messages, each an entry of its own.
func (l *backlog) fillStream(key string, messages, size int) {
	value := make([]byte, size)
	for left := messages; left > 0; left -= 1000 {
		_, err := l.raw.Pipelined(l.b.Context(), func(p redis.Pipeliner) error {
			for range min(left, 1000) {
				p.XAdd(l.b.Context(), &redis.XAddArgs{Stream: key, Values: []any{"m", value}})
			}
			return nil
		})
		must(l.b, err)
	}
}

// BenchmarkExpiry lets messages expire one after the other while nobody listens, and measures how late the sweeper
// removes them (TTL-20): the age of the first message that is past its time, looked at every 5 ms.
func BenchmarkExpiry(b *testing.B) {
	messages, over := sized(100_000, 2_000), time.Duration(sized(60_000, 1_000))*time.Millisecond
	for b.Loop() {
		l := openBacklog(b, func(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = true })
		l.sendExpiring(messages, over)
		sweeping(b, l.store)
		var late []float64
		tick := time.NewTicker(5 * time.Millisecond)
		for more := true; more; more = l.length() > 0 {
			late = append(late, l.lateness())
			<-tick.C
		}
		tick.Stop()
		slices.Sort(late)
		b.ReportMetric(late[len(late)*99/100], "late-p99-ms")
		b.ReportMetric(late[len(late)-1], "late-max-ms")
		if dead := l.raw.XLen(b.Context(), "sb:{default/orders}:dead_log").Val(); dead != int64(messages) {
			b.Fatalf("%d dead letters, want %d", dead, messages)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// sendExpiring sends messages that expire evenly over a span, the first some seconds from now.
func (l *backlog) sendExpiring(messages int, over time.Duration) {
	const batch = 500
	ends := time.Now().Add(time.Duration(sized(10_000, 500)) * time.Millisecond)
	for at := 0; at < messages; at += batch {
		some := make([]*semantics.Message, batch)
		for i := range some {
			life := time.Until(ends) + over*time.Duration(at+i)/time.Duration(messages)
			some[i] = &semantics.Message{MessageID: strconv.Itoa(at + i), Body: make([]byte, 100), TimeToLive: &life}
		}
		if _, err := l.store.Send(l.b.Context(), "orders", some); err != nil {
			l.b.Fatal(err)
		}
	}
}

// BenchmarkSchedule lets scheduled messages become due one after the other while nobody listens, and measures how late
// each was enqueued (SCHED-6, I11 of reliability): both instants are Redis' own.
func BenchmarkSchedule(b *testing.B) {
	messages, over := sized(20_000, 1_000), time.Duration(sized(20_000, 500))*time.Millisecond
	for b.Loop() {
		l := openBacklog(b, func(*semantics.Options) {})
		sweeping(b, l.store)
		begin := time.Now().Add(time.Duration(sized(3_000, 300)) * time.Millisecond)
		for at := range messages {
			due := begin.Add(over * time.Duration(at) / time.Duration(messages)).Truncate(time.Millisecond)
			m := &semantics.Message{MessageID: strconv.Itoa(at), Body: make([]byte, 100), ScheduledAt: due}
			if _, err := l.store.Send(b.Context(), "orders", []*semantics.Message{m}); err != nil {
				b.Fatal(err)
			}
		}
		tick := time.NewTicker(10 * time.Millisecond)
		for l.length() < int64(messages) {
			<-tick.C
		}
		tick.Stop()
		late := l.activationsLate(messages)
		b.ReportMetric(late[len(late)/2], "late-p50-ms")
		b.ReportMetric(late[len(late)*99/100], "late-p99-ms")
		b.ReportMetric(late[len(late)-1], "late-max-ms")
		b.ReportMetric(max(0, -late[0]), "early-max-ms")
	}
	b.ReportMetric(0, "ns/op")
}

// activationsLate gives for each message by how many ms it was enqueued after its time, in ascending order.
func (l *backlog) activationsLate(messages int) []float64 {
	var late []float64
	for from := int64(1); len(late) < messages; {
		page, err := l.store.Peek(l.b.Context(), orders, from, 250, semantics.ShowAll)
		if err != nil || len(page) == 0 {
			l.b.Fatal(len(late), err)
		}
		for _, m := range page {
			late = append(late, float64(m.EnqueuedAt.Sub(m.ScheduledAt))/1e6)
		}
		from = page[len(page)-1].SequenceNumber + 1
	}
	slices.Sort(late)
	return late
}

// lateness is how long the first message that should be gone has been past its time, in ms.
func (l *backlog) lateness() float64 {
	now := time.Now()
	first, err := l.raw.ZRangeWithScores(l.b.Context(), "sb:{default/orders}:expiry", 0, 0).Result()
	if err != nil {
		l.b.Fatal(err)
	}
	if len(first) == 0 {
		return 0
	}
	return max(0, float64(now.UnixMilli())-first[0].Score)
}

// BenchmarkOneByOne consumes messages one by one that were sent in batches of 100, with 64 callers and with one: what it
// costs Redis that messages share entries of the log (docs/decisions/0035).
func BenchmarkOneByOne(b *testing.B) {
	messages := sized(50_000, 2_000)
	for _, callers := range []int{1, benchCallers} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			l := openBacklog(b, func(*semantics.Options) {})
			cpu, used := serverCPU(b, l.server.URL), 0.0
			for b.Loop() {
				l.fill(messages, benchBody)
				before := cpu()
				var left atomic.Int64
				left.Store(int64(messages))
				var done sync.WaitGroup
				for range callers {
					done.Go(func() {
						for left.Add(-1) >= 0 {
							if _, err := l.consume(1); err != nil {
								b.Error(err)
							}
						}
					})
				}
				done.Wait()
				used += cpu() - before
				l.drain()
			}
			b.ReportMetric(used*1e6/float64(messages*b.N), "redis-us/msg")
			b.ReportMetric(0, "ns/op")
		})
	}
}
