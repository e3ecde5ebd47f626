package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// wants compares everything that is kept of the topic and its subscriptions, whose parts stand as "eu:log".
func (s *topics) wants(step string, lines ...string) {
	s.t.Helper()
	got := dump(s.t, s.namespace)
	for i := range got {
		got[i] = strings.TrimPrefix(got[i], "subscriptions/")
	}
	slices.Sort(got)
	slices.Sort(lines)
	if diff := cmp.Diff(append([]string{}, lines...), got); diff != "" {
		s.t.Fatalf("%s (-want +got):\n%s", step, diff)
	}
	s.audit()
}

// Each step leaves exactly the keys and members it should: the topic's own, and those of each kind of copy.
func TestTopicStateStepByStep(t *testing.T) {
	t.Parallel()
	s := openTopics(t, func(o *semantics.Options) { o.RequiresDuplicateDetection = true })
	s.subscribe("EU")
	s.subscribe("us", func(o *semantics.Options) { o.RequiresSession = true })
	s.subscribe("short", func(o *semantics.Options) {
		o.DefaultMessageTimeToLive, o.MaxMessageCount, o.Overflow = time.Minute, 1, semantics.DeadLetterOverflow
	})
	base := []string{
		"subscriptions eu=01", "subscriptions us=11", "subscriptions short=01",
		"rules eu $default", "rules us $default", "rules short $default",
	}
	wants := func(step string, lines ...string) {
		t.Helper()
		s.wants(step, append(slices.Clone(base), lines...)...)
	}
	wants("created")

	one := &semantics.Message{MessageID: "a", SessionID: "x"} // 2 bytes
	s.fails("publish", s.publish(one, copiesOf(one, "eu", "short", "us")...).Err)
	history := fmt.Sprintf("history a=%d:1", s.clock.Now().UnixMilli())
	wants("a copy for each", "entity sequence=1", "entity bytes=0", "entity most_bytes=6", history, "history_times a",
		"eu:entity sequence=1", "eu:entity bytes=2", "eu:log 1-2 of 1",
		"us:entity sequence=1", "us:entity bytes=2", "us:log 1-2 of 1", "us:by_session x\x00a0000000000000001",
		fmt.Sprintf("us:sessions x=1:%d", s.clock.Now().UnixMilli()), fmt.Sprintf("us:ready_sessions x@%d", s.clock.Now().UnixMilli()),
		"short:entity sequence=1", "short:entity bytes=2", "short:log 1-2 of 1", "short:expiry 1")

	if again := s.publish(one, copiesOf(one, "eu")...); again.Err != nil || !again.Stored[0].Deduplicated {
		t.Fatalf("again: %+v", again)
	}
	for _, source := range []semantics.Source{of("eu"), of("short")} {
		got, err := s.Receive(t.Context(), source, 9, semantics.RegisterNever)
		s.fails("receive", err)
		codes, err := s.Complete(t.Context(), source, []semantics.LockToken{got.Messages[0].LockToken})
		if err != nil || codes[0] != "" {
			t.Fatalf("complete: %v %v", codes, err)
		}
	}
	s.fails("delete us", s.DeleteEntity(t.Context(), semantics.SubscriptionKind, "NEWS/subscriptions/US"))
	base = slices.DeleteFunc(base, func(line string) bool { return strings.Contains(line, " us") })
	rest := []string{
		history, "history_times a", "eu:entity bytes=0", "eu:entity cursor=1", "short:entity bytes=0", "short:entity cursor=1",
		"entity most_bytes=6",
	}
	wants("drained, and a subscription less", append(rest, "entity sequence=1", "entity bytes=0",
		"eu:entity sequence=1", "short:entity sequence=1")...)

	// One of two copies is one too many, one is a dead letter from the start, one has another form.
	reason, description := "no good", "at all"
	two, other := &semantics.Message{MessageID: "bb"}, &semantics.Message{MessageID: "ccc"}
	s.fails("publish", s.publish(two, append(copiesOf(two, "eu", "short", "short"),
		semantics.Copy{Subscription: "eu", Message: two, DeadLetter: &semantics.DeadLetterTexts{Reason: &reason, Description: &description}},
		semantics.Copy{Subscription: "eu", Message: other})...).Err)
	history = strings.Replace(strings.Replace(history, " a", " bb", 1), ":1", ":2", 1)
	wants("dead letters", append(slices.DeleteFunc(rest, func(line string) bool {
		return strings.Contains(line, "bytes=") || line == "short:entity cursor=1"
	}), history, "history_times bb", "entity sequence=2", "entity bytes=0", "entity most_bytes=17",
		"eu:entity sequence=4", "eu:entity bytes=5", "eu:log 2-2 of 2", "eu:log 4-3 of 2", "eu:gaps 3-3",
		"eu:entity dead_sequence=1", "eu:entity dead_bytes=2", "eu:dead_log 1-2 of 2", "eu:dead_numbers 1",
		"short:entity cursor=1", "short:entity sequence=3", "short:entity bytes=2", "short:log 2-2 of 2", "short:expiry 2", "short:gaps 3-3",
		"short:entity dead_sequence=1", "short:entity dead_bytes=2", "short:dead_log 1-2 of 2", "short:dead_numbers 1")...)

	s.fails("delete", s.DeleteEntity(t.Context(), semantics.TopicKind, "news"))
	base = nil
	s.wants("deleted")
}

