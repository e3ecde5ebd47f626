package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// crowd is many sidecars that wait for messages of one queue, while all of them sweep.
type crowd struct {
	*swept
	t     *testing.T
	all   []*waitingSidecar
	ctx   context.Context
	woken chan time.Time

	hanging []string // names of those that hang
}

type waitingSidecar struct {
	store  *redisstore.Store
	broker *broker.Broker
	stop   context.CancelFunc
	ended  sync.WaitGroup
}

// fates are what may become of a sidecar that waits.
var fates = []string{"dies", "hangs", "leaves", "lives"}

func (c *crowd) add(fate string) {
	c.t.Helper()
	before := c.names()
	if fate == "hangs" { // it is heard, and does nothing
		w := c.wait(c.t, orders)
		c.t.Cleanup(w.Close)
		c.hanging = append(c.hanging, slices.DeleteFunc(c.names(), func(name string) bool { return slices.Contains(before, name) })...)
		return
	}
	store, err := redisstore.Open(redisstore.Options{URL: redistest.URL(c.t), Namespace: c.namespace, PoolSize: 2, ReadTimeout: redistest.Patience})
	must(c.t, err)
	s := &waitingSidecar{store: store, broker: brokerOver(store)}
	c.all = append(c.all, s)
	ctx, stop := context.WithCancel(c.ctx)
	s.stop = stop
	s.ended.Go(func() { store.Sweep(ctx, s.broker) })
	s.ended.Go(func() {
		got, err := s.broker.Receive(ctx, orders, broker.ReceiveOptions{MaxMessages: 1, MaxWait: semantics.MaxWait})
		if err == nil && len(got.Messages) > 0 {
			c.woken <- time.Now()
		}
	})
	await(c.t, func() bool {
		return slices.ContainsFunc(c.names(), func(name string) bool { return !slices.Contains(before, name) })
	})
	switch fate {
	case "dies": // its connections end, and it takes itself off no list
		_ = store.Close()
		s.end()
	case "leaves":
		s.end()
		_ = store.Close()
	}
}

// names are those on the waiting list.
func (c *crowd) names() []string { return c.raw.ZRange(c.t.Context(), c.key("waiting"), 0, -1).Val() }

// hangOn makes those that hang look as if they had done so for longer than they may.
func (c *crowd) hangOn() {
	since := float64(c.raw.Time(c.t.Context()).Val().UnixMilli() - 20_500)
	for _, name := range c.hanging {
		c.raw.ZAdd(c.t.Context(), c.key("waiting"), redis.Z{Score: since, Member: name})
	}
}

func (s *waitingSidecar) end() {
	s.stop()
	s.ended.Wait()
	s.broker.Close()
}

// However many sidecars left, died or hang, one that lives is woken at once by a message, and the look at all entities
// ends. The times are logged; the bound has room for a busy machine and is less than the ten seconds after which it
// would look by itself.
func TestRECV_10_WakeUpsAmongManySidecars(t *testing.T) {
	t.Parallel()
	for _, one := range []struct {
		sidecars, entities int
		fates              []string
	}{{2, 200, []string{"dies", "lives"}}, {3, 200, []string{"hangs", "leaves", "lives"}}, {150, 2000, fates}} {
		t.Run(fmt.Sprint(one.sidecars), func(t *testing.T) {
			t.Parallel()
			c := &crowd{t: t, swept: openSwept(t, redisstore.Options{}), woken: make(chan time.Time, one.sidecars)}
			ctx, stop := context.WithCancel(t.Context())
			c.ctx = ctx
			t.Cleanup(func() {
				stop()
				for _, s := range c.all {
					s.end()
					_ = s.store.Close()
				}
			})
			queues(t, c.Store, one.entities)
			c.create(t, func(*semantics.Options) {})
			began := time.Now()
			for i := range one.sidecars {
				c.add(one.fates[i%len(one.fates)])
			}
			await(t, func() bool { return c.raw.HExists(t.Context(), "sb:{"+c.namespace+"}:whole_sweep", "next").Val() })
			t.Logf("%d sidecars wait, and %d entities were looked at, after %s", one.sidecars, one.entities, time.Since(began))

			c.hangOn()
			var took []time.Duration
			for i := 0; i < one.sidecars; i++ {
				if one.fates[i%len(one.fates)] != "lives" {
					continue
				}
				sent := time.Now()
				c.send(t, &semantics.Message{MessageID: fmt.Sprint(i)})
				took = append(took, (<-c.woken).Sub(sent))
			}
			slices.Sort(took)
			t.Logf("a message reached one of them within %s at the median, %s at most", took[len(took)/2], took[len(took)-1])
			if took[len(took)-1] > 5*time.Second {
				t.Error("a wake-up was swallowed")
			}
		})
	}
}
