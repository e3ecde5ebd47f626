package faults

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// subscriptions of the topic.
var subscriptions = []string{"a", "b"}

// Locks are short, so that what is left locked comes back soon.
const lockDuration = 5 * time.Second

// servers are what sidecars keep their messages in, and what can be done to that.
type servers struct {
	url       string        // to make entities and to look at them
	urlOf     func() *line  // a new line for a sidecar, nil: there is none
	behind    time.Duration // by how much the clock of Redis is behind that of the pods
	forgetful bool          // kills may take what was acknowledged
	window    time.Duration // what was acknowledged longer than this before a kill is there
	faults    []fault       // of the servers
	end       func()        // makes right what was wrong all the time
}

// run is some applications with their sidecars on one kind of servers.
type run struct {
	servers
	t         *testing.T
	ctx       context.Context
	rng       *rand.Rand
	seed      uint64
	namespace string
	level     string // of durability
	sockets   string // a folder
	store     *partitioned.Store
	posts     []*post
	ledger    *ledger

	sent, backlog        atomic.Int64
	isStop, calm, isDone atomic.Bool

	launched, killed, redisKilled int
	outages                       []outage // when Redis may have forgotten
	counts                        map[string]int
	steps                         []step
	story                         []string // the last faults
}

func (r *run) isStopping() bool { return r.isStop.Load() }
func (r *run) isCalm() bool     { return r.calm.Load() }
func (r *run) isOver() bool     { return r.isDone.Load() || r.ctx.Err() != nil }

func (r *run) random(stream int) *rand.Rand { return rand.New(rand.NewPCG(r.seed, uint64(stream))) }

// rest waits, but not longer than the run lasts.
func (r *run) rest(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.ctx.Done():
	}
}

const (
	sidecars  = 3
	receivers = 2 // of each source, of each of -crowds
	holders   = 3 // of each of -crowds

	partitions = 4
)

// play lets applications work on servers while faults happen, then until nothing is left, and checks what they saw. It
// returns the namespace.
func play(t *testing.T, level string, on servers) string {
	t.Helper()
	sidecartest.Binary(t)
	r := &run{
		servers: on, level: level, t: t, ctx: t.Context(), seed: *firstSeed, namespace: redistest.Namespace(), sockets: t.TempDir(),
		ledger: newLedger(on.forgetful), counts: map[string]int{},
	}
	r.rng = r.random(0)
	r.store = partitioned.New(redistest.Open(t, redisstore.Options{URL: on.url, Namespace: r.namespace}))
	r.makeEntities()
	for range sidecars {
		p := &post{url: on.url}
		if on.urlOf != nil {
			p.line = on.urlOf()
			p.url = p.line.url
		}
		r.posts = append(r.posts, p)
		r.launch(p)
	}
	t.Cleanup(func() {
		for _, p := range r.posts {
			_ = p.now.Load().conn.Close()
		}
	})

	began := time.Now()
	var sending, receiving, watching sync.WaitGroup
	watching.Go(r.watchBacklog)
	r.startAll(&sending, &receiving)
	r.breakThings()
	r.calm.Store(true)
	r.isStop.Store(true)
	sending.Wait()
	sidecartest.Eventually(t, "everything is received", func() bool {
		r.reviveSidecars()
		return r.isEmpty()
	})
	r.isDone.Store(true)
	receiving.Wait()
	watching.Wait()
	r.check(time.Since(began))
	return r.namespace
}

func (r *run) startAll(sending, receiving *sync.WaitGroup) {
	for i := range senders * *crowds {
		sending.Go(func() { r.send(i) })
	}
	for i, from := range r.sources() {
		for j := range receivers * *crowds {
			one := &receiver{run: r, rng: r.random(1000 + 100*i + j), from: from}
			receiving.Go(one.work)
		}
	}
	receiving.Go(r.operate)
	receiving.Go(r.scribble)
	for i := range holders * *crowds {
		one := &holder{run: r, rng: r.random(2000 + i)}
		receiving.Go(one.work)
	}
}

