package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// queues makes empty queues with names in order.
func queues(t testing.TB, s *redisstore.Store, n int) {
	t.Helper()
	for i := range n {
		if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, fmt.Sprintf("q%04d", i), semantics.DefaultOptions()); err != nil {
			t.Fatal(err)
		}
	}
}

// fleet is sidecars on one namespace by a clock of their own, whose sweeps are counted.
type fleet struct {
	namespace string
	clock     *storetest.Clock
	sidecars  []*redisstore.Store
	swept     atomic.Int64
	during    func() // runs in each sweep; nil: nothing
}

func newFleet(t *testing.T, n int) *fleet {
	t.Helper()
	f := &fleet{namespace: redistest.Namespace(), clock: storetest.NewClock()}
	for range n {
		f.sidecars = append(f.sidecars, redistest.Open(t, redisstore.Options{
			Namespace: f.namespace, Now: f.clock.Now, PoolSize: 2,
			Observe: func(script, _ string, _ time.Duration) {
				if script == "sweep" {
					f.swept.Add(1)
					if f.during != nil {
						f.during()
					}
				}
			},
		}))
	}
	return f
}

// look lets all sidecars look at the same time.
func (f *fleet) look(t *testing.T) (waits []time.Duration) {
	t.Helper()
	waits = make([]time.Duration, len(f.sidecars))
	var all sync.WaitGroup
	for i, s := range f.sidecars {
		all.Go(func() {
			var err error
			if waits[i], err = s.LookOnce(t.Context(), nil, nil); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return waits
}

// However many sidecars there are, each minute each entity is looked at once (finding 9).
func TestTTL_20_LookAtAllEntitiesIsShared(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 3, 150} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Parallel()
			const entities = 120
			f := newFleet(t, n)
			queues(t, f.sidecars[0], entities)
			for round := range int64(2) {
				for i, wait := range f.look(t) {
					if wait <= 0 || wait > time.Minute {
						t.Errorf("sidecar %d asks again after %s", i, wait)
					}
				}
				if got := f.swept.Load(); got != (round+1)*entities {
					t.Fatalf("%d looks at %d entities in round %d", got, entities, round+1)
				}
				f.look(t) // it is too early
				f.clock.Advance(time.Minute)
			}
		})
	}
}

// A look that takes longer than its lease is taken over and goes on where its sidecar last said it was; that one then
// stops. So a look always ends, however slow Redis is.
func TestTTL_20_LookAtAllEntitiesIsTakenOver(t *testing.T) {
	t.Parallel()
	const entities = 10
	f := newFleet(t, 2)
	first, second := f.sidecars[0], f.sidecars[1]
	queues(t, first, entities)
	hangs, goesOn := make(chan struct{}), make(chan struct{})
	var calls atomic.Int64
	f.during = func() {
		if calls.Add(1) == 1 {
			close(hangs)
			<-goesOn
		}
	}
	ended := make(chan error, 1)
	go func() {
		_, err := first.LookOnce(t.Context(), nil, nil)
		ended <- err
	}()
	<-hangs
	if wait, err := second.LookOnce(t.Context(), nil, nil); err != nil || wait > 10*time.Second {
		t.Errorf("the second one waits %s, %v", wait, err)
	}
	raw := rawClient(t)
	// as the first one notes every two seconds
	raw.HSet(t.Context(), "sb:{"+f.namespace+"}:whole_sweep", "after", "q0003")
	f.clock.Advance(11 * time.Second)
	before := f.swept.Load()
	if wait, err := second.LookOnce(t.Context(), nil, nil); err != nil || wait != time.Minute {
		t.Errorf("the second one waits %s, %v", wait, err)
	}
	if n := f.swept.Load() - before; n != entities-4 {
		t.Errorf("the second one looked at %d entities, want those behind q0003", n)
	}
	close(goesOn)
	if err := <-ended; err == nil {
		t.Error("the first one does not know that it lost the look")
	}
}

