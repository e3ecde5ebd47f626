package redisstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/storetest"
)

// unusedFor is the AutoDeleteOnIdle of entities on a clock that the test moves.
const unusedFor = 10 * time.Minute

func temporary(o *semantics.Options) { o.AutoDeleteOnIdle = unusedFor }

// removal is a store whose removals are told.
type removal struct {
	*topics
	told    []string
	observe func(script, status string) // nil: nothing
}

func openRemoval(t *testing.T) *removal {
	t.Helper()
	r := &removal{}
	clock := storetest.NewClock()
	r.topics = &topics{t: t, clock: clock, swept: openSwept(t, redisstore.Options{
		Now:     clock.Now,
		Removed: func(kind semantics.Kind, path string) { r.told = append(r.told, kind.String()+" "+path) },
		Observe: func(script, status string, _ time.Duration) {
			if r.observe != nil {
				r.observe(script, status)
			}
		},
	})}
	return r
}

// another opens a store over the same data, as another sidecar has it.
func (r *removal) another(options redisstore.Options) *redisstore.Store {
	r.t.Helper()
	options.Namespace, options.Now = r.namespace, r.clock.Now
	return redistest.Open(r.t, options)
}

func (r *removal) sweep() { r.sweepBy(r.t.Context(), r.Store) }

func (r *removal) sweepBy(ctx context.Context, s *redisstore.Store) {
	r.t.Helper()
	if err := s.SweepOnce(ctx, broker.New(s)); err != nil && ctx.Err() == nil {
		r.t.Fatal(err)
	}
}

func (r *removal) alarms() map[string]int64 {
	r.t.Helper()
	found := map[string]int64{}
	for _, z := range r.raw.ZRangeWithScores(r.t.Context(), "sb:{"+r.namespace+"}:alarms", 0, -1).Val() {
		found[fmt.Sprint(z.Member)] = int64(z.Score)
	}
	return found
}

// fillTopic gives the topic, with the subscriptions 0, 1 and 2, something of everything that does not keep it.
func (r *removal) fillTopic() {
	r.t.Helper()
	r.fails("create", createTopic(r.t, r.Store, temporary, func(o *semantics.Options) { o.RequiresDuplicateDetection = true }))
	m, reason := &semantics.Message{MessageID: "m", SessionID: "s"}, "none"
	for i := range 3 {
		name := fmt.Sprint(i)
		r.subscribe(name, func(o *semantics.Options) { o.RequiresSession = i == 1 })
		r.fails("publish", r.publish(&semantics.Message{MessageID: name}, append(copiesOf(m, name, name),
			semantics.Copy{Subscription: name, Message: m, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}})...).Err)
	}
}

// Nothing is left of what is removed: no key, no alarm, no name.
func TestIDLE_1_NothingIsLeft(t *testing.T) {
	t.Parallel()
	r := openRemoval(t)
	r.fillTopic()
	r.create(t, func(o *semantics.Options) { o.AutoDeleteOnIdle, o.RequiresDuplicateDetection = unusedFor, true })
	r.send(t, messagesOf(3, semantics.Message{})...)
	r.clock.Advance(unusedFor + time.Second)
	r.sweep()
	if keys, err := redistest.Left(t.Context(), r.raw, "sb:{"+r.namespace+"*"); err != nil || len(keys) > 0 {
		t.Errorf("left are %q, %v", keys, err)
	}
	slices.Sort(r.told)
	if want := []string{"queue orders", "topic news"}; !slices.Equal(r.told, want) {
		t.Errorf("told %q, want %q", r.told, want)
	}
}

func TestIDLE_4_NothingIsLeftOfASubscription(t *testing.T) {
	t.Parallel()
	r := openRemoval(t)
	r.fails("create", createTopic(t, r.Store))
	r.subscribe("eu", temporary, func(o *semantics.Options) { o.RequiresSession = true })
	r.subscribe("us")
	m := &semantics.Message{MessageID: "m", SessionID: "s"}
	r.fails("publish", r.publish(m, copiesOf(m, "eu", "us")...).Err)
	r.clock.Advance(unusedFor + time.Second)
	r.sweep()
	r.wants("removed", "entity sequence=1", "entity bytes=0", "entity most_bytes=4", "subscriptions us=01", "rules us $default",
		"us:entity sequence=1", "us:entity bytes=2", "us:log 1-2 of 1")
	if alarms := r.alarms(); len(alarms) > 0 || len(r.told) != 1 || r.told[0] != "subscription news/subscriptions/eu" {
		t.Errorf("left are the alarms %v, told %q", alarms, r.told)
	}
}

