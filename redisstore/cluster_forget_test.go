package redisstore_test

import (
	"fmt"
	"hash/fnv"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// oneForgets is a namespace of a cluster of which one server is made to forget. Of each entity with three partitions,
// that server has partition 0, and another one has the record. Two sidecars use it: one that changes entities, and one
// that knows them from before and makes no call until the server has forgotten the changes.
type oneForgets struct {
	t         *testing.T
	cluster   *redistest.Cluster
	namespace string

	changes, knows           *partitioned.Store
	changesBelow, knowsBelow *redisstore.Store
	changer, knower          *broker.Broker

	key string // of messages in partition 0
}

const forgetfulPartitions = 3

func newOneForgets(t *testing.T, arguments ...string) *oneForgets {
	t.Helper()
	f := &oneForgets{t: t, cluster: redistest.StartCluster(t, arguments...), namespace: redistest.Namespace()}
	t.Cleanup(f.cluster.Stop)
	open := func() (*redisstore.Store, *partitioned.Store, *broker.Broker) {
		below := redistest.Open(t, redisstore.Options{URL: f.cluster.URL, Namespace: f.namespace})
		store := partitioned.New(below)
		b := brokerOver(store)
		t.Cleanup(b.Close)
		return below, store, b
	}
	f.changesBelow, f.changes, f.changer = open()
	f.knowsBelow, f.knows, f.knower = open()
	for f.key = "k"; ; f.key += "k" {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(f.key))
		if hash.Sum64()%forgetfulPartitions == 0 {
			return f
		}
	}
}

// name returns a name whose record, if it is an entity with partitions, is not at the server that forgets; that of an
// entity without is there.
func (f *oneForgets) name(prefix string, isThere bool) string {
	for i := 0; ; i++ {
		name := fmt.Sprint(prefix, i)
		if slot, of := f.changesBelow.Slot(name); slot*forgetfulPartitions/of == 0 == isThere {
			return name
		}
	}
}

func (f *oneForgets) create(kind semantics.Kind, name string, change ...func(*semantics.Options)) {
	f.t.Helper()
	options := semantics.DefaultOptions()
	options.Partitions = forgetfulPartitions
	for _, c := range change {
		c(&options)
	}
	_, _, err := f.changes.CreateEntity(f.t.Context(), kind, name, options)
	must(f.t, err)
}

func (f *oneForgets) message(id string) *semantics.Message {
	return &semantics.Message{MessageID: id, PartitionKey: f.key}
}

// send lets the sidecar that knows the queue send a message to partition 0.
func (f *oneForgets) send(queue, id string) error {
	f.t.Helper()
	stored, err := f.knows.Send(f.t.Context(), queue, []*semantics.Message{f.message(id)})
	if err == nil {
		if _, p := semantics.PartitionOf(stored[0].SequenceNumber); p != 0 {
			f.t.Errorf("%s is in partition %d", id, p)
		}
	}
	return err
}

func (f *oneForgets) publish(topic, id string) error {
	f.t.Helper()
	_, err := f.knower.Send(f.t.Context(), semantics.ToTopic(topic), []*semantics.Message{f.message(id)})
	return err
}

func (f *oneForgets) remove(kind semantics.Kind, name string) {
	f.t.Helper()
	must(f.t, f.changes.DeleteEntity(f.t.Context(), kind, name))
}

// awaitServer ends when both sidecars reach the server again.
func (f *oneForgets) awaitServer(plain string) {
	f.t.Helper()
	for _, below := range []*redisstore.Store{f.changesBelow, f.knowsBelow} {
		await(f.t, func() bool {
			_, err := below.GetEntity(f.t.Context(), semantics.QueueKind, plain)
			return err == nil
		})
	}
}

func (f *oneForgets) wantIDs(what string, messages []*semantics.Received, err error, want ...string) {
	f.t.Helper()
	must(f.t, err)
	var ids []string
	for _, m := range messages {
		ids = append(ids, m.MessageID)
	}
	if fmt.Sprint(ids) != fmt.Sprint(want) {
		f.t.Errorf("%s has the messages %v, want %v", what, ids, want)
	}
}

// wantHeld checks which messages a source holds, by the sidecar that made the changes.
func (f *oneForgets) wantHeld(path string, want ...string) {
	f.t.Helper()
	messages, err := f.changer.Peek(f.t.Context(), semantics.Source{Path: path}, 1, 10, semantics.ShowAll)
	f.wantIDs(path, messages, err, want...)
}

func (f *oneForgets) wantGone(what string, err error) {
	f.t.Helper()
	if semantics.CodeOf(err) != semantics.EntityNotFound {
		f.t.Errorf("%s: %v, want that it is gone", what, err)
	}
}

