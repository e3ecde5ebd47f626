package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// examine returns what is found of a namespace, problems as "path text".
func examine(t *testing.T, s *redisstore.Store, paths ...string) (problems []string, all []semantics.Finding) {
	t.Helper()
	must(t, s.Examine(t.Context(), semantics.Examination{Paths: paths}, func(f semantics.Finding) {
		all = append(all, f)
		if f.Severity == semantics.Problem {
			problems = append(problems, f.Where+" "+f.Text)
		}
	}))
	return problems, all
}

func said(all []semantics.Finding, subject string) string {
	i := slices.IndexFunc(all, func(f semantics.Finding) bool { return f.Subject == subject })
	if i < 0 {
		return ""
	}
	return string(all[i].Severity) + " " + all[i].Text
}

// A namespace with queues, sessions and topics has no fault, also while messages pass through it.
func TestExamineFindsNothingWrongWhileMessagesPass(t *testing.T) {
	t.Parallel()
	s := variedSessions(t)
	busy := entityPath(t, s.swept, "busy")
	ctx, cancel := context.WithCancel(t.Context())
	var traffic sync.WaitGroup
	for range 2 {
		traffic.Go(func() {
			for ctx.Err() == nil {
				_, _ = s.Send(ctx, busy, messagesOf(5, semantics.Message{}))
				batch, err := s.Receive(ctx, semantics.Source{Path: busy}, 3, semantics.RegisterNever)
				if err == nil && len(batch.Messages) > 0 {
					_, _ = s.Complete(ctx, semantics.Source{Path: busy}, []semantics.LockToken{batch.Messages[0].LockToken})
				}
			}
		})
	}
	problems, all := examine(t, s.Store)
	cancel()
	traffic.Wait()
	if len(problems) > 0 {
		t.Errorf("got %q", problems)
	}
	if got := said(all, "structure"); !strings.Contains(got, "queues and topics checked: 2") {
		t.Errorf("got %q", got)
	}
}

// What somebody else did to the keys is found, of the entity that is named or of all, and nothing is changed by it.
func TestExamineFindsDamage(t *testing.T) {
	t.Parallel()
	for part, damage := range map[string]struct {
		command []any
		says    string
	}{
		"locks":  {[]any{"ZADD", "locks", 1, "77"}, "locks"},
		"bytes":  {[]any{"HSET", "entity", "bytes", 7}, "bytes is 7"},
		"a type": {[]any{"SET", "expiry", "x"}, "another type"},
	} {
		t.Run(part, func(t *testing.T) {
			t.Parallel()
			s := openSwept(t, redisstore.Options{})
			s.create(t, func(*semantics.Options) {})
			s.send(t, messagesOf(3, semantics.Message{})...)
			(&damaged{T: t, c: s.raw, tag: s.key("")}).command(damage.command...)
			for _, paths := range [][]string{nil, {"orders"}} {
				problems, all := examine(t, s.Store, paths...)
				if got := said(all, "upkeep"); got != "ok queues and topics: 1, none waits for upkeep" {
					t.Errorf("got %q", got)
				}
				if len(problems) == 0 || !strings.Contains(problems[0], damage.says) || !strings.HasPrefix(problems[0], "orders ") {
					t.Errorf("%q: got %q", paths, problems)
				}
			}
		})
	}
}