// What is used costs no alarm for each use: the one that comes finds that it was used, and is put off to the end of the
// span.
func TestIDLE_8_UseSetsNoAlarm(t *testing.T) {
	t.Parallel()
	r := openRemoval(t)
	r.create(t, temporary)
	r.fails("create", createTopic(t, r.Store))
	r.subscribe("eu") // which have none
	first := r.clock.Now().Add(unusedFor).UnixMilli()
	alarmsSet, sweeps := 0, 0
	r.observe = func(script, _ string) {
		alarmsSet += map[string]int{"set_alarm": 1}[script]
		sweeps += map[string]int{"sweep": 1}[script]
	}
	want := func(at int64) {
		t.Helper()
		if alarms := r.alarms(); len(alarms) != 1 || alarms["orders"] != at {
			t.Fatalf("the alarms are %v, want that of orders at %d", alarms, at)
		}
	}
	want(first)
	for range 20 {
		r.clock.Advance(unusedFor / 20)
		r.send(t, &semantics.Message{MessageID: "m"})
		if _, err := r.Peek(t.Context(), orders, 0, 1, semantics.ShowAll); err != nil {
			t.Fatal(err)
		}
		if r.clock.Now().UnixMilli() < first {
			want(first)
			r.sweep()
		}
	}
	r.sweep()
	want(first + unusedFor.Milliseconds())
	r.sweep()
	if alarmsSet != 0 || sweeps != 1 {
		t.Errorf("%d alarms were set and %d sweeps made, want none and one", alarmsSet, sweeps)
	}
}

// Between the sweep that finds an entity unused and its removal somebody may use it. Then it stays, with all it has.
func TestIDLE_8_UseBetweenSweepAndRemoval(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{MessageID: "m"}
	uses := map[string]struct {
		of  string // the only entity that may be removed
		use func(r *removal, other *redisstore.Store) error
	}{
		"send": {"orders", func(r *removal, other *redisstore.Store) error {
			return second(other.Send(r.t.Context(), "orders", message(1)))
		}},
		"publish": {"news", func(r *removal, other *redisstore.Store) error {
			return publish(r.t, other, semantics.Publication{Message: m, Copies: copiesOf(m, "eu")}).Err
		}},
		"schedule": {"news", func(r *removal, other *redisstore.Store) error {
			later := &semantics.Message{MessageID: "later", ScheduledAt: r.clock.Now().Add(time.Hour)}
			return publish(r.t, other, semantics.Publication{Message: later}).Err
		}},
		"receive": {"news", func(r *removal, other *redisstore.Store) error {
			return second(other.Receive(r.t.Context(), of("eu"), 1, semantics.RegisterNever))
		}},
		"subscribe": {"news", func(r *removal, other *redisstore.Store) error { return subscribe(r.t, other, "us") }},
		"peek": {"news/subscriptions/eu", func(r *removal, other *redisstore.Store) error {
			return second(other.Peek(r.t.Context(), of("eu"), 0, 1, semantics.ShowAll))
		}},
	}
	for name, c := range uses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := openRemoval(t)
			other := r.another(redisstore.Options{})
			only := func(entity string) func(*semantics.Options) {
				if entity == c.of {
					return temporary
				}
				return func(*semantics.Options) {}
			}
			r.create(t, only("orders"))
			r.fails("create", createTopic(t, r.Store, only("news")))
			r.subscribe("eu", only("news/subscriptions/eu"))
			r.clock.Advance(unusedFor + time.Second)
			sweeps := 0
			r.observe = func(script, _ string) {
				if script != "sweep" {
					return
				}
				if sweeps++; sweeps == 1 {
					r.fails(name, c.use(r, other))
				}
			}
			r.sweep()
			if len(r.told) > 0 {
				t.Fatalf("%s although it was used", r.told)
			}
			for _, path := range []string{"orders", "news"} {
				r.fails("audit", audit.New(r.raw, r.namespace).Audit(t.Context(), path))
			}
			next := r.clock.Now().Add(unusedFor).UnixMilli()
			if at := r.alarms()[c.of]; at != next {
				t.Errorf("the alarm is at %d, want %d", at, next)
			}
			r.observe = nil
			r.clock.Advance(3*unusedFor + time.Hour)
			for range 3 { // also what was scheduled
				if err := r.SweepOnce(t.Context(), brokerOver(r.Store)); err != nil {
					t.Fatal(err)
				}
				r.clock.Advance(unusedFor + time.Second)
			}
			if len(r.told) != 1 || !strings.HasSuffix(r.told[0], " "+c.of) {
				t.Errorf("removed were %q, want %s", r.told, c.of)
			}
		})
	}
}

