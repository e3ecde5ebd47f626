package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// counted is a store that counts its scripts by name and status.
type counted struct {
	*redisstore.Store
	mu   sync.Mutex
	runs map[string]int
}

func openCounted(t *testing.T, namespace string) *counted {
	t.Helper()
	c := &counted{runs: map[string]int{}}
	c.Store = redistest.Open(t, redisstore.Options{Namespace: namespace, Observe: func(script, status string, _ time.Duration) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.runs[script+" "+status]++
	}})
	return c
}

func (c *counted) ran(script string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.runs[script]
}

// Calls of many callers share scripts. One that is refused takes no other with it, one that was decided by other routes
// neither.
func TestTOPIC_2_PublishesShareScripts(t *testing.T) {
	t.Parallel()
	const callers, each = 40, 25
	namespace := redistest.Namespace()
	s := openCounted(t, namespace)
	if err := createTopic(t, s, func(o *semantics.Options) { o.FailIfUnmatched = true }); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eu", "us"} {
		if err := subscribe(t, s, name); err != nil {
			t.Fatal(err)
		}
	}
	routes, err := s.Routes(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	var last [callers]int64
	for caller := range callers {
		all.Go(func() {
			for i := range each {
				m := &semantics.Message{MessageID: fmt.Sprintf("%d-%d", caller, i), SessionID: fmt.Sprint(caller)}
				p, version, want := semantics.Publication{Message: m, Copies: copiesOf(m, "eu", "us")}, routes.Version, semantics.Code("")
				switch {
				case i%5 == 3:
					p.Copies, want = nil, semantics.NoMatchingSubscription
				case i%5 == 4:
					version, want = version-1, semantics.Internal // ErrRoutesChanged has no code
				}
				o := s.Publish(t.Context(), "news", version, [][]semantics.Publication{{p}})[0]
				if semantics.CodeOf(o.Err) != want {
					t.Errorf("call %s: %v", m.MessageID, o.Err)
				}
				if want == "" && o.Stored[0].SequenceNumber <= last[caller] {
					t.Errorf("call %s has the number %d after %d", m.MessageID, o.Stored[0].SequenceNumber, last[caller])
				}
				if want == "" {
					last[caller] = o.Stored[0].SequenceNumber
				}
			}
		})
	}
	all.Wait()
	scripts := s.ran("publish OK") + s.ran("publish ROUTES_CHANGED")
	if scripts == 0 || scripts > callers*each/2 {
		t.Errorf("%d calls took %d scripts", callers*each, scripts)
	}
	if err := audit.New(rawClient(t), namespace).Audit(t.Context(), "news"); err != nil {
		t.Error(err)
	}
	order := map[string]int64{}
	found, err := s.Peek(t.Context(), of("us"), 1, 10*callers*each, semantics.ShowAll)
	if err != nil || len(found) != callers*each*3/5 {
		t.Fatalf("%d copies (%v), want %d", len(found), err, callers*each*3/5)
	}
	for _, m := range found {
		var caller, i int64
		_, _ = fmt.Sscanf(m.MessageID, "%d-%d", &caller, &i)
		if before, is := order[m.SessionID]; is && i <= before {
			t.Errorf("caller %d: message %d after %d", caller, i, before)
		}
		order[m.SessionID] = i
	}
}

