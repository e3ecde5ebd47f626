package redisstore_test

import (
	"fmt"
	"hash/fnv"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// hungTimeout is how long a call waits for a server that hangs. Forty of them one after the other last longer than the
// tests below permit.
const (
	hungTimeout = 3 * time.Second
	notLong     = 40 * hungTimeout / 2
)

// parted is a namespace of a cluster of whose queues some have the server that is to fail, and none its registry there.
type parted struct {
	*redisstore.Store
	t         *testing.T
	cluster   *redistest.Cluster
	raw       redis.UniversalClient
	namespace string
	there     []string // queues at the server that is to fail
	elsewhere []string // queues at the others
}

// partQueues makes so many queues at one server, whose names come first, and some at others.
func partQueues(t *testing.T, there int, change func(*redisstore.Options), arguments ...string) *parted {
	t.Helper()
	cluster := redistest.StartCluster(t, arguments...)
	t.Cleanup(cluster.Stop)
	p := &parted{t: t, cluster: cluster, raw: redistest.Client(t, cluster.URL), namespace: redistest.Namespace()}
	options := redisstore.Options{
		URL: cluster.URL, Namespace: p.namespace,
		DialTimeout: hungTimeout, ReadTimeout: hungTimeout, WriteTimeout: hungTimeout,
	}
	if change != nil {
		change(&options)
	}
	p.Store = redistest.Open(t, options)
	must(t, second(p.Check(t.Context())))
	must(t, p.raw.Exists(t.Context(), p.failing()).Err()) // learns which server has what, while all answer
	isAway := map[string]bool{}
	for i := range 8 {
		tag := fmt.Sprintf("sb:{%s#%d}:", p.namespace, i)
		isAway[tag] = !cluster.IsTogether(t, p.failing(), tag)
	}
	for i := 0; len(p.there) < there; i++ {
		name := fmt.Sprintf("a%04d", i)
		if isAway[p.registry(name)] && cluster.IsTogether(t, p.failing(), p.key(name, "entity")) {
			p.there = append(p.there, name)
		}
	}
	for i := 0; len(p.elsewhere) < 5; i++ {
		name := fmt.Sprintf("b%04d", i)
		if isAway[p.registry(name)] && !cluster.IsTogether(t, p.failing(), p.key(name, "entity")) {
			p.elsewhere = append(p.elsewhere, name)
		}
	}
	return p
}

// failing is a key of the server that is to fail.
func (p *parted) failing() string { return p.key("orders", "entity") }

func (p *parted) key(queue, part string) string {
	return "sb:{" + p.namespace + "/" + queue + "}:" + part
}

// registry is the prefix of the keys of the registry of a queue.
func (p *parted) registry(queue string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(queue))
	return fmt.Sprintf("sb:{%s#%d}:", p.namespace, h.Sum32()%8)
}

func (p *parted) create(queues []string, changes ...func(*semantics.Options)) {
	p.t.Helper()
	for _, queue := range queues {
		must(p.t, makeQueue(p.t, p.Store, queue, changes...))
	}
}

// schedule sends a message to each queue that is due soon.
func (p *parted) schedule(queues ...string) {
	p.t.Helper()
	for _, queue := range queues {
		m := &semantics.Message{MessageID: "later", ScheduledAt: time.Now().Add(100 * time.Millisecond)}
		must(p.t, second(p.Send(p.t.Context(), queue, []*semantics.Message{m})))
	}
}

// awaitOne waits until each queue has one available message.
func (p *parted) awaitOne(queues []string) {
	p.t.Helper()
	for _, queue := range queues {
		await(p.t, func() bool { return p.raw.XLen(p.t.Context(), p.key(queue, "log")).Val() == 1 })
	}
}

// loseAlarms removes all alarms that are not at the server that is to fail.
func (p *parted) loseAlarms() {
	p.t.Helper()
	for _, queue := range slices.Concat(p.there, p.elsewhere) {
		must(p.t, p.raw.Del(p.t.Context(), p.registry(queue)+"alarms").Err())
	}
}

// A primary that hangs does not keep the sweeper from the entities of the others, whether it comes to them by their
// alarms, to sources that forward to the primary that hangs, or by the look at all entities.
func TestTTL_20_AHungServerHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(p *parted) (caughtUp func()){
		"alarms of its entities": func(p *parted) func() {
			p.create(p.there)
			p.schedule(p.there...)
			return func() { p.awaitOne(p.there) }
		},
		"sources that forward to it": func(p *parted) func() {
			to, sources := p.there[:1], []string{}
			for _, queue := range p.elsewhere {
				for i := range 8 {
					sources = append(sources, fmt.Sprint(queue, "from", i))
				}
			}
			p.create(to)
			p.create(sources, func(o *semantics.Options) { o.ForwardTo = to[0] })
			for _, source := range sources {
				must(p.t, second(p.Send(p.t.Context(), source, message(1))))
			}
			return func() {
				await(p.t, func() bool { return p.raw.XLen(p.t.Context(), p.key(to[0], "log")).Val() == 40 })
			}
		},
		"lost alarms": func(p *parted) func() {
			p.create(p.there)
			return func() {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := partQueues(t, 40, nil, withoutFailover...)
			p.create(p.elsewhere)
			caughtUp := prepare(p)
			p.schedule(p.elsewhere...)
			if name == "lost alarms" {
				p.loseAlarms()
			}
			goOn := p.cluster.StopPrimaryOf(t, p.failing())
			defer goOn()
			began := time.Now()
			sweeping(t, p.Store)
			p.awaitOne(p.elsewhere)
			if took := time.Since(began); took > notLong {
				t.Errorf("the entities of other servers waited %s", took)
			}
			goOn()
			caughtUp()
		})
	}
}