// A note that lies too far ahead, because the clock went back, holds nothing up.
func TestTTL_20_LookAtAllEntitiesAfterTheClockWentBack(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1)
	queues(t, f.sidecars[0], 1)
	note := "sb:{" + f.namespace + "}:whole_sweep"
	for _, fields := range [][]any{{"next"}, {"sidecar", "gone", "until"}} {
		f.look(t)
		rawClient(t).HDel(t.Context(), note, "next", "sidecar", "until") // but not of which run of Redis it is
		rawClient(t).HSet(t.Context(), note, append(fields, f.clock.Now().Add(time.Hour).UnixMilli())...)
		before := f.swept.Load()
		f.look(t)
		if f.swept.Load() == before {
			t.Errorf("%v an hour ahead: nothing was looked at", fields)
		}
	}
}

// After Redis forgot all, the next look finds what is new there (finding 8).
func TestTTL_20_LookAtAllEntitiesAfterRedisForgot(t *testing.T) {
	t.Parallel()
	for _, loss := range redistest.Losses {
		if !loss.ForgetsAll() {
			continue
		}
		t.Run(string(loss), func(t *testing.T) {
			t.Parallel()
			server := redistest.StartForgetful(t)
			server.Prepare(t, loss)
			var swept atomic.Int64
			s := redistest.Open(t, redisstore.Options{URL: server.URL, Observe: func(script, _ string, _ time.Duration) {
				if script == "sweep" {
					swept.Add(1)
				}
			}})
			for range 2 {
				queues(t, s, 3)
				before := swept.Load()
				if _, err := s.LookOnce(t.Context(), nil, nil); err != nil || swept.Load() != before+3 {
					t.Fatalf("%d looks at 3 entities, %v", swept.Load()-before, err)
				}
				server.Mark(t, loss)
				server.Lose(t, loss)
			}
		})
	}
}

// A sidecar that starts before Redis looks at all entities as soon as Redis is there (finding 8).
func TestTTL_20_SweepStartsBeforeRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	defer server.Stop()
	namespace := redistest.Namespace()
	s := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace})
	create(t, s)
	life := time.Millisecond
	if _, err := s.Send(t.Context(), "orders", []*semantics.Message{{MessageID: "m", TimeToLive: &life}}); err != nil {
		t.Fatal(err)
	}
	command(t, server.URL, "DEL", "sb:{"+namespace+"}:alarms")
	server.Kill()
	var failed sync.Once
	isDown := make(chan struct{})
	early := redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: namespace, Observe: func(_, status string, _ time.Duration) {
		if status == "error" {
			failed.Do(func() { close(isDown) })
		}
	}})
	sweeping(t, early)
	<-isDown
	server.Restart(t, durable...)
	await(t, func() bool { return command(t, server.URL, "XLEN", "sb:{"+namespace+"/orders}:log") == int64(0) })
}