// A scheduled message lies at the topic. When it is activated it leaves nothing there, and a second activation finds
// nothing to do.
func TestSCHED_7_ActivationStepByStep(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	s.subscribe("eu", func(o *semantics.Options) { o.DefaultMessageTimeToLive = time.Hour })
	base := []string{"subscriptions eu=01", "rules eu $default"}
	wants := func(step string, lines ...string) {
		t.Helper()
		s.wants(step, append(slices.Clone(base), lines...)...)
	}
	for _, id := range []string{"a", "bb"} {
		s.fails("schedule", s.publish(&semantics.Message{MessageID: id, ScheduledAt: s.clock.Now().Add(time.Minute)}).Err)
	}
	wants("scheduled", "entity sequence=2", "entity bytes=3", "entity most_bytes=3", "scheduled 1-1", "scheduled 2-2",
		"due 0000000000000001", "due 0000000000000002", "scheduled_ids a\x000000000000000001", "scheduled_ids bb\x000000000000000002")

	due, err := s.Due(t.Context(), "news", 9)
	if err != nil || len(due) != 0 {
		t.Fatalf("due before the time: %v %v", due, err)
	}
	s.clock.Advance(time.Minute)
	due, err = s.Due(t.Context(), "NEWS", 1)
	if err != nil || len(due) != 1 || due[0].SequenceNumber != 1 || due[0].State != semantics.Scheduled {
		t.Fatalf("due: %+v %v", due, err)
	}
	activate := func() {
		t.Helper()
		routes, err := s.Routes(t.Context(), "news")
		s.fails("routes", err)
		m := &due[0].Message
		s.fails("activate", s.Activate(t.Context(), "news", routes.Version, []semantics.Activation{
			{SequenceNumber: 1, EnqueuedAt: due[0].EnqueuedAt, Publication: semantics.Publication{Message: m, Copies: copiesOf(m, "eu", "eu")}},
			{SequenceNumber: 7, EnqueuedAt: due[0].EnqueuedAt, Publication: semantics.Publication{Message: m, Copies: copiesOf(m, "eu")}},
		}))
	}
	copies := []string{
		"entity sequence=3", "entity most_bytes=4",
		"eu:entity sequence=2", "eu:entity bytes=2", "eu:log 1-1 of 3", "eu:log 2-1 of 3", "eu:expiry 1", "eu:expiry 2",
	}
	after := append([]string{
		"entity bytes=2", "scheduled 2-2", "due 0000000000000002", "scheduled_ids bb\x000000000000000002",
	}, copies...)
	activate()
	wants("activated", after...)
	activate()
	wants("activated twice", after...)
	s.fails("cancel", s.CancelScheduled(t.Context(), "news", []int64{2}))
	wants("cancelled", append(copies, "entity bytes=0")...)
}

// What was decided by other routes is not done, and takes all that follow it from the same caller with it; others go
// on.
func TestTOPIC_4_ChangedRoutesMidway(t *testing.T) {
	t.Parallel()
	namespace := redistest.Namespace()
	there := redistest.Open(t, redisstore.Options{Namespace: namespace})
	if err := createTopic(t, there); err != nil {
		t.Fatal(err)
	}
	if err := subscribe(t, there, "eu"); err != nil {
		t.Fatal(err)
	}
	scripts := 0
	here := redistest.Open(t, redisstore.Options{Namespace: namespace, Observe: func(script, _ string, _ time.Duration) {
		if script != "publish" {
			return
		}
		if scripts++; scripts == 1 {
			if _, err := there.CreateRule(context.Background(), of("eu").Path, semantics.Rule{Name: "more"}); err != nil {
				t.Error(err)
			}
		}
	}})
	routes, err := here.Routes(t.Context(), "news")
	if err != nil {
		t.Fatal(err)
	}
	var calls [][]semantics.Publication
	for range 3 { // each fills a script by itself
		m := &semantics.Message{MessageID: "m", Body: make([]byte, 1000<<10)}
		calls = append(calls, []semantics.Publication{{Message: m, Copies: copiesOf(m, "eu")}})
	}
	calls[0][0].Message.Body = calls[0][0].Message.Body[:100]
	options := semantics.DefaultOptions()
	options.MaxMessageSizeInKilobytes = 2000
	if _, err := there.UpdateEntity(t.Context(), semantics.TopicKind, "news", options, []string{"maxMessageSizeInKilobytes"}); err != nil {
		t.Fatal(err)
	}
	outcomes := here.Publish(t.Context(), "news", routes.Version, calls)
	for i, o := range outcomes {
		if changed := errors.Is(o.Err, semantics.ErrRoutesChanged); changed != (i > 0) {
			t.Errorf("call %d: %v", i, o.Err)
		}
	}
	counts, err := there.Runtime(t.Context(), semantics.SubscriptionKind, of("eu").Path)
	if err != nil || counts.Active != 1 || scripts != 2 {
		t.Errorf("%d copies after %d scripts, want 1 after 2: the third call must not be made (%v)", counts.Active, scripts, err)
	}
}
