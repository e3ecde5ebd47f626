package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Operations of transactions.

func sendTo(path string, messages ...*semantics.Message) semantics.Operation {
	return semantics.Operation{Verb: semantics.OperationSend, Source: semantics.Source{Path: path}, Messages: messages}
}

func end(verb semantics.OperationVerb, source semantics.Source, tokens ...semantics.LockToken) semantics.Operation {
	return semantics.Operation{Verb: verb, Source: source, Tokens: tokens}
}

func onceAs(id string) *semantics.Once {
	return &semantics.Once{RequestID: id, Digest: "d", Seed: "seed"}
}

// countIn returns how many messages a queue has that are not locked, and how many are.
func countIn(t *testing.T, s semantics.Store, path string) (active, locked int64) {
	t.Helper()
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, path)
	must(t, err)
	return counts.Active - counts.Locked, counts.Locked
}

// A transaction whose answer was lost has taken effect once: under the same request id a repeat returns the first
// answer, and without one the first outcome is unknown and the locks are gone.
func TestTX_12_TransactionAfterLostAnswer(t *testing.T) {
	t.Parallel()
	for _, once := range []*semantics.Once{nil, onceAs("r")} {
		t.Run(fmt.Sprintf("request id %v", once != nil), func(t *testing.T) {
			t.Parallel()
			l := openLostAnswers(t, func(*semantics.Options) {})
			must(t, makeQueue(t, l.sound, "replies"))
			if _, err := l.sound.Send(t.Context(), "orders", message(10)); err != nil {
				t.Fatal(err)
			}
			operations := []semantics.Operation{
				end(semantics.OperationComplete, orders, receiveOne(t, l.sound).LockToken),
				sendTo("replies", messagesOf(2, semantics.Message{})...),
			}
			var outcome semantics.TransactionOutcome
			again := l.lose("transact", func(s *redisstore.Store) error {
				outcome = s.Transact(t.Context(), once, operations)
				return outcome.Err
			})
			if once == nil {
				if semantics.CodeOf(again) != semantics.MessageLockLost {
					t.Errorf("again: got %v, want MESSAGE_LOCK_LOST", again)
				}
			} else if again != nil || outcome.Repeats == nil || outcome.Results[1].Stored[1].SequenceNumber != 2 {
				t.Errorf("again: got %+v", outcome)
			}
			if active, locked := countIn(t, l.sound, "orders"); active+locked != 0 {
				t.Errorf("%d and %d locked messages are left", active, locked)
			}
			if active, _ := countIn(t, l.sound, "replies"); active != 2 {
				t.Errorf("got %d replies, want 2", active)
			}
		})
	}
}