// The first copy for a subscription with sessions, or one that may push others out, takes a second script; from then on
// it is known. A subscription made anew may need less.
func TestPublishLearnsWhichKeysItNeeds(t *testing.T) {
	t.Parallel()
	namespace := redistest.Namespace()
	s := openCounted(t, namespace)
	if err := createTopic(t, s); err != nil {
		t.Fatal(err)
	}
	make2 := func(sessions bool, most int64) {
		t.Helper()
		if err := subscribe(t, s, "eu", func(o *semantics.Options) { o.RequiresSession = sessions }); err != nil {
			t.Fatal(err)
		}
		if err := subscribe(t, s, "us", func(o *semantics.Options) {
			o.MaxMessageCount, o.Overflow = most, semantics.DropOldestOverflow
		}); err != nil {
			t.Fatal(err)
		}
	}
	send := func(id string, scripts, asked int) {
		t.Helper()
		before, needs := s.ran("publish OK"), s.ran("publish NEEDS_KEYS")
		m := &semantics.Message{MessageID: id, SessionID: "s"}
		if o := publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, "eu", "us")}); o.Err != nil {
			t.Fatal(o.Err)
		}
		if got, needed := s.ran("publish OK")-before, s.ran("publish NEEDS_KEYS")-needs; got != scripts || needed != asked {
			t.Errorf("%s: %d scripts and %d that asked, want %d and %d", id, got, needed, scripts, asked)
		}
	}
	make2(true, 1)
	send("a", 1, 1)
	send("b", 1, 0)
	for _, name := range []string{"eu", "us"} {
		if err := s.DeleteEntity(t.Context(), semantics.SubscriptionKind, of(name).Path); err != nil {
			t.Fatal(err)
		}
	}
	make2(false, 0)
	send("c", 1, 0)
	send("d", 1, 0)
	if err := audit.New(rawClient(t), namespace).Audit(t.Context(), "news"); err != nil {
		t.Error(err)
	}
	for _, name := range []string{"eu", "us"} {
		if got := receiveOneOf(t, s, of(name)); got.MessageID != "c" {
			t.Errorf("%s gives %q first, want c", name, got.MessageID)
		}
	}
}

func receiveOneOf(t *testing.T, s semantics.Store, source semantics.Source) *semantics.Received {
	t.Helper()
	batch, err := s.Receive(t.Context(), source, 1, semantics.RegisterNever)
	if err != nil || len(batch.Messages) != 1 {
		t.Fatalf("receive from %s: %d messages, %v", source.Path, len(batch.Messages), err)
	}
	return batch.Messages[0]
}

// The size of a topic is added up only where it may be full, and is exact there, whatever made it larger or smaller
// meanwhile.
func TestTOPIC_7_SizeIsExactWhereItCounts(t *testing.T) {
	t.Parallel()
	namespace := redistest.Namespace()
	s := openCounted(t, namespace)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(createTopic(t, s, func(o *semantics.Options) { o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = 1, 1024 }))
	must(subscribe(t, s, "eu"))
	must(subscribe(t, s, "us", func(o *semantics.Options) { o.RequiresSession = true }))
	send := func(bytes int) semantics.SendOutcome {
		m := &semantics.Message{MessageID: "m", SessionID: "s", Body: make([]byte, bytes/2-2)}
		return publish(t, s, semantics.Publication{Message: m, Copies: copiesOf(m, "eu", "us")})
	}
	wantFull := func(what string, err error, actual string) {
		t.Helper()
		if e := semantics.AsError(err); err == nil || e.Code != semantics.EntityFull || e.Details[semantics.DetailActual] != actual {
			t.Errorf("%s: got %v, want ENTITY_FULL with %s bytes", what, err, actual)
		}
	}
	const full = 1 << 20
	must(send(full / 2).Err)
	if s.ran("list_subscriptions OK") != 0 {
		t.Error("the size was added up although there was room")
	}
	must(send(full / 2).Err) // exactly full
	wantFull("one message more", send(4).Err, fmt.Sprint(full+4))

	held := receiveOneOf(t, s, of("eu"))
	codes, err := s.Complete(ctx, of("eu"), []semantics.LockToken{held.LockToken})
	if err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	must(send(full / 4).Err) // as large as what was completed: exactly full again
	wantFull("one more", send(4).Err, fmt.Sprint(full+4))

	held = receiveOneOf(t, s, of("eu")) // a change of properties is never refused, but counts (SETTLE-5)
	codes, err = s.Abandon(ctx, of("eu"), []semantics.LockToken{held.LockToken}, semantics.AbandonOptions{
		Properties: map[string]semantics.Value{"p": semantics.String("12345")},
	})
	if err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	held = receiveOneOf(t, s, of("eu"))
	if codes, err = s.Complete(ctx, of("eu"), []semantics.LockToken{held.LockToken}); err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	must(send(full/4 - 100).Err)
	session, err := s.AcceptSession(ctx, of("us").Path, "s")
	must(err)
	source := of("us")
	source.SessionLock = session.Lock
	if _, err = s.SetSessionState(ctx, source, make([]byte, 101), nil); err == nil {
		t.Error("a state of 101 bytes was set where 100 are free")
	}
	wantFull("a state too large", err, fmt.Sprint(full+1))
	_, err = s.SetSessionState(ctx, source, make([]byte, 96), nil)
	must(err)
	wantFull("one more", send(6).Err, fmt.Sprint(full+2))
	must(send(4).Err)
	if err := audit.New(rawClient(t), namespace).Audit(ctx, "news"); err != nil {
		t.Error(err)
	}
}