// sources are where receivers without sessions take messages from.
func (r *run) sources() (all []source) {
	for _, isDead := range []bool{false, true} {
		for _, to := range []target{orders, spread} {
			all = append(all, source{to, 0, resources[to], isDead})
		}
		for place, name := range subscriptions {
			all = append(all, source{news, place, resources[news] + "/subscriptions/" + name, isDead})
		}
	}
	return all
}

func (r *run) makeEntities() {
	r.t.Helper()
	options := semantics.DefaultOptions()
	options.LockDuration, options.MaxDeliveryCount = lockDuration, 1000
	inSessions := options
	inSessions.RequiresSession = true
	inPartitions := options
	inPartitions.Partitions = partitions
	for path, o := range map[string]semantics.Options{"orders": options, "chats": inSessions, "spread": inPartitions} {
		if _, _, err := r.store.CreateEntity(r.ctx, semantics.QueueKind, path, o); err != nil {
			r.t.Fatal(err)
		}
	}
	if _, _, err := r.store.CreateEntity(r.ctx, semantics.TopicKind, "news", semantics.DefaultOptions()); err != nil {
		r.t.Fatal(err)
	}
	for _, name := range subscriptions {
		path := semantics.SubscriptionPath("news", name)
		rules := []semantics.Rule{{Name: semantics.DefaultRule, Filter: semantics.RuleFilter{All: true}}}
		if _, _, err := r.store.CreateSubscription(r.ctx, path, options, rules); err != nil {
			r.t.Fatal(err)
		}
	}
}

// isEmpty reports whether nothing is left to be received.
func (r *run) isEmpty() bool {
	left, err := r.left()
	return err == nil && left == 0
}

// watchBacklog looks how many messages wait, so that senders can wait for receivers.
func (r *run) watchBacklog() {
	for !r.isOver() {
		if left, err := r.left(); err == nil {
			r.backlog.Store(left)
		}
		r.rest(100 * time.Millisecond)
	}
}

// left returns how many messages are there.
func (r *run) left() (left int64, err error) {
	for _, path := range []string{"orders", "chats", "spread", semantics.SubscriptionPath("news", "a"), semantics.SubscriptionPath("news", "b")} {
		counts, err := r.store.Runtime(r.ctx, semantics.QueueKind, path)
		if err != nil {
			return 0, err
		}
		left += counts.Active + counts.DeadLetter + counts.Transfer
	}
	return left, nil
}

// check checks what the applications saw, and what is kept.
func (r *run) check(took time.Duration) {
	r.t.Helper()
	window := r.window
	if r.level != "memory" {
		window = -1 // what was confirmed is never lost
	}
	faults, lost, longest := r.ledger.check(r.outages, window)
	for _, one := range faults {
		r.t.Error(one)
	}
	if r.end != nil {
		r.end()
	}
	auditor := audit.New(redistest.Client(r.t, r.url), r.namespace)
	var err error
	sidecartest.Eventually(r.t, "all that is kept fits together", func() bool {
		err = errors.Join(auditor.AuditAll(r.ctx), auditor.AuditPartitions(r.ctx))
		return err == nil || r.t.Failed()
	})
	if err != nil {
		r.t.Error(err)
	}
	l := r.ledger
	r.t.Logf("seed %d: %d messages in %s, %d copies acknowledged, %d deliveries, %d of them again, %d settled too late and refused",
		r.seed, r.sent.Load(), took.Round(time.Second), l.acked, l.delivered, l.again, l.stale)
	r.t.Logf("%d sidecars killed, %d Redis killed, faults: %v", r.killed, r.redisKilled, r.counts)
	r.t.Logf("durability %s: %d acknowledged messages lost in %d outages of Redis, the oldest %s before one",
		r.level, lost, len(r.outages), longest)
	if r.t.Failed() {
		r.t.Log(strings.Join(r.story, "\n"))
		r.t.Logf("to repeat: go test ./test/faults -run '%s$' -count=10 -seed=%d -messages=%d -sidecar-kills=%d -redis-kills=%d -gap=%s -crowds=%d -durability=%s",
			r.t.Name(), r.seed, *messages, *sidecarKills, *redisKills, *gap, *crowds, r.level)
	}
}
