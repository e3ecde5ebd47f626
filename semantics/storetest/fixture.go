package storetest

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
)

// Most tests need one queue, and this is it.
var (
	orders     = semantics.Source{Path: "orders"}
	deadOrders = semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
)

const (
	ms = time.Millisecond

	// patience bounds every wait for something that must happen. It only ends a test that hangs, so it is the longest a
	// call may wait, which is far more than a busy machine needs.
	patience = time.Minute

	// lock is the LockDuration of queues made without saying otherwise.
	lock = time.Minute
)

// fixture is a Harness with a Broker and the helpers tests are written in. Helpers end the test when the store refuses
// what it must grant.
type fixture struct {
	Harness
	t      *testing.T
	broker *broker.Broker

	refusals refusals // with what the test was refused
}

func newFixture(t *testing.T, harness Harness) *fixture {
	h := &fixture{Harness: harness, t: t}
	h.broker = h.newBroker(harness.Store)
	return h
}

// newBroker makes one more Broker, as another sidecar would.
func (h *fixture) newBroker(store semantics.Store, more ...broker.Option) *broker.Broker {
	if h.IsApart {
		store = apart{store}
	}
	b := broker.New(wakesOnly{store}, append(more, broker.WithRules(filter.Compile))...)
	h.t.Cleanup(b.Close)
	return b
}

// change alters the default options of a queue.
type change func(o *semantics.Options)

func locksFor(d time.Duration) change {
	return func(o *semantics.Options) { o.LockDuration = d }
}

func deliversAtMost(n int64) change {
	return func(o *semantics.Options) { o.MaxDeliveryCount = n }
}

func livesFor(d time.Duration) change {
	return func(o *semantics.Options) { o.DefaultMessageTimeToLive = d }
}

func buriesExpired(o *semantics.Options) { o.DeadLetteringOnMessageExpiration = true }

func detectsDuplicates(o *semantics.Options) { o.RequiresDuplicateDetection = true }

func remembersFor(d time.Duration) change {
	return func(o *semantics.Options) { o.DuplicateDetectionHistoryTimeWindow = d }
}

func remembersAtMost(n int64) change {
	return func(o *semantics.Options) { o.DuplicateHistoryMaxEntries = n }
}

func delaysFor(d time.Duration) change {
	return func(o *semantics.Options) { o.RedeliveryDelay = d }
}

func keepsDeadFor(d time.Duration) change {
	return func(o *semantics.Options) { o.DeadLetterTTL = d }
}

func holdsAtMost(n int64) change {
	return func(o *semantics.Options) { o.MaxMessageCount = n }
}

// create creates the queue orders in the store itself, so that options may lie outside the Broker's bounds.
func (h *fixture) create(changes ...change) semantics.Entity {
	h.t.Helper()
	return h.createNamed(orders.Path, changes...)
}

func (h *fixture) createNamed(name string, changes ...change) semantics.Entity {
	h.t.Helper()
	options := semantics.DefaultOptions()
	for _, c := range changes {
		c(&options)
	}
	queue, created, err := h.Store.CreateEntity(h.t.Context(), semantics.QueueKind, name, options)
	if err != nil || !created {
		h.t.Fatalf("CreateQueue(%q) = created %v, %v", name, created, err)
	}
	return queue
}

// update sets options of orders.
func (h *fixture) update(c change, names ...string) {
	h.t.Helper()
	var options semantics.Options
	c(&options)
	_, err := h.Store.UpdateEntity(h.t.Context(), semantics.QueueKind, orders.Path, options, names)
	h.ok(err)
}

func (h *fixture) setStatus(s semantics.Status) {
	h.t.Helper()
	h.update(func(o *semantics.Options) { o.Status = s }, "status")
}

// text is a message with an id and nothing else but its text.
func text(id string) *semantics.Message {
	return &semantics.Message{MessageID: id, Body: []byte(id), BodyKind: semantics.BodyText}
}

// lasting is a message with a lifetime.
func lasting(id string, ttl time.Duration) *semantics.Message {
	m := text(id)
	m.TimeToLive = &ttl
	return m
}

// sized is a message that counts for size bytes.
func sized(size int64) *semantics.Message {
	const id = "sized"
	return &semantics.Message{MessageID: id, Body: make([]byte, size-int64(len(id)))}
}

// send sends messages to orders in one call and returns the number of the first.
func (h *fixture) send(messages ...*semantics.Message) int64 {
	h.t.Helper()
	results, err := h.broker.Send(h.t.Context(), semantics.ToQueue(orders.Path), messages)
	h.ok(err)
	return results[0].SequenceNumber
}

// sendTexts sends n texts to orders in one call.
func (h *fixture) sendTexts(n int) {
	h.t.Helper()
	messages := make([]*semantics.Message, n)
	for i := range messages {
		messages[i] = text(fmt.Sprintf("m%d", i+1))
	}
	h.send(messages...)
}

// receive takes up to n messages under lock without waiting.
func (h *fixture) receive(source semantics.Source, n int) []*semantics.Received {
	h.t.Helper()
	delivery, err := h.broker.Receive(h.t.Context(), source, broker.ReceiveOptions{MaxMessages: n})
	h.ok(err)
	return delivery.Messages
}

// receiveOne takes one message and fails the test if there is none.
func (h *fixture) receiveOne(source semantics.Source) *semantics.Received {
	h.t.Helper()
	got := h.receive(source, 1)
	if len(got) != 1 {
		h.t.Fatalf("receive from %s returned %d messages, want 1", source, len(got))
	}
	return got[0]
}

// receiveNone fails the test if there is anything to receive.
func (h *fixture) receiveNone(source semantics.Source) {
	h.t.Helper()
	h.wantNumbers(h.receive(source, 10))
}