// Whatever key of an entity is broken, those behind it are looked at, and the fault is told once, with its cause
// (finding 10).
func TestTTL_20_BrokenEntityStopsNoSweep(t *testing.T) {
	t.Parallel()
	clock := storetest.NewClock()
	var swept atomic.Int64
	s := openSwept(t, redisstore.Options{Now: clock.Now, Observe: func(script, _ string, _ time.Duration) {
		if script == "sweep" {
			swept.Add(1)
		}
	}})
	broken := map[string]bool{}
	entities := int64(0)
	for i, part := range append(slices.Clone(allKeys), "arrivals", "transfer:entity") {
		name := fmt.Sprintf("b%02d", i)
		options := semantics.DefaultOptions()
		options.RequiresSession = i%2 == 0
		if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, name, options); err != nil {
			t.Fatal(err)
		}
		key := "sb:{" + s.namespace + "/" + name + "}:" + part
		s.raw.Del(t.Context(), key)
		s.raw.Set(t.Context(), key, "broken", 0)
		s.raw.HSet(t.Context(), "sb:{"+s.namespace+"/"+name+"}:entity", "alarm_ms", 1) // so that all keys are looked at
		entities++
	}
	for field, value := range map[string]string{"alarm_ms": "x", "lock_duration_ms": "x", "sequence": "x", "kind": "x", "status": "x", "bytes": "x"} {
		name := "c" + strings.ReplaceAll(field, "_", "")
		if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, name, semantics.DefaultOptions()); err != nil {
			t.Fatal(err)
		}
		s.raw.HSet(t.Context(), "sb:{"+s.namespace+"/"+name+"}:entity", field, value)
		entities++
	}
	queues(t, s.Store, 1) // behind all of them
	life := time.Second
	if _, err := s.Send(t.Context(), "q0000", []*semantics.Message{{MessageID: "m", TimeToLive: &life}}); err != nil {
		t.Fatal(err)
	}
	clock.Advance(time.Minute)
	_, err := s.LookOnce(t.Context(), nil, func(entity string, err error) {
		if broken[entity] {
			t.Errorf("%s was told twice, now as %v", entity, err)
		}
		broken[entity] = true
		if code := semantics.CodeOf(err); code != semantics.Internal {
			t.Errorf("%s: %v", entity, err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.raw.XLen(t.Context(), "sb:{"+s.namespace+"/q0000}:log").Val(); n != 0 {
		t.Error("the last entity was not looked at")
	}
	if len(broken) < 10 || broken["q0000"] {
		t.Errorf("told were %v: this proves little", broken)
	}
	t.Logf("%d of %d broken entities were told of", len(broken), entities)
}

// An entity that cannot be seen to is told of once, takes ever less of the sweeper's time, and keeps nothing from the
// others. One that is slow holds up no other, even one whose alarm comes later.
func TestTTL_20_BrokenAndSlowEntitiesHoldUpNoOther(t *testing.T) {
	t.Parallel()
	var told, tries atomic.Int64
	s := openSwept(t, redisstore.Options{
		UpkeepFailed: func(entity string, err error) {
			if entity != "broken" || semantics.CodeOf(err) != semantics.Internal {
				t.Errorf("%q: %v", entity, err)
			}
			told.Add(1)
		},
		Observe: func(script, status string, _ time.Duration) {
			if script == "sweep" && status == "error" {
				tries.Add(1)
			}
		},
	})
	if err := createTopic(t, s); err != nil {
		t.Fatal(err)
	}
	s.create(t, func(*semantics.Options) {})
	later := &semantics.Message{MessageID: "m", ScheduledAt: soon(t, s.raw)}
	if err := publish(t, s, semantics.Publication{Message: later}).Err; err != nil {
		t.Fatal(err)
	}
	s.raw.Set(t.Context(), "sb:{"+s.namespace+"/broken}:entity", "x", 0)
	s.raw.ZAdd(t.Context(), "sb:{"+s.namespace+"}:names", redis.Z{Member: "broken"})

	broker := brokerOver(s)
	defer broker.Close()
	ctx, stop := context.WithCancel(t.Context())
	slow, released, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		s.Sweep(ctx, upkeep{Upkeep: broker, activate: func(context.Context, string) error {
			close(slow)
			<-released
			return errors.New("not now")
		}})
	}()
	<-slow
	s.raw.ZAdd(t.Context(), "sb:{"+s.namespace+"}:alarms", redis.Z{Member: "broken"})
	life := time.Millisecond
	for round := range 3 {
		s.send(t, &semantics.Message{MessageID: fmt.Sprint("a", round), TimeToLive: &life})
		awaitLength(t, s.raw, s.key("log"), 0)
	}
	await(t, func() bool { return tries.Load() >= 2 })
	stop()
	close(released)
	<-done
	if told.Load() != 1 {
		t.Errorf("the broken entity was told of %d times", told.Load())
	}
}