// What a call pushes out of a subscription makes room for the calls behind it that ride in the same script.
func TestTOPIC_7_DroppedMessagesMakeRoomAtOnce(t *testing.T) {
	t.Parallel()
	s := openTopics(t, func(o *semantics.Options) { o.MaxSizeInMegabytes, o.MaxMessageSizeInKilobytes = 1, 1024 })
	s.subscribe("eu", func(o *semantics.Options) { o.MaxMessageCount, o.Overflow = 1, semantics.DropOldestOverflow })
	s.subscribe("us")
	large := func(kib int, to string) semantics.Publication {
		m := &semantics.Message{MessageID: "m", Body: make([]byte, kib<<10-1)}
		return semantics.Publication{Message: m, Copies: copiesOf(m, to)}
	}
	s.fails("publish", publish(t, s, large(1000, "eu")).Err)
	routes, err := s.Routes(t.Context(), "news")
	s.fails("routes", err)
	outcomes := s.Publish(t.Context(), "news", routes.Version, [][]semantics.Publication{
		{large(1, "eu")}, {large(1000, "us")}, {large(24, "us")},
	})
	for i, want := range []semantics.Code{"", "", semantics.EntityFull} {
		if semantics.CodeOf(outcomes[i].Err) != want {
			t.Errorf("call %d: got %v, want %q", i, outcomes[i].Err, want)
		}
	}
	s.audit()
}

// A publish wakes those who wait for a subscription or for a session of one, in whichever sidecar.
func TestRECV_10_PublishWakesWaitingReceives(t *testing.T) {
	t.Parallel()
	namespace := redistest.Namespace()
	here, there := redistest.Open(t, redisstore.Options{Namespace: namespace}), redistest.Open(t, redisstore.Options{Namespace: namespace})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(createTopic(t, here))
	must(subscribe(t, here, "plain"))
	must(subscribe(t, here, "overflows", func(o *semantics.Options) { o.MaxMessageCount, o.Overflow = 1, semantics.DropOldestOverflow }))
	must(subscribe(t, here, "sessions", func(o *semantics.Options) { o.RequiresSession = true }))
	must(subscribe(t, here, "held", func(o *semantics.Options) { o.RequiresSession = true }))
	session, err := here.AcceptSession(ctx, of("held").Path, "s")
	must(err)
	held := of("held")
	held.SessionLock = session.Lock
	waits := map[string]func() error{
		"plain":     func() error { _, err := here.Receive(ctx, of("plain"), 1, semantics.RegisterIfEmpty); return err },
		"overflows": func() error { _, err := here.Receive(ctx, of("overflows"), 1, semantics.RegisterIfEmpty); return err },
		"sessions": func() error {
			_, _, err := here.AcceptNextSession(ctx, of("sessions").Path, semantics.RegisterIfEmpty)
			return err
		},
		"held": func() error { _, err := here.Receive(ctx, held, 1, semantics.RegisterIfEmpty); return err },
		"dead": func() error { _, err := here.Receive(ctx, deadOf("plain"), 1, semantics.RegisterIfEmpty); return err },
	}
	sources := map[string]semantics.Source{
		"plain": of("plain"), "overflows": of("overflows"), "sessions": of("sessions"), "held": held, "dead": deadOf("plain"),
	}
	watches := map[string]semantics.Watch{}
	for name, wait := range waits {
		watches[name], err = here.Watch(ctx, sources[name])
		must(err)
		defer watches[name].Close()
		must(wait())
	}
	m, reason := &semantics.Message{MessageID: "m", SessionID: "s"}, "none"
	must(publish(t, there, semantics.Publication{Message: m, Copies: append(copiesOf(m, "held", "overflows", "plain", "sessions"),
		semantics.Copy{Subscription: "plain", Message: m, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}})}).Err)
	for name, watch := range watches {
		limit, cancel := context.WithTimeout(ctx, redistest.Patience)
		select {
		case <-watch.C():
		case <-limit.Done():
			t.Errorf("%s: never woken", name)
		}
		cancel()
	}
}