// Levels of durability that entities ask for, and that the servers have or lack, are named with who asks.
func TestDUR_3_ExamineFindsLevelsThatCannotBe(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t, durable...)
	t.Cleanup(pair.Stop)
	s := redistest.Open(t, redisstore.Options{URL: pair.URL})
	_, all := examine(t, s)
	if got := said(all, "durability"); got != "" {
		t.Errorf("no entity asks for a level: got %q", got)
	}
	must(t, makeQueue(t, s, "disk", func(o *semantics.Options) { o.Durability = semantics.AtDisk }))
	_, all = examine(t, s)
	if got := said(all, "durability"); got != "ok disk can be met, disk asks for it" {
		t.Errorf("got %q", got)
	}
	command(t, pair.URL, "CONFIG", "SET", "appendonly", "no")
	problems, _ := examine(t, s)
	if len(problems) != 1 || !strings.Contains(problems[0], "needs an append-only file, and disk asks for it: calls are answered with DURABILITY_NOT_MET") {
		t.Errorf("without an append-only file: got %q", problems)
	}
	must(t, s.DeleteEntity(t.Context(), semantics.QueueKind, "disk"))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		must(t, makeQueue(t, s, name, func(o *semantics.Options) { o.Durability = semantics.AtReplica }))
	}
	_, all = examine(t, s)
	if got := said(all, "durability"); got != "ok replica can be met, a, b, c, 2 more ask for it" {
		t.Errorf("got %q", got)
	}
	pair.Replica.Kill()
	await(t, func() bool {
		problems, all = examine(t, s)
		return len(problems) > 0
	})
	if !strings.Contains(problems[0], "durability replica needs 1 connected replicas of each primary, and one has 0, and a, b, c, 2 more ask for it") {
		t.Errorf("without a replica: got %q", problems)
	}
	i := slices.IndexFunc(all, func(f semantics.Finding) bool { return f.Subject == "durability" })
	if !strings.Contains(all[i].Advice, "add replicas") {
		t.Errorf("the advice is %q", all[i].Advice)
	}
}

// A large entity is left out unless it is named; one that does not exist is an error.
func TestExamineReadsLargeEntitiesOnlyByName(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	fill := redis.NewScript(`for _ = 1, 10001 do redis.call("XADD", KEYS[1], "*", "a", "b") end return 1`)
	must(t, fill.Run(t.Context(), s.raw, []string{s.key("log")}).Err())
	problems, all := examine(t, s.Store)
	if got := said(all, "structure"); len(problems) > 0 || !strings.Contains(got, "not checked: it holds 10001 messages") {
		t.Errorf("got %q, %q", problems, got)
	}
	if problems, _ = examine(t, s.Store, "orders"); len(problems) == 0 {
		t.Error("what is in the log was not read")
	}
	err := s.Examine(t.Context(), semantics.Examination{Paths: []string{"nope"}}, func(semantics.Finding) {})
	if semantics.CodeOf(err) != semantics.EntityNotFound {
		t.Errorf("got %v", err)
	}
}

// Entities that no sidecar looks after are counted.
func TestExamineFindsThatNoSidecarRuns(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	s.create(t, func(*semantics.Options) {})
	must(t, s.raw.ZAdd(t.Context(), "sb:{"+s.namespace+"}:alarms", redis.Z{Score: 1000, Member: "orders"}).Err())
	_, all := examine(t, s.Store)
	if got := said(all, "upkeep"); !strings.HasPrefix(got, "warning 1 of 1 queue") {
		t.Errorf("got %q", got)
	}
}

// A user who may not read settings is told so; Examine needs no more rights than that and those of a sidecar.
func TestExamineWithoutTheRightToReadSettings(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	t.Cleanup(server.Stop)
	admin := redis.NewClient(redistest.ClientOptions(t, server.URL))
	t.Cleanup(func() { _ = admin.Close() })
	must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-config").Err())
	_, all := examine(t, redistest.Open(t, redisstore.Options{URL: server.URL}))
	if got := said(all, "disk"); !strings.Contains(got, "appendfsync cannot be read") {
		t.Errorf("got %q", got)
	}
}

// A Redis that is away, and a caller that has enough, end it.
func TestExamineEnds(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Examine(ctx, semantics.Examination{}, func(semantics.Finding) {}); semantics.CodeOf(err) != semantics.Cancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	server.Stop()
	if err := s.Examine(t.Context(), semantics.Examination{}, func(semantics.Finding) {}); semantics.CodeOf(err) != semantics.StoreUnavailable {
		t.Errorf("got %v", err)
	}
}

// entityPath creates a plain queue.
func entityPath(t *testing.T, s *swept, path string) string {
	t.Helper()
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, path, semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	return path
}