// The server of one partition forgets changes that were acknowledged, and those of the records do not. Whatever a
// sidecar knows from before, what it does then is what the changes say.
func TestDUR_4_OneServerOfAClusterForgetsChanges(t *testing.T) {
	t.Parallel()
	f := newOneForgets(t)
	ctx := t.Context()
	plain, archive := f.name("plain", true), f.name("archive", false)
	must(t, makeQueue(t, f.changesBelow, plain))
	must(t, makeQueue(t, f.changesBelow, archive))
	news, later, left := f.name("news", false), f.name("later", false), f.name("left", false)
	again, gone, options := f.name("again", false), f.name("gone", false), f.name("options", false)
	source, letters, sessions := f.name("source", false), f.name("letters", false), f.name("sessions", false)
	member := f.name("member", false)
	for _, topic := range []string{news, later, left} {
		f.create(semantics.TopicKind, topic)
	}
	for _, queue := range []string{again, gone, options, letters, member} {
		f.create(semantics.QueueKind, queue)
		must(t, f.send(queue, "before"))
	}
	f.create(semantics.QueueKind, source, func(o *semantics.Options) { o.ForwardTo = archive })
	must(t, f.send(source, "before"))
	f.create(semantics.QueueKind, sessions, func(o *semantics.Options) { o.RequiresSession = true })
	_, err := f.knows.Send(ctx, sessions, []*semantics.Message{{MessageID: "before", SessionID: f.key}})
	must(t, err)
	eu := func(topic string) string { return semantics.SubscriptionPath(topic, "eu") }
	subscribe := func(topic string) {
		_, err := f.changer.CreateEntity(ctx, semantics.SubscriptionKind, eu(topic), semantics.Options{}, nil)
		must(t, err)
	}
	subscribe(left)
	must(t, f.publish(news, "before"))
	must(t, f.publish(left, "before"))
	due := &semantics.Message{MessageID: "due", PartitionKey: f.key, ScheduledAt: time.Now().Add(50 * time.Millisecond)}
	_, err = f.knower.Send(ctx, semantics.ToTopic(later), []*semantics.Message{due})
	must(t, err)
	batch, err := f.knows.Receive(ctx, semantics.Source{Path: letters}, 1, semantics.RegisterNever)
	must(t, err)
	_, err = f.knows.DeadLetter(
		ctx, semantics.Source{Path: letters}, []semantics.LockToken{batch.Messages[0].LockToken}, semantics.DeadLetterTexts{}, nil,
	)
	must(t, err)
	letter := batch.Messages[0].SequenceNumber
	_, err = f.knower.Peek(ctx, semantics.Source{Path: eu(left)}, 1, 1, semantics.ShowAll) // it knows the subscription
	must(t, err)

	forget := f.cluster.Forgetting(t, "sb:{"+f.namespace+"/"+plain+"}:entity")
	subscribe(news)
	subscribe(later)
	f.remove(semantics.SubscriptionKind, eu(left))
	for _, queue := range []string{again, letters, member} {
		f.remove(semantics.QueueKind, queue)
		f.create(semantics.QueueKind, queue)
	}
	f.remove(semantics.QueueKind, sessions)
	f.create(semantics.QueueKind, sessions, func(o *semantics.Options) { o.RequiresSession = true })
	f.remove(semantics.QueueKind, gone)
	f.remove(semantics.QueueKind, source)
	_, err = f.changes.UpdateEntity(
		ctx, semantics.QueueKind, options, semantics.Options{LockDuration: 2 * time.Minute}, []string{"lockDuration"},
	)
	must(t, err)
	forget()
	f.awaitServer(plain)

	// PART-8: rules, also of what was scheduled by the old ones.
	must(t, f.publish(news, "after"))
	f.wantHeld(eu(news), "after")
	must(t, f.knower.ActivateDue(ctx, f.knows.Path(later, 0)))
	f.wantHeld(eu(later), "due")
	// PART-8: a subscription that is gone, and created again without what it held.
	_, err = f.knows.Receive(ctx, semantics.Source{Path: eu(left)}, 9, semantics.RegisterNever)
	f.wantGone("receive from a deleted subscription", err)
	subscribe(left)
	batch, err = f.knows.Receive(ctx, semantics.Source{Path: eu(left)}, 9, semantics.RegisterNever)
	f.wantIDs("a subscription that was created again", batch.Messages, err)
	// PART-1: queues that are gone, or were created again.
	must(t, f.send(again, "after"))
	f.wantHeld(again, "after")
	_, err = f.knows.Receive(ctx, semantics.Source{Path: gone}, 9, semantics.RegisterNever)
	f.wantGone("receive from a deleted queue", err)
	f.wantGone("send to a deleted queue", f.send(gone, "after"))
	// FWD-1: what was deleted is not forwarded.
	must(t, f.knower.Forward(ctx, semantics.Source{Path: f.knows.Path(source, 0)}))
	f.wantHeld(archive)
	// DLQ-22: nor resubmitted.
	moved, err := f.knows.Resubmit(
		ctx, semantics.Source{Path: letters, SubQueue: semantics.DeadLetterQueue}, letters,
		[]semantics.Resubmission{{SequenceNumber: letter, MessageID: "before", PartitionKey: f.key}}, false,
	)
	must(t, err)
	if moved[0].Code != semantics.MessageNotFound {
		t.Errorf("a dead letter of a deleted queue was resubmitted: %v", moved[0].Code)
	}
	// SESS-13: no session of it is there.
	session, _, err := f.knows.AcceptNextSession(ctx, sessions, semantics.RegisterNever)
	must(t, err)
	if session != nil {
		t.Errorf("session %s of a deleted queue was accepted", session.ID)
	}
	// TX-8: a transaction uses the queue that is there.
	outcome := f.knows.Transact(ctx, nil, []semantics.Operation{{
		Verb: semantics.OperationSend, Source: semantics.Source{Path: member}, Messages: []*semantics.Message{f.message("after")},
	}})
	must(t, outcome.Err)
	f.wantHeld(member, "after")
	// An update is complete with the first call.
	batch, err = f.knows.Receive(ctx, semantics.Source{Path: options}, 1, semantics.RegisterNever)
	f.wantIDs("a queue that was updated", batch.Messages, err, "before")
	if lock := time.Until(batch.Messages[0].LockedUntil); lock < time.Minute {
		t.Errorf("the lock lasts %s, want two minutes", lock)
	}
}

