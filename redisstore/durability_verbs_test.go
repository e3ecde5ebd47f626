package redisstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// fencing has every script: "" if its callers wait for durability, else why they need not (docs/decisions/0044). One
// that waits asks the entity for its level: it answers NEEDS_FENCE.
var fencing = map[string]string{
	"send": "", "publish": "", "cancel_scheduled": "", "complete": "", "abandon": "", "defer": "", "dead_letter": "",
	"turn": "", "complete_in_sessions": "", "set_session_state": "", "clear_session_state": "", "transact": "",
	"transact_settling": "", "dead_letter_rest": "", "unblock_session": "",
	"arrive": "", "arrive_in_topic": "", // only between servers

	"complete_and_receive": isLeft,

	"receive": comesAgain, "receive_by_number": comesAgain, "renew_locks": comesAgain, "release": comesAgain,
	"release_unanswered": comesAgain, "accept_session": comesAgain, "accept_next_session": comesAgain,
	"renew_session_lock": comesAgain, "close_session": comesAgain, "pass_on": comesAgain, "note_use": comesAgain,

	"create_entity": isRepaired, "create_subscription": isRepaired, "create_rule": isRepaired, "replace_rule": isRepaired, "update_entity": isRepaired,
	"create_entity_in_partition": isRepaired, "create_subscription_in_partition": isRepaired,
	"update_entity_in_partition": isRepaired, "register_name_in_partition": isRepaired,
	"register_name": isRepaired, "bar_name": isRepaired, "unregister_name": isRepaired, "delete_queue": isRepaired,
	"delete_topic": isRepaired, "delete_subscription": isRepaired, "delete_rule": isRepaired, "release_left": isRepaired, "set_version": isRepaired,
	"note_compared": isRepaired, "note_deletion": isRepaired, "resume": isRepaired,
	"purge": isRepaired, "delete_by_number": isRepaired, "resubmit": isRepaired, "reactivate": isRepaired,
	"begin_resubmission": isRepaired, "open_transfers": isRepaired,

	"sweep": isUpkeep, "activate": isUpkeep, "due": isUpkeep, "begin_transfer": isUpkeep, "end_transfer": isUpkeep,
	"begin_removal": isUpkeep, "suspend": isUpkeep, "cancel_removal": isUpkeep,
	"renumber_transfer": isUpkeep, "forget_arrivals": isUpkeep, "lease_sweep": isUpkeep, "advance_sweep": isUpkeep,
	"set_alarm": isUpkeep, "take_alarms": isUpkeep, "move_alarm": isUpkeep, "lease_reading": isUpkeep, "share_reading": isUpkeep,

	"get_entity": reads, "get_suspended": reads, "get_session_state": reads, "list_names": reads, "list_rules": reads, "list_sessions": reads,
	"list_subscriptions": reads, "old_arrivals": reads, "destination": reads, "peek": reads, "routes": reads,
	"comparison": reads, "receivers": reads, "source_runtime": reads, "ticket": reads, "topic_runtime": reads,
}

// Why a script needs no fence.
const (
	comesAgain = "what it does comes about again when a lock ends, or is repeated"
	isRepaired = "management: what is lost is still there as it was, and the call is repeated"
	isLeft     = "it does nothing where a caller waits for durability; complete does that"
	isUpkeep   = "upkeep finds again what is left to do"
	reads      = "its caller relies on no change"
)

func TestDUR_1_EveryScriptIsFencedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	scripts, err := lua.Scripts()
	must(t, err)
	for name, script := range scripts {
		why, isDecided := fencing[name]
		if !isDecided {
			t.Errorf("%s: decide whether its callers wait for durability, and write it here", name)
		}
		if asks := script.HasStatus("NEEDS_FENCE"); asks != (why == "") {
			t.Errorf("%s answers NEEDS_FENCE: %v, and %q says why it needs no fence", name, asks, why)
		}
	}
	for name := range fencing {
		if _, is := scripts[name]; !is {
			t.Errorf("%s is not a script", name)
		}
	}
}

// verbs is a namespace with entities and what the tests call on them.
type verbs struct {
	at    *redisstore.Store // through which they are called
	plain *redisstore.Store // of level memory
	// fenced and unfenced are calls that wait for durability, and that do not, by name. Each can be called once.
	fenced, unfenced map[string]func() error

	mu  sync.Mutex
	ran map[string]bool // scripts that were run through at, and did not ask for another level
}

var allPaths = map[string]semantics.Kind{
	"orders": semantics.QueueKind, "parts": semantics.QueueKind, "replies": semantics.QueueKind, "news": semantics.TopicKind,
	semantics.SubscriptionPath("news", "all"): semantics.SubscriptionKind,
}

