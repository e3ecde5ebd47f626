package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Whatever changes the routes of a topic gives them a version that no later state of the topic has, although Redis
// forgets that change. A sidecar that has seen it would else go on by routes that never came back.
func TestDUR_4_VersionOfRoutesNeverComesAgain(t *testing.T) {
	t.Parallel()
	update := func(s *topics, kind semantics.Kind, path, name string, change func(*semantics.Options)) {
		t.Helper()
		options := semantics.DefaultOptions()
		change(&options)
		_, err := s.UpdateEntity(t.Context(), kind, path, options, []string{name})
		s.fails("update", err)
	}
	eu := of("eu").Path
	for what, change := range map[string]func(*topics){
		"create_subscription": func(s *topics) { s.subscribe("us") },
		"delete_subscription": func(s *topics) { s.fails("delete", s.DeleteEntity(t.Context(), semantics.SubscriptionKind, eu)) },
		"create_rule": func(s *topics) {
			_, err := s.CreateRule(t.Context(), eu, semantics.Rule{Name: "more", Filter: semantics.RuleFilter{All: true}})
			s.fails("rule", err)
		},
		"replace_rule": func(s *topics) {
			_, err := s.ReplaceRule(t.Context(), eu, semantics.Rule{Name: semantics.DefaultRule, Filter: semantics.RuleFilter{None: true}})
			s.fails("rule", err)
		},
		"delete_rule": func(s *topics) { s.fails("rule", s.DeleteRule(t.Context(), eu, semantics.DefaultRule)) },
		"update_entity of a subscription": func(s *topics) {
			update(s, semantics.SubscriptionKind, eu, "deadLetteringOnFilterEvaluationExceptions", func(o *semantics.Options) {
				o.DeadLetteringOnFilterEvaluationExceptions = false
			})
		},
		"update_entity of a topic": func(s *topics) {
			update(s, semantics.TopicKind, "news", "unmatchedTo", func(o *semantics.Options) { o.UnmatchedTo = "rest" })
		},
		"create_entity": func(s *topics) {
			s.fails("delete", s.DeleteEntity(t.Context(), semantics.TopicKind, "news"))
			s.fails("create", createTopic(t, s.Store))
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := openTopics(t)
			s.subscribe("eu")
			version := func() int64 {
				routes, err := s.Routes(t.Context(), "news")
				s.fails("routes", err)
				return routes.Version
			}
			seen := map[int64]bool{version(): true}
			past := redistest.Remember(t, s.raw, s.namespace)
			for range 3 {
				change(s)
				if v := version(); seen[v] {
					t.Fatalf("the version %d comes again", v)
				} else {
					seen[v] = true
				}
				past.Return(t)
			}
		})
	}
}

// A sidecar that knows routes which Redis has forgotten sends to the subscriptions that there are, although as many
// changes were made since as before.
func TestDUR_4_SendsAfterRedisForgotASubscription(t *testing.T) {
	t.Parallel()
	s := openTopics(t)
	s.subscribe("eu")
	broker := brokerOver(s.Store)
	defer broker.Close()
	send := func(text string) {
		t.Helper()
		_, err := broker.Send(t.Context(), semantics.ToTopic("news"), []*semantics.Message{{Body: []byte(text), BodyKind: semantics.BodyText}})
		s.fails("send", err)
	}
	past := redistest.Remember(t, s.raw, s.namespace)
	s.subscribe("forgotten")
	send("before")
	past.Return(t)
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: s.clock.Now})
	s.fails("subscribe", subscribe(t, other, "us"))
	send("after")
	for name, want := range map[string]int64{"eu": 1, "us": 1} {
		counts, err := s.Runtime(t.Context(), semantics.SubscriptionKind, of(name).Path)
		s.fails("runtime", err)
		if counts.Available != want {
			t.Errorf("%s has %d messages, want %d", name, counts.Available, want)
		}
	}
	s.audit()
}

// A version of a session's state that Redis forgot is not taken for that of a later one (SESS-33a).
func TestDUR_4_VersionOfStateNeverComesAgain(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(o *semantics.Options) { o.RequiresSession = true })
	held, err := s.AcceptSession(t.Context(), "orders", "a")
	if err != nil {
		t.Fatal(err)
	}
	source := semantics.Source{Path: "orders", SessionLock: held.Lock}
	set := func(text string, expected int64) (int64, error) {
		return s.SetSessionState(t.Context(), source, []byte(text), &expected)
	}
	past := redistest.Remember(t, s.raw, s.namespace)
	forgotten, err := set("forgotten", 0)
	if err != nil {
		t.Fatal(err)
	}
	past.Return(t)
	if _, err := set("after", 0); err != nil {
		t.Fatal(err)
	}
	if _, err := set("built upon what was forgotten", forgotten); semantics.CodeOf(err) != semantics.PreconditionFailed {
		t.Errorf("got %v, want %s", err, semantics.PreconditionFailed)
	}
}

// What a sidecar learns about temporary entities, which others delete, does not grow with their number; and it sends to
// those that are there, whether it knows them or not (finding 14).
func TestDUR_4_WhatIsLearntOfEntitiesIsBounded(t *testing.T) {
	t.Parallel()
	const most, entities = 8, 40
	s := openTopics(t)
	s.LearnAtMost(most)
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace, Now: s.clock.Now})
	options := semantics.DefaultOptions()
	options.RequiresSession = true
	message := &semantics.Message{SessionID: "a"}
	for i := range entities {
		name := fmt.Sprint("temporary", i)
		_, _, err := other.CreateEntity(t.Context(), semantics.QueueKind, name, options)
		s.fails("create", err)
		s.fails("subscribe", subscribe(t, other, name, func(o *semantics.Options) { o.RequiresSession = true }))
		for range 2 {
			_, err = s.Send(t.Context(), name, []*semantics.Message{message})
			s.fails("send", err)
			s.fails("publish", s.publish(message, copiesOf(message, name)...).Err)
		}
		if i%2 == 0 {
			s.fails("delete", other.DeleteEntity(t.Context(), semantics.QueueKind, name))
			s.fails("delete", other.DeleteEntity(t.Context(), semantics.SubscriptionKind, of(name).Path))
		}
	}
	if queues, subscriptions := s.Learnt(); queues != most || subscriptions != most {
		t.Errorf("%d queues and %d subscriptions are known, want %d of each", queues, subscriptions, most)
	}
	for i := 1; i < entities; i += 2 { // most of them are forgotten
		name := fmt.Sprint("temporary", i)
		_, err := s.Send(t.Context(), name, []*semantics.Message{message})
		s.fails("send", err)
		s.fails("publish", s.publish(message, copiesOf(message, name)...).Err)
	}
	s.audit()
}

// A lock that Redis has forgotten settles nothing, although the same message is locked again.
func TestDUR_4_LockThatIsForgotten(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	s.send(t, &semantics.Message{MessageID: "1"})
	past := redistest.Remember(t, s.raw, s.namespace)
	forgotten := receiveOne(t, s)
	past.Return(t)
	held := receiveOne(t, s)
	for i, want := range []semantics.Code{semantics.MessageLockLost, ""} {
		token := []semantics.LockToken{forgotten.LockToken, held.LockToken}[i]
		codes, err := s.Complete(t.Context(), orders, []semantics.LockToken{token})
		if err != nil || codes[0] != want {
			t.Errorf("lock %d: %q, %v, want %q", i, codes, err, want)
		}
	}
}