// A server that is replaced and forgets nothing costs one comparison, and its partitions go on as they were. What was
// read before it was replaced does not count.
func TestDUR_4_AFailoverThatForgetsNothing(t *testing.T) {
	t.Parallel()
	f := newOneForgets(t)
	plain, orders := f.name("plain", true), f.name("orders", false)
	must(t, makeQueue(t, f.changesBelow, plain))
	f.create(semantics.QueueKind, orders)
	path := f.changes.Path(orders, 0)
	history := func(wantCompared bool) string {
		t.Helper()
		name, isCompared, err := f.changesBelow.History(t.Context(), path)
		must(t, err)
		if isCompared != wantCompared {
			t.Errorf("the partition is compared: %v", isCompared)
		}
		return name
	}
	before := history(true)
	must(t, f.send(orders, "before"))
	f.cluster.Forgetting(t, "sb:{"+f.namespace+"/"+plain+"}:entity")()
	f.awaitServer(plain)
	isPresent, err := f.changesBelow.NoteCompared(t.Context(), path, before)
	must(t, err)
	if now := history(false); isPresent || now == before {
		t.Errorf("a comparison of before counts: %v; the history was %s and is %s", isPresent, before, now)
	}
	must(t, f.send(orders, "after"))
	history(true)
	f.wantHeld(orders, "before", "after")
}

// The server of a partition is replaced while that of the record is away. Calls that need this partition fail, and have
// done nothing; what can go to another one does (PART-7).
func TestDUR_4_TheServerOfTheRecordIsAway(t *testing.T) {
	t.Parallel()
	f := newOneForgets(t, "--cluster-require-full-coverage", "no")
	ctx := t.Context()
	plain, orders := f.name("plain", true), f.name("orders", false)
	must(t, makeQueue(t, f.changesBelow, plain))
	f.create(semantics.QueueKind, orders)
	must(t, f.send(orders, "before"))
	forget := f.cluster.Forgetting(t, "sb:{"+f.namespace+"/"+plain+"}:entity")
	record := "sb:{" + f.namespace + "/" + orders + "}:entity"
	forget()
	f.cluster.KillAllOf(t, record)
	f.awaitServer(plain)
	if err := f.send(orders, "refused"); semantics.CodeOf(err) != semantics.StoreUnavailable || semantics.IsOutcomeUnknown(err) {
		t.Errorf("a send to a partition that cannot be compared: %v", err)
	}
	for i := range 3 { // one partition is at the server that was replaced, one perhaps at that of the record
		stored, err := f.knows.Send(ctx, orders, []*semantics.Message{{MessageID: fmt.Sprint(i)}})
		if err == nil {
			if _, p := semantics.PartitionOf(stored[0].SequenceNumber); p == 0 {
				t.Error("a partition that was not compared took a message")
			}
		} else {
			t.Errorf("a send without a key: %v", err)
		}
	}
	f.cluster.Recover(t)
	await(t, func() bool { return f.send(orders, "after") == nil })
}