// ask makes all entities ask for a level.
func (v *verbs) ask(t *testing.T, level semantics.EntityDurability) {
	t.Helper()
	for path, kind := range allPaths {
		must(t, second(v.plain.UpdateEntity(t.Context(), kind, path, semantics.Options{Durability: level}, []string{"durability"})))
	}
}

// openVerbs returns calls through a store of a durability.
func openVerbs(t *testing.T, url string, durability redisstore.Durability) *verbs {
	t.Helper()
	ctx, namespace := t.Context(), redistest.Namespace()
	v := &verbs{ran: map[string]bool{}}
	v.at = opened(t, redisstore.Options{
		URL: url, Namespace: namespace, Durability: durability,
		Observe: func(script, status string, _ time.Duration) {
			v.mu.Lock()
			defer v.mu.Unlock()
			v.ran[script] = v.ran[script] || status != "NEEDS_FENCE"
		},
	})
	v.plain = opened(t, redisstore.Options{URL: url, Namespace: namespace})
	at, s := v.at, v.plain
	create(t, s)
	must(t, createTopic(t, s))
	must(t, subscribe(t, s, "all"))
	must(t, makeQueue(t, s, "parts", func(o *semantics.Options) {
		o.RequiresSession, o.SessionOnDeadLetter = true, semantics.BlockSession
	}))
	must(t, makeQueue(t, s, "replies"))

	lock := func(source semantics.Source, n int, messages ...*semantics.Message) []semantics.LockToken {
		path := source.Path
		if path == of("all").Path {
			must(t, second(brokerOver(s).Send(ctx, semantics.Target{Path: "news", IsTopic: true}, messages)))
		} else {
			must(t, second(s.Send(ctx, path, messages)))
		}
		batch, err := s.Receive(ctx, source, n, semantics.RegisterNever)
		must(t, err)
		if len(batch.Messages) != n {
			t.Fatalf("%d messages of %s, want %d", len(batch.Messages), path, n)
		}
		return tokensOf(batch.Messages)
	}
	some := func(n int) []*semantics.Message { return slices.Repeat(message(1), n) }
	later := message(1)
	later[0].ScheduledAt, later[0].MessageID = time.Now().Add(time.Hour), "later"
	scheduled, err := s.Send(ctx, "orders", later)
	must(t, err)
	published, err := brokerOver(s).Send(ctx, semantics.Target{Path: "news", IsTopic: true}, later)
	must(t, err)
	locked := lock(orders, 8, some(8)...)
	replies := semantics.Source{Path: "replies"}
	reply, copied := lock(replies, 1, some(1)...), lock(of("all"), 1, some(1)...)
	must(t, second(s.Send(ctx, "parts", []*semantics.Message{
		part("a", "1"), part("a", "2"), part("a", "3"), part("blocked", "1"), part("rest", "1"),
	})))
	session, err := s.AcceptSession(ctx, "parts", "a")
	must(t, err)
	a := semantics.Source{Path: "parts", SessionLock: session.Lock}
	batch, err := s.Receive(ctx, a, 2, semantics.RegisterNever)
	must(t, err)
	parts := tokensOf(batch.Messages)

	settled := func(codes []semantics.Code, err error) error {
		switch {
		case err != nil || codes[0] == "":
			return err
		case codes[0] == semantics.DurabilityNotMet:
			return semantics.Unconfirmed(semantics.DurabilityMemory, nil)
		default:
			return semantics.Errorf(codes[0], "the code of the message")
		}
	}
	transact := func(once *semantics.Once, operations ...semantics.Operation) error {
		return at.Transact(ctx, once, operations).Err
	}
	news := semantics.Target{Path: "news", IsTopic: true}
	v.fenced = map[string]func() error{
		"send":           func() error { return second(at.Send(ctx, "orders", message(1))) },
		"send in pairs":  func() error { return second(at.Send(ctx, "orders", some(2))) },
		"send to a part": func() error { return second(at.Send(ctx, "parts", []*semantics.Message{part("b", "1")})) },
		"send once":      func() error { return at.SendOnce(ctx, "orders", *onceAs("send"), message(1)).Err },
		"schedule":       func() error { return second(at.Send(ctx, "orders", later)) },
		"cancel": func() error {
			return at.CancelScheduled(ctx, "orders", []int64{scheduled[0].SequenceNumber})
		},
		"cancel a publication": func() error { return at.CancelScheduled(ctx, "news", []int64{published[0].SequenceNumber}) },
		"cancel by id":         func() error { return second(at.CancelScheduledByID(ctx, "replies", []string{"later"})) },
		"publish":              func() error { return second(brokerOver(at).Send(ctx, news, message(1))) },
		"schedule to a topic":  func() error { return second(brokerOver(at).Send(ctx, news, later)) },
		"complete":             func() error { return settled(at.Complete(ctx, orders, locked[:1])) },
		"complete a copy":      func() error { return settled(at.Complete(ctx, of("all"), copied)) },
		"abandon": func() error {
			return settled(at.Abandon(ctx, orders, locked[1:2], semantics.AbandonOptions{}))
		},
		"defer": func() error { return settled(at.Defer(ctx, orders, locked[2:3], nil)) },
		"dead-letter": func() error {
			return settled(at.DeadLetter(ctx, orders, locked[3:4], semantics.DeadLetterTexts{}, nil))
		},
		"complete in a session": func() error { return settled(at.Complete(ctx, a, parts[:1])) },
		"turn": func() error {
			o := at.Turn(ctx, "parts", []semantics.Turn{{Session: a.SessionLock, Complete: parts[1:2], Receive: 1}})[0]
			if len(o.Batch.Messages) != 1 {
				t.Errorf("a turn takes %d messages, want the next one: %v", len(o.Batch.Messages), o.Failure)
			}
			return settled(o.Codes, o.Err)
		},
		"transaction":          func() error { return transact(onceAs("tx"), sendTo("replies", message(1)...)) },
		"repeated transaction": func() error { return transact(onceAs("tx"), sendTo("replies", message(1)...)) },
		"settling transaction": func() error { return transact(nil, end(semantics.OperationComplete, replies, reply...)) },
		"transaction of two": func() error {
			return transact(nil, end(semantics.OperationComplete, orders, locked[4]), sendTo("replies", message(1)...))
		},
		"set a state":        func() error { return second(at.SetSessionState(ctx, a, []byte("x"), nil)) },
		"clear a state":      func() error { return second(at.SetSessionState(ctx, a, nil, nil)) },
		"unblock a session":  func() error { return at.UnblockSession(ctx, "parts", "blocked") },
		"dead-letter a rest": func() error { return at.DeadLetterRest(ctx, "parts", "rest") },
	}
	v.unfenced = map[string]func() error{
		"receive":      func() error { return second(at.Receive(ctx, orders, 1, semantics.RegisterNever)) },
		"peek":         func() error { return second(at.Peek(ctx, orders, 1, 1, semantics.ShowAll)) },
		"renew":        func() error { return second(at.RenewLocks(ctx, orders, locked[5:6])) },
		"release":      func() error { return settled(at.Release(ctx, orders, locked[6:7])) },
		"read a state": func() error { return second(at.SessionState(ctx, a)) },
		"turn that only receives": func() error {
			o := at.Turn(ctx, "parts", []semantics.Turn{{Session: a.SessionLock, Receive: 1}})[0]
			if o.Err != nil {
				return o.Err
			}
			return o.Failure
		},
		"create": func() error { return makeQueue(t, at, "made") },
		"update": func() error { return update(ctx, at, "replies") },
		"purge": func() error {
			return second(at.Purge(ctx, semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}, semantics.Purge{Limit: 1}))
		},
		"delete":  func() error { return at.DeleteEntity(ctx, semantics.QueueKind, "made") },
		"runtime": func() error { return second(at.Runtime(ctx, semantics.QueueKind, "orders")) },
	}
	return v
}