func deadOf(name string) semantics.Source {
	source := of(name)
	source.SubQueue = semantics.DeadLetterQueue
	return source
}

// The number that the topic gave a message stays with its copies, also as dead letters; one that is sent again is a new
// message (MSG-6, MSG-17).
func TestMSG_6_NumberInTheTopic(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	s.subscribe("eu")
	s.publish(&semantics.Message{MessageID: "vanishes"})
	m := &semantics.Message{MessageID: "m"}
	if o := s.publish(m, copiesOf(m, "eu")...); o.Err != nil || o.Stored[0].SequenceNumber != 2 {
		t.Fatalf("%+v", o)
	}
	want := func(what string, m *semantics.Received, number, origin int64) {
		t.Helper()
		if m.SequenceNumber != number || m.EnqueuedSequenceNumber != origin {
			t.Errorf("%s: numbers %d and %d, want %d and %d", what, m.SequenceNumber, m.EnqueuedSequenceNumber, number, origin)
		}
	}
	held := receiveOneOf(t, s, of("eu"))
	want("received", held, 1, 2)
	codes, err := s.DeadLetter(t.Context(), of("eu"), []semantics.LockToken{held.LockToken}, semantics.DeadLetterTexts{}, nil)
	if err != nil || codes[0] != "" {
		t.Fatal(codes, err)
	}
	want("dead letter", receiveOneOf(t, s, deadOf("eu")), 1, 2)
	s.clock.Advance(time.Minute)
	again := semantics.Resubmission{SequenceNumber: 1, MessageID: "longer", NewID: true, MoreBytes: 5}
	moved, err := s.Resubmit(t.Context(), deadOf("eu"), of("EU").Path, []semantics.Resubmission{again}, false)
	if err != nil || moved[0].SequenceNumber != 2 {
		t.Fatal(moved, err)
	}
	want("sent again", receiveOneOf(t, s, of("eu")), 2, 2)
	s.audit()
}

// Whoever looks after metrics learns why copies became dead letters, once for each.
func TestDLQ_24_CopiesThatAreDeadLetters(t *testing.T) {
	t.Parallel()
	var told atomic.Value
	seen := map[string][]int64{}
	var mu sync.Mutex
	s := redistest.Open(t, redisstore.Options{DeadLettered: func(entity, cause string, numbers []int64) {
		mu.Lock()
		defer mu.Unlock()
		told.Store(entity)
		seen[cause] = append(seen[cause], numbers...)
	}})
	if err := createTopic(t, s); err != nil {
		t.Fatal(err)
	}
	if err := subscribe(t, s, "eu", func(o *semantics.Options) { o.MaxMessageCount, o.Overflow = 1, semantics.DeadLetterOverflow }); err != nil {
		t.Fatal(err)
	}
	m := &semantics.Message{MessageID: "m"}
	copies := copiesOf(m, "eu", "eu")
	for _, reason := range []string{semantics.ReasonFilterFailed, semantics.ReasonHeaderSize, semantics.ReasonNoSession} {
		copies = append(copies, semantics.Copy{Subscription: "eu", Message: m, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}})
	}
	if o := publish(t, s, semantics.Publication{Message: m, Copies: copies}); o.Err != nil {
		t.Fatal(o.Err)
	}
	want := map[string][]int64{
		semantics.ReasonOverflow: {2}, semantics.ReasonFilterFailed: {3}, semantics.ReasonHeaderSize: {4}, semantics.ReasonNoSession: {5},
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) || told.Load() != of("eu").Path {
		t.Errorf("told %v of %v, want %v", seen, told.Load(), want)
	}
}
