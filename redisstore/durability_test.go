package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// briefly is a wait that is over soon; patiently one that outlasts a busy machine.
const (
	briefly   = 50 * time.Millisecond
	patiently = redistest.Patience
)

func atReplica(timeout time.Duration) redisstore.Durability {
	return redisstore.Durability{Level: semantics.DurabilityReplica, Timeout: timeout}
}

func atDisk(timeout time.Duration) redisstore.Durability {
	return redisstore.Durability{Level: semantics.DurabilityDisk, Timeout: timeout}
}

// opened returns a store that has checked its Redis.
func opened(t *testing.T, options redisstore.Options) *redisstore.Store {
	t.Helper()
	s := redistest.Open(t, options)
	must(t, second(s.Check(t.Context())))
	return s
}

// wantUnconfirmed checks an error for a change that was made without the durability that was asked for.
func wantUnconfirmed(t *testing.T, what string, err error) {
	t.Helper()
	e := semantics.AsError(err)
	if e == nil || e.Code != semantics.DurabilityNotMet || e.Details[semantics.DetailOutcome] != semantics.OutcomeStored {
		t.Errorf("%s: got %v, want DURABILITY_NOT_MET, stored but not confirmed", what, err)
	}
}

// A repeat with the same request id finds the messages stored. It is answered with success only when a replica has
// them, over whatever connection it comes.
func TestDUR_2_RepeatIsConfirmedByReplicas(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	options := redisstore.Options{URL: pair.URL, Namespace: redistest.Namespace(), Durability: atReplica(briefly)}
	s, peer := opened(t, options), opened(t, options)
	create(t, s)
	goOn := pair.Replica.Pause(t)
	defer goOn()
	once := semantics.Once{RequestID: "r", Digest: "d", Seed: "s"}
	send := func(s *redisstore.Store) error { return s.SendOnce(t.Context(), "orders", once, message(1)).Err }
	wantUnconfirmed(t, "the first send", send(s))
	wantUnconfirmed(t, "its repeat", send(s))
	wantUnconfirmed(t, "its repeat over a connection that has changed nothing", send(peer))
	goOn()
	for send(peer) != nil {
		if t.Context().Err() != nil {
			t.Fatal("the repeat is never confirmed")
		}
	}
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != 1 {
		t.Errorf("%d messages are stored, want 1: %v", counts.Active, err)
	}
}

// All callers whose sends share a script hear that it is not confirmed. A script that Redis does not know has not run
// when its fence is answered.
func TestDUR_2_JoinedSendsAreAllUnconfirmed(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	s := opened(t, redisstore.Options{URL: pair.URL, Durability: atReplica(briefly)})
	create(t, s)
	command(t, pair.URL, "SCRIPT", "FLUSH")
	goOn := pair.Replica.Pause(t)
	defer goOn()
	const callers = 40
	errs := make([]error, callers)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = second(s.Send(t.Context(), "orders", message(1))) })
	}
	all.Wait()
	for i, err := range errs {
		wantUnconfirmed(t, fmt.Sprintf("send %d", i), err)
	}
	if err := second(s.Send(t.Context(), "orders", message(2<<20))); semantics.CodeOf(err) != semantics.MessageSizeExceeded {
		t.Errorf("a send that stores nothing: %v", err)
	}
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != callers {
		t.Errorf("%d messages are stored, want %d: %v", counts.Active, callers, err)
	}
}

// A level that a Redis cannot have is refused, with the next step.
func TestDUR_3_LevelThatCannotBeIsRefused(t *testing.T) {
	t.Parallel()
	for args, c := range map[string]struct {
		level redisstore.Durability
		want  string // of the versions without WAITAOF
		later string // of the others
	}{
		"--appendfsync always":                                 {level: atDisk(0)},
		"--appendfsync everysec":                               {atDisk(0), "appendfsync is \"everysec\"", ""},
		"--appendfsync always --no-appendfsync-on-rewrite yes": {atDisk(0), "no-appendfsync-on-rewrite", ""},
		"--appendfsync always --rename-command CONFIG _":       {atDisk(0), "CONFIG GET", ""},
		"--appendfsync no":                                     {atDisk(0), "set always", "set always"},
		"--appendonly no":                                      {atDisk(0), "appendonly yes", "appendonly yes"},
		"--appendonly yes":                                     {atReplica(0), "add replicas", "add replicas"},
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, strings.Fields(args)...)
			t.Cleanup(server.Stop)
			want := c.want
			if hasWaitAOF(t, server.URL) {
				want = c.later
			}
			_, err := redistest.Open(t, redisstore.Options{URL: server.URL, Durability: c.level}).Check(t.Context())
			switch {
			case want == "":
				must(t, err)
			case semantics.CodeOf(err) != semantics.PreconditionFailed || !strings.Contains(err.Error(), want):
				t.Errorf("got %v, want PRECONDITION_FAILED with %q", err, want)
			}
		})
	}
}

