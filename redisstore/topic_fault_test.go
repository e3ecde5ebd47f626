package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/audit"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// killedAfter is a store whose process is gone as far as its caller's context goes, once a script has run for the nth
// time.
func killedAfter(t *testing.T, namespace, script string, n int) (*redisstore.Store, context.Context) {
	t.Helper()
	ctx, kill := context.WithCancel(t.Context())
	t.Cleanup(kill)
	return redistest.Open(t, redisstore.Options{Namespace: namespace, Observe: func(name, _ string, _ time.Duration) {
		if name == script {
			if n--; n == 0 {
				kill()
			}
		}
	}}), ctx
}

// keysLeft are all keys of news and its subscriptions.
func keysLeft(t *testing.T, raw *redis.Client, namespace string) []string {
	t.Helper()
	keys, err := redistest.Left(t.Context(), raw, "sb:{"+namespace+"/news}:*")
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// fill gives news, with the subscriptions 0, 1 and 2, something of everything.
func fill(t *testing.T, s semantics.Store) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(createTopic(t, s, func(o *semantics.Options) { o.RequiresDuplicateDetection = true }))
	m := &semantics.Message{MessageID: "m", SessionID: "s"}
	reason := "none"
	for i := range 3 {
		name := fmt.Sprint(i)
		must(subscribe(t, s, name, func(o *semantics.Options) { o.RequiresSession = i == 1 }))
		must(publish(t, s, semantics.Publication{Message: &semantics.Message{MessageID: name}, Copies: append(copiesOf(m, name, name),
			semantics.Copy{Subscription: name, Message: m, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason}})}).Err)
	}
	shared := &semantics.Message{MessageID: "shared", Body: make([]byte, 600)}
	must(subscribe(t, s, "3"))
	must(subscribe(t, s, "4"))
	must(publish(t, s, semantics.Publication{Message: shared, Copies: copiesOf(shared, "3", "4")}).Err)
	must(publish(t, s, semantics.Publication{Message: &semantics.Message{MessageID: "later", ScheduledAt: time.Now().Add(time.Hour)}}).Err)
}

// Wherever the deletion of a topic is cut off, nobody finds it or a subscription any more, and whoever wants the name,
// or a sweeper, removes the rest. What is made then is new.
func TestENT_8_TopicDeletionCutOff(t *testing.T) {
	t.Parallel()
	finishers := map[string]func(t *testing.T, s *redisstore.Store) (made bool){
		"create": func(t *testing.T, s *redisstore.Store) bool {
			if err := createTopic(t, s); err != nil {
				t.Fatal(err)
			}
			return true
		},
		"create a queue": func(t *testing.T, s *redisstore.Store) bool {
			_, created, err := s.CreateEntity(t.Context(), semantics.QueueKind, "NEWS", semantics.DefaultOptions())
			if err != nil || !created {
				t.Fatal(created, err)
			}
			return true
		},
		"delete": func(t *testing.T, s *redisstore.Store) bool {
			err := s.DeleteEntity(t.Context(), semantics.TopicKind, "news")
			if semantics.CodeOf(err) != semantics.EntityNotFound {
				t.Fatalf("delete again: %v", err)
			}
			return false
		},
		"sweep": func(t *testing.T, s *redisstore.Store) bool {
			sweeping(t, s)
			return false
		},
	}
	cuts := map[string]int{"delete_topic": 1, "delete_subscription": 1, "unregister_name": 2}
	for script, n := range cuts {
		for name, finish := range finishers {
			t.Run(script+" "+name, func(t *testing.T) {
				t.Parallel()
				raw, namespace := rawClient(t), redistest.Namespace()
				s := redistest.Open(t, redisstore.Options{Namespace: namespace})
				fill(t, s)
				dying, ctx := killedAfter(t, namespace, script, n)
				if err := dying.DeleteEntity(ctx, semantics.TopicKind, "news"); semantics.CodeOf(err) != semantics.Cancelled {
					t.Fatalf("got %v, want to be cut off", err)
				}
				wantGone(t, s)
				if len(keysLeft(t, raw, namespace)) == 0 {
					t.Fatal("nothing is left: this proves nothing")
				}
				made := finish(t, s)
				if made {
					if keys := keysLeft(t, raw, namespace); len(keys) != 1 || !strings.HasSuffix(keys[0], ":entity") {
						t.Errorf("what was made begins with %v", keys)
					}
					return
				}
				awaitNoKeys(t, raw, namespace)
			})
		}
	}
}