// Redis is killed again and again while workers complete messages and send replies to two queues: of each transaction
// all has happened or nothing, and a repeat of one with an unknown outcome makes sure of it.
func TestTX_11_AllOrNothingWhenRedisIsKilled(t *testing.T) {
	t.Parallel()
	const each, kills = 60, 3
	server := redistest.Start(t, durable...)
	defer server.Stop()
	open := func() *redisstore.Store {
		return redistest.Open(t, redisstore.Options{URL: server.URL, Namespace: "killed"})
	}
	s := open()
	for _, path := range []string{"orders", "left", "right"} {
		must(t, makeQueue(t, s, path, func(o *semantics.Options) { o.LockDuration = semantics.MaxLockDuration }))
	}
	sent, unknown := 0, 0
	for range kills {
		_, err := s.Send(t.Context(), "orders", messagesOf(each, semantics.Message{}))
		must(t, err)
		var tokens []semantics.LockToken
		for len(tokens) < each {
			batch, err := s.Receive(t.Context(), orders, each-len(tokens), semantics.RegisterNever)
			must(t, err)
			tokens = append(tokens, tokensOf(batch.Messages)...)
		}
		type attempt struct {
			once       *semantics.Once
			operations []semantics.Operation
		}
		var unsure []attempt
		var killing sync.WaitGroup
		for i, token := range tokens {
			if i == each/3 {
				killing.Go(server.Kill)
			}
			once := onceAs(fmt.Sprint("t-", sent, "-", i))
			a := attempt{once, []semantics.Operation{
				end(semantics.OperationComplete, orders, token), sendTo("left", message(10)...), sendTo("right", message(10)...),
			}}
			if len(unsure) > 0 || s.Transact(t.Context(), a.once, a.operations).Err != nil { // Redis is away
				unsure = append(unsure, a)
			}
		}
		killing.Wait()
		server.Restart(t, durable...)
		s = open() // the sidecar too
		left, _ := countIn(t, s, "left")
		right, _ := countIn(t, s, "right")
		if _, locked := countIn(t, s, "orders"); left != right || locked != int64(sent+each)-left || left < int64(sent+each-len(unsure)) || len(unsure) == 0 {
			t.Fatalf("after a kill: %d left, %d right, %d still locked; %d of %d calls failed", left, right, locked, len(unsure), each)
		}
		for _, a := range unsure {
			outcome := s.Transact(t.Context(), a.once, a.operations)
			must(t, outcome.Err)
			if outcome.Repeats != nil {
				unknown++
			}
		}
		sent += each
		left, _ = countIn(t, s, "left")
		right, _ = countIn(t, s, "right")
		if active, locked := countIn(t, s, "orders"); left != int64(sent) || right != int64(sent) || active+locked != 0 {
			t.Fatalf("at the end: %d left, %d right, %d and %d in the source; want %d replies", left, right, active, locked, sent)
		}
	}
	t.Logf("%d transactions, %d of them had taken effect without an answer", sent, unknown)
}

// A full Redis settles, cancels and clears states together, and refuses what stores something, with nothing done.
func TestERR_7_FullRedisSettlesTogether(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s := redistest.Open(t, redisstore.Options{URL: server.URL})
	create(t, s)
	later := semantics.Message{ScheduledAt: time.Now().Add(time.Hour)}
	_, err := s.Send(t.Context(), "orders", append(messagesOf(4, semantics.Message{}), messagesOf(1, later)...))
	must(t, err)
	batch, err := s.Receive(t.Context(), orders, 4, semantics.RegisterNever)
	must(t, err)
	tokens := tokensOf(batch.Messages)
	command(t, server.URL, "CONFIG", "SET", "maxmemory", "1")
	settles := []semantics.Operation{
		end(semantics.OperationComplete, orders, tokens[0]), end(semantics.OperationAbandon, orders, tokens[1]),
		end(semantics.OperationDefer, orders, tokens[2]), end(semantics.OperationDeadLetter, orders, tokens[3]),
		{Verb: semantics.OperationCancel, Source: orders, Numbers: []int64{5}},
	}
	err = s.Transact(t.Context(), nil, append(settles, sendTo("orders", message(10)...))).Err
	if e := semantics.AsError(err); err == nil || e.Code != semantics.StoreUnavailable || e.Details[semantics.DetailCause] != "redis_oom" || semantics.IsOutcomeUnknown(err) {
		t.Fatalf("a send in a full Redis: %v", err)
	}
	must(t, s.Transact(t.Context(), onceAs("r"), settles).Err)
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if got := []int64{counts.Available, counts.Deferred, counts.DeadLetter, counts.Locked, counts.Scheduled}; err != nil || fmt.Sprint(got) != "[1 1 1 0 0]" {
		t.Errorf("counts %+v, %v", counts, err)
	}
}

// If the sidecar is killed right after a transaction, another one makes the copies of what a topic has got.
func TestTX_13_AnotherSidecarMakesTheCopies(t *testing.T) {
	t.Parallel()
	s := sweptTopic(t, func(*semantics.Options) {})
	o := sendTo("news", messagesOf(3, semantics.Message{})...)
	o.IsTopic = true
	must(t, s.Store.Transact(t.Context(), nil, []semantics.Operation{o}).Err) // no Broker: nothing comes after it
	other := redistest.Open(t, redisstore.Options{Namespace: s.namespace})
	b := brokerOver(other)
	defer b.Close()
	must(t, other.SweepOnce(t.Context(), b))
	batch, err := other.Receive(t.Context(), of("eu"), 9, semantics.RegisterNever)
	must(t, err)
	if len(batch.Messages) != 3 {
		t.Errorf("got %d copies, want 3", len(batch.Messages))
	}
}