func hasWaitAOF(t *testing.T, url string) bool {
	t.Helper()
	return command(t, url, "COMMAND", "INFO", "WAITAOF").([]any)[0] != nil
}

// A replica that goes later is a warning: Redis still stores what it is given.
func TestDUR_3_ReplicaThatGoesIsAWarning(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	s := opened(t, redisstore.Options{URL: pair.URL, Durability: atReplica(briefly)})
	create(t, s)
	pair.Replica.Kill()
	for {
		health, err := s.Check(t.Context())
		must(t, err)
		if strings.Contains(strings.Join(health.Warnings, "\n"), "DURABILITY_NOT_MET") {
			break
		}
	}
	wantUnconfirmed(t, "send", second(s.Send(t.Context(), "orders", message(1))))
}

// What was confirmed at level disk survives a Redis that is killed. One whose settings change confirms nothing that
// its disk does not have.
func TestDUR_1_DiskSurvivesAKilledRedis(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, durable...)
	t.Cleanup(server.Stop)
	s := opened(t, redisstore.Options{URL: server.URL, Durability: atDisk(patiently)})
	create(t, s)
	for range 50 {
		must(t, second(s.Send(t.Context(), "orders", message(100))))
	}
	server.Kill()
	server.Restart(t, durable...)
	counts, err := s.Runtime(t.Context(), semantics.QueueKind, "orders")
	if err != nil || counts.Active != 50 {
		t.Fatalf("after the restart: %+v, %v", counts, err)
	}
	command(t, server.URL, "CONFIG", "SET", "appendfsync", "everysec")
	err = second(s.Send(t.Context(), "orders", message(1)))
	if hasWaitAOF(t, server.URL) {
		must(t, err) // it waited for the disk
	} else {
		wantUnconfirmed(t, "send without always", err)
	}
	if !hasWaitAOF(t, server.URL) && semantics.CodeOf(second(s.Check(t.Context()))) != semantics.PreconditionFailed {
		t.Error("the check does not see that the level cannot be any more")
	}
}

// A failover to a replica that lags loses what was answered at level memory, and nothing that was confirmed.
func TestDUR_1_FailoverLosesNothingConfirmed(t *testing.T) {
	t.Parallel()
	sentinels := redistest.StartSentinels(t)
	t.Cleanup(sentinels.Stop)
	namespace := redistest.Namespace()
	sure := opened(t, redisstore.Options{URL: sentinels.URL, Namespace: namespace, Durability: atReplica(time.Second), DialTimeout: time.Second})
	fast := opened(t, redisstore.Options{URL: sentinels.URL, Namespace: namespace, DialTimeout: time.Second})
	create(t, sure)
	confirmed := map[string]bool{}
	send := func(s *redisstore.Store, id string) error {
		return second(s.Send(t.Context(), "orders", []*semantics.Message{{MessageID: id}}))
	}
	for i := range 50 {
		if id := fmt.Sprint("confirmed ", i); send(sure, id) == nil {
			confirmed[id] = true
		}
	}
	goOn := sentinels.LoseReplica(t)
	defer goOn()
	wantUnconfirmed(t, "send without the replica", send(sure, "unconfirmed"))
	const atMemory = 50
	for i := range atMemory {
		must(t, send(fast, fmt.Sprint("memory ", i)))
	}
	sentinels.KillPrimary(t)
	goOn()
	ctx := context.WithoutCancel(t.Context())
	for send(fast, "after") != nil {
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the Sentinels need a second or two
	}
	lost := atMemory
	for from := int64(1); ; {
		page, err := fast.Peek(ctx, orders, from, 100, semantics.ShowAll)
		must(t, err)
		if len(page) == 0 {
			break
		}
		for _, m := range page {
			delete(confirmed, m.MessageID)
			if strings.HasPrefix(m.MessageID, "memory") {
				lost--
			}
			from = m.SequenceNumber + 1
		}
	}
	if len(confirmed) > 0 {
		t.Errorf("%d messages are lost that were confirmed", len(confirmed))
	}
	t.Logf("%d of %d messages are lost that were answered at level memory", lost, atMemory)
	if lost == 0 {
		t.Error("the replica did not lag")
	}
	err := send(sure, "alone")
	for semantics.CodeOf(err) == semantics.StoreUnavailable { // over connections to the old primary
		err = send(sure, "alone")
	}
	wantUnconfirmed(t, "send without a replica", err)
}