// A topic that only dead letters keep is looked at again and again. A message scheduled meanwhile is activated on time
// all the same.
func TestIDLE_9_KeptTopicActivatesOnTime(t *testing.T) {
	t.Parallel()
	r := openRemoval(t)
	r.fails("create", createTopic(t, r.Store, temporary, func(o *semantics.Options) { o.AutoDeleteKeepsDeadLetters = true }))
	r.subscribe("eu")
	m, reason := &semantics.Message{MessageID: "m"}, "none"
	r.fails("publish", r.publish(m, semantics.Copy{Subscription: "eu", Message: m, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}}).Err)
	r.clock.Advance(unusedFor + time.Second)
	r.sweep()
	if at := r.alarms()["news"]; at <= r.clock.Now().UnixMilli() || at > r.clock.Now().Add(time.Minute).UnixMilli() {
		t.Errorf("the next look is %d ms from now, want one within a minute", at-r.clock.Now().UnixMilli())
	}
	due := r.clock.Now().Add(2 * time.Second)
	r.fails("schedule", r.publish(&semantics.Message{MessageID: "later", ScheduledAt: due}).Err)
	if at := r.alarms()["news"]; at > due.UnixMilli() {
		t.Errorf("the alarm is %d ms after the message is due", at-due.UnixMilli())
	}
}

// second gives the error of a call whose answer does not matter.
func second[T any](_ T, err error) error { return err }

// Wherever a removal is cut off, nobody finds the topic any more, and whoever wants its name, or a sweeper, removes the
// rest.
func TestIDLE_8_RemovalCutOff(t *testing.T) {
	t.Parallel()
	finishers := map[string]func(r *removal){
		"create": func(r *removal) {
			r.fails("create", createTopic(r.t, r.Store))
			r.fails("delete", r.DeleteEntity(r.t.Context(), semantics.TopicKind, "news"))
		},
		"sweep": func(r *removal) { sweeping(r.t, r.Store) },
	}
	for script, n := range map[string]int{"delete_topic": 1, "delete_subscription": 1, "unregister_name": 2} {
		for name, finish := range finishers {
			t.Run(script+" "+name, func(t *testing.T) {
				t.Parallel()
				r := openRemoval(t)
				r.fillTopic()
				r.clock.Advance(unusedFor + time.Second)
				dying, ctx := r.dyingAfter(script, n)
				r.sweepBy(ctx, dying)
				wantGone(t, r.Store)
				if len(keysLeft(t, r.raw, r.namespace)) == 0 {
					t.Fatal("nothing is left: this proves nothing")
				}
				finish(r)
				awaitNoKeys(t, r.raw, r.namespace)
			})
		}
	}
}

// dyingAfter is a store as killedAfter makes it, on this clock.
func (r *removal) dyingAfter(script string, n int) (*redisstore.Store, context.Context) {
	r.t.Helper()
	ctx, kill := context.WithCancel(r.t.Context())
	r.t.Cleanup(kill)
	return r.another(redisstore.Options{Observe: func(name, _ string, _ time.Duration) {
		if name == script {
			if n--; n == 0 {
				kill()
			}
		}
	}}), ctx
}

// A topic may have 2,000 subscriptions, and the script that removes it gets several keys of each.
func TestIDLE_3_TopicWithAsManySubscriptionsAsThereMayBe(t *testing.T) {
	t.Parallel()
	r := openRemoval(t)
	r.fails("create", createTopic(t, r.Store, temporary))
	for i := range semantics.MaxSubscriptionsPerTopic {
		r.subscribe(fmt.Sprint(i))
	}
	r.clock.Advance(unusedFor - time.Minute)
	if _, err := r.Peek(t.Context(), of("1999"), 0, 1, semantics.ShowAll); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(2 * time.Minute)
	r.sweep()
	if at, want := r.alarms()["news"], r.clock.Now().Add(unusedFor-2*time.Minute).UnixMilli(); at != want || len(r.told) > 0 {
		t.Fatalf("the alarm is at %d, want %d; told %q", at, want, r.told)
	}
	r.clock.Advance(unusedFor)
	r.sweep()
	if keys := keysLeft(t, r.raw, r.namespace); len(keys) > 0 {
		t.Errorf("%d keys are left", len(keys))
	}
}