// wantGone checks that no verb finds news or one of its subscriptions.
func wantGone(t *testing.T, s *redisstore.Store) {
	t.Helper()
	ctx := t.Context()
	calls := map[string]func() error{
		"get topic":        func() error { _, err := s.GetEntity(ctx, semantics.TopicKind, "news"); return err },
		"get subscription": func() error { _, err := s.GetEntity(ctx, semantics.SubscriptionKind, of("1").Path); return err },
		"runtime":          func() error { _, err := s.Runtime(ctx, semantics.TopicKind, "news"); return err },
		"counts":           func() error { _, err := s.Runtime(ctx, semantics.SubscriptionKind, of("1").Path); return err },
		"receive":          func() error { _, err := s.Receive(ctx, of("0"), 1, semantics.RegisterNever); return err },
		"accept":           func() error { _, err := s.AcceptSession(ctx, of("1").Path, "s"); return err },
		"peek":             func() error { _, err := s.Peek(ctx, of("2"), 1, 1, semantics.ShowAll); return err },
		"routes":           func() error { _, err := s.Routes(ctx, "news"); return err },
		"rules":            func() error { _, _, err := s.ListRules(ctx, of("2").Path, "", 1); return err },
		"due":              func() error { _, err := s.Due(ctx, "news", 1); return err },
		"list":             func() error { _, _, err := s.ListEntities(ctx, semantics.SubscriptionKind, "news", "", 1); return err },
		"subscribe":        func() error { return subscribe(t, s, "new") },
		"publish": func() error {
			return s.Publish(ctx, "news", 1, [][]semantics.Publication{{{Message: &semantics.Message{MessageID: "m"}}}})[0].Err
		},
		"delete subscription": func() error { return s.DeleteEntity(ctx, semantics.SubscriptionKind, of("2").Path) },
	}
	for name, call := range calls {
		if err := call(); semantics.CodeOf(err) != semantics.EntityNotFound {
			t.Errorf("%s: got %v, want ENTITY_NOT_FOUND", name, err)
		}
	}
	if found, _, err := s.ListEntities(ctx, semantics.TopicKind, "", "", 9); err != nil || len(found) > 0 {
		t.Errorf("topics: %v %v", found, err)
	}
}

func awaitNoKeys(t *testing.T, raw *redis.Client, namespace string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		keys := keysLeft(t, raw, namespace)
		if len(keys) == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%v are left", keys)
		}
	}
}

// Whoever is slow to delete a topic leaves alone what others have made under its name meanwhile.
func TestENT_9_SlowDeletionSparesTheNewTopic(t *testing.T) {
	t.Parallel()
	raw, namespace := rawClient(t), redistest.Namespace()
	there := redistest.Open(t, redisstore.Options{Namespace: namespace})
	fill(t, there)
	slow := redistest.Open(t, redisstore.Options{Namespace: namespace, Observe: func(script, _ string, _ time.Duration) {
		if script == "delete_topic" {
			fill(t, there) // which deletes the rest first
		}
	}})
	if err := slow.DeleteEntity(t.Context(), semantics.TopicKind, "news"); err != nil {
		t.Fatal(err)
	}
	if err := audit.New(raw, namespace).Audit(t.Context(), "news"); err != nil {
		t.Error(err)
	}
	counts, err := there.Runtime(t.Context(), semantics.SubscriptionKind, of("2").Path)
	if err != nil || counts.Active != 2 || counts.DeadLetter != 1 {
		t.Errorf("got %+v %v, want what was published to the new topic", counts, err)
	}
}