// On a cluster the fence goes to the server that ran the script, also when a slot moves.
func TestDUR_1_ReplicasOfACluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	s := opened(t, redisstore.Options{URL: cluster.URL, Namespace: namespace, Durability: atReplica(patiently)})
	for i := range 6 {
		name := fmt.Sprint("q", i)
		must(t, third(s.CreateEntity(t.Context(), semantics.QueueKind, name, semantics.DefaultOptions())))
		must(t, second(s.Send(t.Context(), name, message(1))))
	}
	cluster.MoveSlot(t, "sb:{"+namespace+"/q0}:entity")
	must(t, second(s.Send(t.Context(), "q0", message(1))))
	end := cluster.HalfMoved(t, "sb:{"+namespace+"/q1}:entity")
	err := second(s.Send(t.Context(), "q1", message(1)))
	if cause := semantics.AsError(err); err != nil && cause.Details[semantics.DetailCause] != "redis_tryagain" {
		t.Errorf("send while the slot moves: %v", err)
	}
	end()
	must(t, second(s.Send(t.Context(), "q1", message(1))))
	brief := opened(t, redisstore.Options{URL: cluster.URL, Namespace: namespace, Durability: atReplica(briefly)})
	goOn := cluster.StopReplicaOf(t, "sb:{"+namespace+"/q2}:entity")
	defer goOn()
	wantUnconfirmed(t, "send without the replica", second(brief.Send(t.Context(), "q2", message(1))))
	err = brief.Unbroken(t.Context(), func(ctx context.Context) error { return second(brief.Send(ctx, "q2", message(1))) })
	wantUnconfirmed(t, "send over pinned connections", err)
}

// Between two servers of a cluster an arrival waits for what the destination asks for: until then its message stays at
// the source. Else the server of the destination could forget alone what the other one has removed.
func TestDUR_1_ArrivalWaitsForWhatItsDestinationAsksFor(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	t.Cleanup(cluster.Stop)
	namespace := redistest.Namespace()
	s := opened(t, redisstore.Options{URL: cluster.URL, Namespace: namespace, Durability: redisstore.Durability{Timeout: briefly}})
	must(t, makeQueue(t, s, "source"))
	must(t, makeQueue(t, s, "sure", func(o *semantics.Options) { o.Durability = semantics.AtReplica }))
	must(t, makeQueue(t, s, "plain"))
	_, _, err := s.CreateEntity(t.Context(), semantics.TopicKind, "sure-topic", options(func(o *semantics.Options) { o.Durability = semantics.AtReplica }))
	must(t, err)
	for path, isSure := range map[string]bool{"sure": true, "plain": false, "sure-topic": true} {
		goOn := cluster.StopReplicaOf(t, "sb:{"+namespace+"/"+path+"}:entity")
		must(t, update(t.Context(), s, "source"))
		must(t, second(s.UpdateEntity(t.Context(), semantics.QueueKind, "source", semantics.Options{ForwardTo: path}, []string{"forwardTo"})))
		must(t, second(s.Send(t.Context(), "source", message(1))))
		to, err := s.Destination(t.Context(), path)
		must(t, err)
		source := semantics.Source{Path: "source"}
		transfer, err := s.BeginTransfer(t.Context(), source, to, 1)
		must(t, err)
		publications := []semantics.Publication{{Message: &transfer.Messages[0].Message}}
		arrive := func() error {
			routes, err := s.Routes(t.Context(), path)
			if to.Kind == semantics.TopicKind {
				must(t, err)
			}
			arrivals, err := s.Arrive(t.Context(), transfer, routes.Version, publications, true)
			if err == nil && arrivals[0].Refused != "" {
				t.Fatalf("%s refuses what arrives: %s, %+v, %+v", path, arrivals[0].Refused, to, transfer.To)
			}
			return err
		}
		for range 2 { // its repeat finds that it has arrived
			if err := arrive(); isSure {
				wantUnconfirmed(t, "arrival at "+path, err)
			} else {
				must(t, err)
			}
		}
		goOn()
		for arrive() != nil {
			if t.Context().Err() != nil {
				t.Fatal("the arrival is never confirmed")
			}
		}
		must(t, s.EndTransfer(t.Context(), transfer, []semantics.Fate{{}}))
	}
	for _, path := range []string{"sure", "plain"} {
		if active, _ := countIn(t, s, path); active != 1 {
			t.Errorf("%d messages have arrived at %s, want 1", active, path)
		}
	}
}

// options returns the default options with changes.
func options(changes ...func(*semantics.Options)) semantics.Options {
	o := semantics.DefaultOptions()
	for _, change := range changes {
		change(&o)
	}
	return o
}