// Topics that may be full are added up in one script, so a transaction may name only so many subscriptions.
func TestTX_3_SumsAreBounded(t *testing.T) {
	t.Parallel()
	s := redistest.Open(t, redisstore.Options{Namespace: redistest.Namespace(), TopicLimits: redisstore.TopicLimits{Sums: 3}})
	must(t, createTopic(t, s, func(o *semantics.Options) { o.MaxSizeInMegabytes = 1 }))
	must(t, subscribe(t, s, "a"))
	must(t, subscribe(t, s, "b"))
	one := sendTo("news", messagesOf(1, semantics.Message{Body: make([]byte, 200<<10)})...)
	one.IsTopic = true
	must(t, s.Transact(t.Context(), nil, slices.Repeat([]semantics.Operation{one}, 5)).Err)
	if err := s.Transact(t.Context(), nil, []semantics.Operation{one}).Err; semantics.CodeOf(err) != semantics.EntityFull {
		t.Errorf("a full topic: got %v", err)
	}
	must(t, subscribe(t, s, "c"))
	err := s.Transact(t.Context(), nil, []semantics.Operation{one}).Err
	if e := semantics.AsError(err); err == nil || e.Code != semantics.TransactionTooLarge || e.Details[semantics.DetailActual] != "4" || e.Details[semantics.DetailLimit] != "3" {
		t.Errorf("too many subscriptions: got %v", err)
	}
}

// However many topics of a transaction may be full, it takes one more round to find out.
func TestTX_13_TopicsThatMayBeFullInOneRound(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	defer server.Stop()
	s, raw := redistest.Open(t, redisstore.Options{URL: server.URL}), clientOf(t, server.URL)
	if _, err := s.Check(t.Context()); err != nil { // loads the scripts
		t.Fatal(err)
	}
	broker := brokerOver(s)
	defer broker.Close()
	options := semantics.DefaultOptions()
	options.MaxSizeInMegabytes = 1
	large := func() []*semantics.Message { return []*semantics.Message{{Body: make([]byte, 200<<10)}} }
	var operations []semantics.Operation
	const topics = 4
	for i := range topics {
		topic := fmt.Sprint("topic-", i)
		eu := semantics.Source{Path: semantics.SubscriptionPath(topic, "eu")}
		_, _, err := s.CreateEntity(t.Context(), semantics.TopicKind, topic, options)
		must(t, err)
		_, _, err = s.CreateSubscription(t.Context(), eu.Path, semantics.DefaultOptions(), []semantics.Rule{everything})
		must(t, err)
		for range 5 { // the topic does not see what its subscriptions complete
			_, err = broker.Send(t.Context(), semantics.ToTopic(topic), large())
			must(t, err)
			batch, err := s.Receive(t.Context(), eu, 1, semantics.RegisterNever)
			must(t, err)
			_, err = s.Complete(t.Context(), eu, tokensOf(batch.Messages))
			must(t, err)
		}
		o := sendTo(topic, large()...)
		o.IsTopic = true
		operations = append(operations, o)
	}
	must(t, raw.ConfigResetStat(t.Context()).Err())
	must(t, s.Transact(t.Context(), nil, operations).Err)
	stats, err := raw.Info(t.Context(), "commandstats").Result()
	must(t, err)
	_, calls, _ := strings.Cut(stats, "cmdstat_evalsha:calls=") // the lists are read by evalsha_ro
	if calls, _, _ = strings.Cut(calls, ","); calls != "3" {
		t.Errorf("%s scripts ran, want one to learn which topics may be full, one that publishes, and one that sets alarms", calls)
	}
}