func update(ctx context.Context, s *redisstore.Store, path string) error {
	_, err := s.UpdateEntity(ctx, semantics.QueueKind, path, semantics.Options{UserMetadata: "x"}, []string{"userMetadata"})
	return err
}

func third[T, U any](_ T, _ U, err error) error { return err }

// inOrder calls the verbs by name.
func inOrder(calls map[string]func() error, check func(name string, err error)) {
	names := make([]string, 0, len(calls))
	for name := range calls {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		check(name, calls[name]())
	}
}

// wantFenced checks, with a replica that hangs, that every verb hears that it is not confirmed, except those that do not
// wait; and that these are all scripts that wait.
func (v *verbs) wantFenced(t *testing.T) {
	t.Helper()
	inOrder(v.fenced, func(name string, err error) { wantUnconfirmed(t, name, err) })
	inOrder(v.unfenced, func(name string, err error) {
		if err != nil {
			t.Errorf("%s, which waits for nothing: %v", name, err)
		}
	})
	betweenServers := []string{"arrive", "arrive_in_topic"} // TestDUR_1_ArrivalWaitsForWhatItsDestinationAsksFor
	for script, why := range fencing {
		if why == "" && !v.ran[script] && !slices.Contains(betweenServers, script) {
			t.Errorf("no verb here runs %s", script)
		}
	}
	counts, err := v.plain.Runtime(t.Context(), semantics.QueueKind, "orders")
	must(t, err)
	// Eight were locked, and four were sent. Two were completed, and one became a dead letter. One is scheduled and was
	// cancelled, another one is scheduled.
	if counts.Active != 9 || counts.Deferred != 1 || counts.DeadLetter != 0 || counts.Scheduled != 1 {
		t.Errorf("what was answered with DURABILITY_NOT_MET is not made, or twice: %+v", counts)
	}
	parts, err := v.plain.Runtime(t.Context(), semantics.QueueKind, "parts")
	must(t, err)
	if parts.Active != 3 || parts.DeadLetter != 1 {
		t.Errorf("%d parts and %d dead letters are left, want 3 and 1", parts.Active, parts.DeadLetter)
	}
}