// soon is an instant by Redis' clock that is not over before what is sent now has arrived.
func soon(t *testing.T, raw *redis.Client) time.Time {
	t.Helper()
	now, err := raw.Time(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	return now.Add(300 * time.Millisecond).Truncate(time.Millisecond)
}

// awaitDue waits until news has so many messages to activate.
func awaitDue(t *testing.T, s semantics.Store, want int) []*semantics.Received {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), redistest.Patience)
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		due, err := s.Due(ctx, "news", want)
		if err == nil && len(due) == want {
			return due
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%d messages are due, want %d (%v)", len(due), want, err)
		}
	}
}

// However many sidecars activate at the same time, each message gets its copies once, and in order.
func TestSCHED_7_ActivatedOnceBySeveral(t *testing.T) {
	t.Parallel()
	const n = 200
	raw, namespace := rawClient(t), redistest.Namespace()
	var brokers []*broker.Broker
	for range 3 {
		broker := brokerOver(redistest.Open(t, redisstore.Options{Namespace: namespace}))
		t.Cleanup(broker.Close)
		brokers = append(brokers, broker)
	}
	s := redistest.Open(t, redisstore.Options{Namespace: namespace})
	if err := createTopic(t, s); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"eu", "us"} {
		if err := subscribe(t, s, name); err != nil {
			t.Fatal(err)
		}
	}
	var publications []semantics.Publication
	for _, m := range messagesOf(n, semantics.Message{ScheduledAt: soon(t, raw)}) {
		publications = append(publications, semantics.Publication{Message: m})
	}
	if err := publish(t, s, publications...).Err; err != nil {
		t.Fatal(err)
	}
	awaitDue(t, s, n)
	dying, ctx := killedAfter(t, namespace, "activate", 1) // one has enqueued some, and does not learn of it
	if err := brokerOver(dying).ActivateDue(ctx, "news"); semantics.CodeOf(err) != semantics.Cancelled {
		t.Fatalf("got %v, want to be cut off", err)
	}
	var all sync.WaitGroup
	for _, broker := range brokers {
		all.Go(func() {
			if err := broker.ActivateDue(t.Context(), "news"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, name := range []string{"eu", "us"} {
		found, err := s.Peek(t.Context(), of(name), 1, 2*n, semantics.ShowAll)
		if err != nil || len(found) != n {
			t.Fatalf("%s has %d messages (%v), want %d", name, len(found), err, n)
		}
		for i, m := range found {
			if m.MessageID != fmt.Sprint(i) || m.SequenceNumber != int64(i+1) || m.EnqueuedSequenceNumber != int64(n+i+1) {
				t.Fatalf("%s: message %d is %q with the numbers %d and %d", name, i, m.MessageID, m.SequenceNumber, m.EnqueuedSequenceNumber)
			}
		}
	}
	if err := audit.New(raw, namespace).Audit(t.Context(), "news"); err != nil {
		t.Error(err)
	}
}

// Changes of topics whose answers were lost have taken effect once, and their repetition finds that they are done.
func TestERR_6_TopicsAfterLostAnswers(t *testing.T) {
	t.Parallel()
	l := openLostAnswers(t, func(*semantics.Options) {})
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	want := func(what string, err error, code semantics.Code) {
		t.Helper()
		if semantics.CodeOf(err) != code {
			t.Errorf("%s again: got %v, want %q", what, err, code)
		}
	}
	must(createTopic(t, l.sound, func(o *semantics.Options) { o.RequiresDuplicateDetection = true }))
	must(subscribe(t, l.sound, "eu"))
	active := func() int64 {
		t.Helper()
		counts, err := l.sound.Runtime(ctx, semantics.SubscriptionKind, of("eu").Path)
		must(err)
		return counts.Active
	}

	m := &semantics.Message{MessageID: "m"}
	var again semantics.SendOutcome
	routes, err := l.sound.Routes(ctx, "news")
	must(err)
	must(l.lose("publish", func(s *redisstore.Store) error {
		again = s.Publish(ctx, "news", routes.Version, [][]semantics.Publication{{{Message: m, Copies: copiesOf(m, "eu")}}})[0]
		return again.Err
	}))
	if !again.Stored[0].Deduplicated || again.Stored[0].SequenceNumber != 1 || active() != 1 {
		t.Errorf("published again: %+v, %d copies", again, active())
	}

	later := &semantics.Message{MessageID: "later", ScheduledAt: soon(t, rawClient(t))}
	must(publish(t, l.sound, semantics.Publication{Message: later}).Err)
	due := awaitDue(t, l.sound, 1)
	must(l.lose("activate", func(s *redisstore.Store) error {
		return s.Activate(ctx, "news", routes.Version, []semantics.Activation{
			{SequenceNumber: 2, EnqueuedAt: due[0].EnqueuedAt, Publication: semantics.Publication{Message: later, Copies: copiesOf(later, "eu")}},
		})
	}))
	if active() != 2 {
		t.Errorf("activated twice: %d copies, want 2", active())
	}

	rule := semantics.Rule{Name: "more", Filter: semantics.RuleFilter{None: true}}
	want("create rule", l.lose("create rule", func(s *redisstore.Store) error {
		_, err := s.CreateRule(ctx, of("eu").Path, rule)
		return err
	}), semantics.RuleAlreadyExists)
	must(l.lose("replace rule", func(s *redisstore.Store) error { // a repeat has the same result
		_, err := s.ReplaceRule(ctx, of("eu").Path, rule)
		return err
	}))
	want("delete rule", l.lose("delete rule", func(s *redisstore.Store) error {
		return s.DeleteRule(ctx, of("eu").Path, "MORE")
	}), semantics.RuleNotFound)
	want("delete subscription", l.lose("delete subscription", func(s *redisstore.Store) error {
		return s.DeleteEntity(ctx, semantics.SubscriptionKind, of("eu").Path)
	}), semantics.EntityNotFound)
}

// What one caller publishes after a call whose outcome is unknown is not sent, so that nothing overtakes it.
func TestSEND_3_NothingOvertakesALostPublish(t *testing.T) {
	t.Parallel()
	l := openLostAnswers(t, func(*semantics.Options) {})
	if err := createTopic(t, l.sound); err != nil {
		t.Fatal(err)
	}
	if err := subscribe(t, l.sound, "eu"); err != nil {
		t.Fatal(err)
	}
	routes, err := l.there.Routes(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	var calls [][]semantics.Publication
	for range 3 {
		m := &semantics.Message{MessageID: "m"}
		many := make([]string, 2400) // two such calls are more than one script takes
		for i := range many {
			many[i] = "eu"
		}
		calls = append(calls, []semantics.Publication{{Message: m, Copies: copiesOf(m, many...)}})
	}
	l.cut.Deaf.Store(true)
	outcomes := l.there.Publish(t.Context(), "news", routes.Version, calls)
	l.cut.Deaf.Store(false)
	wantUnknown(t, "first", outcomes[0].Err)
	for i, o := range outcomes[1:] {
		e := semantics.AsError(o.Err)
		if o.Err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailOutcome] != "" || e.RetryAfter == 0 {
			t.Errorf("call %d: got %v, want one that certainly was not made", i+1, o.Err)
		}
	}
	counts, err := l.sound.Runtime(t.Context(), semantics.SubscriptionKind, of("eu").Path)
	if err != nil || counts.Active != 2400 {
		t.Errorf("%d copies (%v), want those of the first call", counts.Active, err)
	}
}