// Sidecars remove what is unused on time by themselves, also when the alarm was lost with one that died.
func TestIDLE_8_RemovedByItself(t *testing.T) {
	t.Parallel()
	for name, loses := range map[string]bool{"on time": false, "alarm lost": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const span = 300 * time.Millisecond
			var removed atomic.Int64
			s := openSwept(t, redisstore.Options{RemovalGrace: 1, Removed: func(semantics.Kind, string) { removed.Add(1) }})
			other := redistest.Open(t, redisstore.Options{Namespace: s.namespace, RemovalGrace: 1, Removed: func(semantics.Kind, string) { removed.Add(1) }})
			short := func(o *semantics.Options) { o.AutoDeleteOnIdle = span }
			s.create(t, short)
			if err := createTopic(t, s, short); err != nil {
				t.Fatal(err)
			}
			if err := subscribe(t, s, "eu"); err != nil {
				t.Fatal(err)
			}
			made, err := s.raw.Time(t.Context()).Result()
			if err != nil {
				t.Fatal(err)
			}
			if loses {
				s.raw.Del(t.Context(), "sb:{"+s.namespace+"}:alarms")
			}
			sweeping(t, s.Store)
			sweeping(t, other) // two at once do no harm
			awaitNothing(t, s)
			now, err := s.raw.Time(t.Context()).Result()
			await(t, func() bool { return removed.Load() >= 2 }) // it is reported after the keys are gone
			if took := now.Sub(made); err != nil || took < span-100*time.Millisecond || removed.Load() != 2 {
				t.Errorf("%d were removed within %s, want the queue and the topic after %s", removed.Load(), took, span)
			}
		})
	}
}

// awaitNothing waits until orders and news are gone.
func awaitNothing(t *testing.T, s *swept) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		if left, err := redistest.Left(ctx, s.raw, "sb:{"+s.namespace+"/*"); err == nil && len(left) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("something is left")
		}
	}
}

// A sweeper that has just begun, or has just found Redis again, removes nothing: others may not yet have told what they
// wait for.
func TestIDLE_5_NothingIsRemovedAfterAnOutage(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	defer server.Stop()
	const grace = time.Hour
	sweeps, failures := make(chan string, 1000), make(chan string, 1000)
	s := redistest.Open(t, redisstore.Options{URL: server.URL, RemovalGrace: grace, Observe: func(script, status string, _ time.Duration) {
		switch {
		case status == "error":
			poke(failures)
		case script == "sweep":
			poke(sweeps)
		}
	}})
	options := semantics.DefaultOptions()
	options.AutoDeleteOnIdle = time.Millisecond
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", options); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var work sync.WaitGroup
	work.Go(func() { s.Sweep(ctx, broker.New(s)) })
	awaitPoke(t, "a second sweep", sweeps)
	awaitPoke(t, "a second sweep", sweeps) // so it comes back to it
	if _, err := s.GetEntity(t.Context(), semantics.QueueKind, "orders"); err != nil {
		t.Errorf("removed at the start: %v", err)
	}
	began := time.Now()
	server.Kill()
	for s.RemovesFrom().Before(began.Add(grace)) { // some may fail at the same time before the first one is noted
		awaitPoke(t, "a failure that puts removals off", failures)
	}
	stop()
	work.Wait()
}

func poke(c chan<- string) {
	select {
	case c <- "":
	default:
	}
}

func awaitPoke(t *testing.T, what string, c <-chan string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(redistest.Patience):
		t.Fatalf("%s did not come", what)
	}
}

// Only what may be removed needs the stamp, or what belongs to a topic that may: the others cost no script.
func TestIDLE_5_NoScriptForWhatStays(t *testing.T) {
	t.Parallel()
	r := openRemoval(t)
	scripts := 0
	r.observe = func(script, _ string) { scripts += map[string]int{"note_use": 1}[script] }
	note := func(paths ...string) int {
		t.Helper()
		scripts = 0
		uses := make([]semantics.Use, len(paths))
		for i, path := range paths {
			uses[i].Path = path
		}
		r.fails("note", r.NoteUse(t.Context(), uses))
		return scripts
	}
	r.create(t, func(*semantics.Options) {})
	r.fails("create", createTopic(t, r.Store))
	r.subscribe("stays")
	r.subscribe("goes", temporary)
	if n := note("orders", "missing", of("stays").Path, of("missing").Path, "no/Subscriptions/topic"); n != 0 {
		t.Errorf("%d scripts, want none", n)
	}
	if n := note("orders", of("GOES").Path); n != 1 {
		t.Errorf("%d scripts, want one for the subscription that goes", n)
	}
	o := semantics.DefaultOptions()
	temporary(&o)
	r.fails("update", second(r.UpdateEntity(t.Context(), semantics.TopicKind, "news", o, []string{"autoDeleteOnIdle"})))
	if n := note("orders", of("stays").Path); n != 1 {
		t.Errorf("%d scripts, want one for the subscription of the topic that goes", n)
	}
}