// peek returns all messages of source.
func (h *fixture) peek(source semantics.Source) []*semantics.Received {
	h.t.Helper()
	return h.peekFrom(source, 0, broker.MaxPeekMessages)
}

func (h *fixture) peekFrom(source semantics.Source, from int64, limit int) []*semantics.Received {
	h.t.Helper()
	rows, err := h.broker.Peek(h.t.Context(), source, from, limit, semantics.ShowAll)
	h.ok(err)
	return rows
}

// runtime counts orders, without its partitions, and checks that the parts sum up (CNT-1, CNT-4).
func (h *fixture) runtime() semantics.Runtime {
	h.t.Helper()
	r, err := h.broker.Runtime(h.t.Context(), semantics.QueueKind, orders.Path)
	h.ok(err)
	checkSum(h.t, r)
	r.Partitions, r.LastSequence = nil, 0 // of which testCNT_2_LastSequence is
	return r
}

// checkSum checks CNT-4, in each partition too, and that those sum up (PART-5).
func checkSum(t interface {
	Helper()
	Fatalf(string, ...any)
}, r semantics.Runtime,
) {
	t.Helper()
	if sum := r.Available + r.Locked + r.Deferred + r.ExpiredPending; sum != r.Active {
		t.Fatalf("available + locked + deferred + expired pending = %d, but active = %d: %+v", sum, r.Active, r)
	}
	if len(r.Partitions) == 0 {
		return
	}
	var total, size int64
	for _, one := range r.Partitions {
		checkSum(t, one)
		total, size = total+one.Total(), size+one.SizeInBytes
	}
	if total != r.Total() || size != r.SizeInBytes {
		t.Fatalf("partitions have %d messages of %d bytes: %+v", total, size, r)
	}
}

// wantCounts checks the three counts that every message is in exactly one of.
func (h *fixture) wantCounts(available, locked, dead int64) {
	h.t.Helper()
	r := h.runtime()
	if r.Available != available || r.Locked != locked || r.DeadLetter != dead || r.Active != available+locked {
		h.t.Fatalf("counts are %+v, want available %d, locked %d, dead %d", r, available, locked, dead)
	}
}

func (h *fixture) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h *fixture) wantCode(err error, want semantics.Code) *semantics.Error {
	h.t.Helper()
	if got := h.codeOf(err); got != want {
		h.t.Fatalf("got error %v, want %s", err, want)
	}
	return semantics.AsError(err)
}

// codeOf returns the code of an error that is the same whenever the test runs, so that its text is compared.
func (h *fixture) codeOf(err error) semantics.Code {
	h.refusals.add(err)
	return semantics.CodeOf(err)
}

func (h *fixture) wantCodes(got []semantics.Code, err error, want ...semantics.Code) {
	h.t.Helper()
	h.ok(err)
	h.same(got, want)
}

// wantNumbers checks which messages were given, and in which order.
func (h *fixture) wantNumbers(got []*semantics.Received, want ...int64) {
	h.t.Helper()
	h.same(numbersOf(got), want)
}

func numbersOf(messages []*semantics.Received) []int64 {
	var numbers []int64
	for _, m := range messages {
		numbers = append(numbers, m.SequenceNumber)
	}
	return numbers
}

// comparing lets an empty list equal an absent one and compares property values as the domain does.
var comparing = cmp.Options{
	cmpopts.EquateEmpty(),
	// Bodies of megabytes are too much for cmp to look at byte by byte.
	cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal)),
	cmp.Comparer(func(a, b semantics.Value) bool { return a == b }),
	cmpopts.IgnoreFields(semantics.Received{}, "Encoded", "Own"),                      // see plain
	cmpopts.IgnoreFields(semantics.Runtime{}, "CreatedAt", "UpdatedAt", "AccessedAt"), // see CNT_1_Times
}

func (h *fixture) same(got, want any) {
	h.t.Helper()
	if diff := cmp.Diff(want, got, comparing); diff != "" {
		h.t.Fatalf("not as wanted (-want +got):\n%s", diff)
	}
}

// snapshot is all that can be seen of orders without a lock.
type snapshot struct {
	Queue      semantics.Entity
	Runtime    semantics.Runtime
	Main, Dead []*semantics.Received
	Sessions   []semantics.SessionRow
}

func (h *fixture) snapshot() snapshot {
	h.t.Helper()
	queue, err := h.Store.GetEntity(h.t.Context(), semantics.QueueKind, orders.Path)
	h.ok(err)
	queue.AccessedAt = time.Time{}
	s := snapshot{Queue: queue, Runtime: h.runtime()}
	if queue.Options.Status.CanReceive() {
		s.Main, s.Dead = h.peek(orders), h.peek(deadOrders)
	}
	if queue.Options.RequiresSession {
		s.Sessions = h.sessions(semantics.SessionFilter{})
	}
	return s
}

// refused runs a call that must fail with code and change nothing in orders.
func (h *fixture) refused(code semantics.Code, call func() error) *semantics.Error {
	h.t.Helper()
	before := h.snapshot()
	err := h.wantCode(call(), code)
	if diff := cmp.Diff(before, h.snapshot(), comparing); diff != "" {
		h.t.Fatalf("a refused call changed something (-before +after):\n%s", diff)
	}
	return err
}

// refusedSend is refused for a send to orders.
func (h *fixture) refusedSend(code semantics.Code, messages ...*semantics.Message) *semantics.Error {
	h.t.Helper()
	return h.refused(code, func() error {
		_, err := h.broker.Send(h.t.Context(), semantics.ToQueue(orders.Path), messages)
		return err
	})
}