// Every send and settlement is answered after a replica has it. Without a replica it is made, and answered with
// DURABILITY_NOT_MET.
func TestDUR_1_SendsAndSettlementsWaitForReplicas(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	v := openVerbs(t, pair.URL, atReplica(patiently))
	inOrder(v.fenced, func(name string, err error) {
		if err != nil {
			t.Errorf("%s with a replica: %v", name, err)
		}
	})
	v = openVerbs(t, pair.URL, atReplica(briefly))
	goOn := pair.Replica.Pause(t)
	defer goOn()
	v.wantFenced(t)
}

// An entity that asks for replicas gets them from a sidecar that waits for nothing, also one that knew the entity
// before it asked.
func TestDUR_1_EntityAsksForReplicas(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	for name, asks := range map[string]func(*verbs){
		"before": func(v *verbs) { v.ask(t, semantics.AtReplica) },
		"after it asked for nothing": func(v *verbs) {
			for range 3 {
				must(t, second(v.at.Send(t.Context(), "made before", message(1))))
			}
			v.ask(t, semantics.AtMemory)
			must(t, v.fenced["schedule"]()) // at knows that it waits for nothing
			must(t, v.plain.CancelScheduled(t.Context(), "orders", []int64{scheduledIn(t, v.plain, "orders")}))
			v.ask(t, semantics.AtReplica)
		},
	} {
		v := openVerbs(t, pair.URL, redisstore.Durability{Timeout: briefly})
		must(t, makeQueue(t, v.plain, "made before"))
		asks(v)
		goOn := pair.Replica.Pause(t)
		t.Log(name)
		v.wantFenced(t)
		goOn()
	}
}

// scheduledIn returns the number of the message of a queue that was scheduled last.
func scheduledIn(t *testing.T, s *redisstore.Store, path string) int64 {
	t.Helper()
	found, err := s.Peek(t.Context(), semantics.Source{Path: path}, 1, 1000, semantics.ShowAll)
	must(t, err)
	last := int64(0)
	for _, m := range found {
		if m.State == semantics.Scheduled {
			last = max(last, m.SequenceNumber)
		}
	}
	return last
}

// An entity that asks for memory is answered at once by a sidecar that waits for replicas.
func TestDUR_1_EntityAsksForMemory(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	v := openVerbs(t, pair.URL, atReplica(briefly))
	v.ask(t, semantics.AtMemory)
	goOn := pair.Replica.Pause(t)
	defer goOn()
	inOrder(v.fenced, func(name string, err error) {
		if err != nil {
			t.Errorf("%s waits for a replica: %v", name, err)
		}
	})
}

// An entity that asks for the disk gets it from a sidecar that waits for nothing. If Redis stops to sync, its calls are
// answered with DURABILITY_NOT_MET.
func TestDUR_1_EntityAsksForDisk(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	t.Cleanup(server.Stop)
	v := openVerbs(t, server.URL, redisstore.Durability{Timeout: patiently})
	v.ask(t, semantics.AtDisk)
	inOrder(v.fenced, func(name string, err error) {
		if err != nil {
			t.Errorf("%s with a disk: %v", name, err)
		}
	})
	v = openVerbs(t, server.URL, redisstore.Durability{Timeout: briefly})
	v.ask(t, semantics.AtDisk)
	command(t, server.URL, "CONFIG", "SET", "appendfsync", "no")
	v.wantFenced(t)
}

// A repeat over a connection that has changed nothing is not confirmed before the disk has what it repeats.
func TestDUR_2_RepeatIsConfirmedByTheDisk(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	t.Cleanup(server.Stop)
	options := redisstore.Options{URL: server.URL, Namespace: redistest.Namespace(), Durability: atDisk(briefly)}
	s, peer := opened(t, options), opened(t, options)
	create(t, s)
	command(t, server.URL, "CONFIG", "SET", "appendfsync", "no")
	send := func(s *redisstore.Store) error {
		return s.SendOnce(t.Context(), "orders", *onceAs("r"), message(1)).Err
	}
	wantUnconfirmed(t, "the first send", send(s))
	wantUnconfirmed(t, "its repeat over another connection", send(peer))
	command(t, server.URL, "CONFIG", "SET", "appendfsync", "always")
	for send(peer) != nil {
		if t.Context().Err() != nil {
			t.Fatal("the repeat is never confirmed")
		}
	}
}
