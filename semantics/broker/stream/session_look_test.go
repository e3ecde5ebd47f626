package stream_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
	"github.com/sidebus/sidebus/semantics/memstore"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// hanging is a memstore whose second partition may hang.
type hanging struct {
	*memstore.Store

	hangs atomic.Bool
	gate  chan struct{}
}

func (s *hanging) Turn(ctx context.Context, path string, turns []semantics.Turn) []semantics.TurnOutcome {
	if s.hangs.Load() && semantics.PartitionIn(path) == 1 {
		<-s.gate
	}
	return s.Store.Turn(ctx, path, turns)
}

// Sessions of a partition whose server hangs do not hold up those of others that look at the same time.
func TestPART_7_AServerThatHangsHoldsUpItsOwnSessions(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		below := &hanging{Store: memstore.New(), gate: make(chan struct{})}
		s := &stand{t: t, Broker: broker.New(partitioned.New(below))}
		t.Cleanup(s.Close)
		s.create("tales", semantics.Options{RequiresSession: true, Partitions: 2}, "requiresSession", "partitions")
		s.send("tales", "a/1", "b/1", "c/1", "d/1", "e/1", "f/1")
		p := s.subscribe("tales", func(o *stream.Options) { o.Credits, o.MaxSessions = 20, 10 })
		t.Cleanup(func() { close(below.gate) })
		p.takes()
		p.complete("a/1", "b/1", "c/1", "d/1", "e/1", "f/1")
		p.wants("")
		here, there := "", ""
		for id, lock := range p.opened {
			if _, partition := lock.Partition(); partition == 0 {
				here = id
			} else {
				there = id
			}
		}
		if here == "" || there == "" {
			t.Fatal("all sessions are in one partition")
		}
		below.hangs.Store(true)
		s.pass(10 * time.Second) // all look again
		s.send("tales", here+"/2")
		s.pass(time.Second)
		p.wants(here + "/2")
	})
}

// fullMemory has no memory for messages.
type fullMemory struct{}

func (fullMemory) Take(bytes int64, must bool) error {
	if bytes > 0 && !must {
		return semantics.NoMemory()
	}
	return nil
}

func (fullMemory) Give(int64) {}

// unheard is a memstore whose sessions are not woken.
type unheard struct{ *memstore.Store }

func (s unheard) Watch(ctx context.Context, source semantics.Source) (semantics.Watch, error) {
	if source.HeldSessions {
		return silence{}, nil
	}
	return s.Store.Watch(ctx, source)
}

type silence struct{}

func (silence) C() <-chan int                   { return nil }
func (silence) Sessions() []semantics.LockToken { return nil }
func (silence) Close()                          {}

// What a turn took and gave back, because there was no memory for it, comes with the next look, and that is at once.
func TestTHR_1_ATurnWithoutMemoryIsFollowedByALook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &stand{t: t, Broker: broker.New(unheard{memstore.New()})}
		t.Cleanup(s.Close)
		s.create("tales", semantics.Options{RequiresSession: true}, "requiresSession")
		s.send("tales", "a/1", "a/2")
		p := s.subscribe("tales", sessions(1, 1))
		p.wants("+a a/1")
		_, err := p.Complete(semantics.WithMemory(t.Context(), fullMemory{}), p.tokensOf([]string{"a/1"}))
		s.ok(err)
		p.wants("a/2")
	})
}
