package redisstore_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// underWay has orders with messages on their way to archive, which has partitions, and all of which have arrived there:
// the sidecar that forwarded them was killed then, and Redis forgets the record of archive.
type underWay struct {
	t         *testing.T
	below     *redisstore.Store
	store     *partitioned.Store
	client    redis.UniversalClient
	namespace string
}

const carriedMessages = 10

func newUnderWay(t *testing.T, resubmits bool) *underWay {
	t.Helper()
	u := &underWay{t: t, client: rawClient(t), namespace: redistest.Namespace()}
	u.below = redistest.Open(t, redisstore.Options{Namespace: u.namespace})
	u.store = partitioned.New(u.below)
	u.createArchive(3)
	options, source := semantics.DefaultOptions(), semantics.Source{Path: "orders"}
	if resubmits {
		source.SubQueue = semantics.DeadLetterQueue
	} else {
		options.ForwardTo = "archive"
	}
	_, _, err := u.store.CreateEntity(t.Context(), semantics.QueueKind, "orders", options)
	must(t, err)
	var numbers []int64
	for i := range carriedMessages {
		stored, err := u.store.Send(t.Context(), "orders", []*semantics.Message{{MessageID: fmt.Sprint(i)}})
		must(t, err)
		numbers = append(numbers, stored[0].SequenceNumber)
	}
	to, err := u.store.Destination(t.Context(), "archive")
	must(t, err)
	var transfer semantics.Transfer
	if resubmits {
		u.deadLetterAll()
		begun, err := u.store.BeginResubmission(t.Context(), source, to, numbers, semantics.Resubmitting{})
		must(t, err)
		transfer = begun.Transfer
	} else {
		transfer, err = u.store.BeginTransfer(t.Context(), source, to, carriedMessages)
		must(t, err)
	}
	_, err = u.store.Arrive(t.Context(), transfer, 0, onward(transfer), false)
	must(t, err)
	must(t, u.client.Del(t.Context(), "sb:{"+u.namespace+"/archive}:entity").Err())
	return u
}

func (u *underWay) deadLetterAll() {
	u.t.Helper()
	orders := semantics.Source{Path: "orders"}
	batch, err := u.store.Receive(u.t.Context(), orders, carriedMessages, semantics.RegisterNever)
	must(u.t, err)
	var tokens []semantics.LockToken
	for _, m := range batch.Messages {
		tokens = append(tokens, m.LockToken)
	}
	_, err = u.store.DeadLetter(u.t.Context(), orders, tokens, semantics.DeadLetterTexts{}, nil)
	must(u.t, err)
}

func (u *underWay) createArchive(partitions int64) {
	u.t.Helper()
	options := semantics.DefaultOptions()
	options.Partitions = partitions
	_, created, err := u.store.CreateEntity(u.t.Context(), semantics.QueueKind, "archive", options)
	must(u.t, err)
	if !created {
		u.t.Error("archive was there")
	}
}

// wants checks what orders and archive have; without archive active is -1.
func (u *underWay) wants(transfer, undelivered, active int64) {
	u.t.Helper()
	orders, err := u.store.Runtime(u.t.Context(), semantics.QueueKind, "orders")
	must(u.t, err)
	got := []int64{orders.Transfer, orders.TransferDeadLetter, -1}
	if active >= 0 {
		archive, err := u.store.Runtime(u.t.Context(), semantics.QueueKind, "archive")
		must(u.t, err)
		got[2] = archive.Active
	}
	if want := []int64{transfer, undelivered, active}; fmt.Sprint(got) != fmt.Sprint(want) {
		u.t.Errorf("%v messages are on their way, undelivered and arrived, want %v", got, want)
	}
}

// other returns another sidecar, which knows nothing of archive.
func (u *underWay) other() *broker.Broker {
	b := brokerOver(partitioned.New(u.below))
	u.t.Cleanup(b.Close)
	return b
}

// Messages that arrived in a queue whose record Redis forgets are still there. They must not be transfer dead letters
// too: the transfer waits until the queue is created again with the same options.
func TestDUR_4_ForgottenDestinationOfATransfer(t *testing.T) {
	t.Parallel()
	u := newUnderWay(t, false)
	for range 2 {
		err := u.other().Forward(t.Context(), semantics.Source{Path: "orders"})
		if err == nil || !strings.Contains(err.Error(), "create it again") {
			t.Fatalf("got %v, want what to do", err)
		}
		u.wants(carriedMessages, 0, -1)
	}
	u.createArchive(3)
	u.wants(carriedMessages, 0, carriedMessages)
	must(t, u.other().Forward(t.Context(), semantics.Source{Path: "orders"}))
	u.wants(0, 0, carriedMessages)
}

// If the queue is deleted, or created otherwise, what had arrived is gone for good, and so the transfer ends.
func TestDUR_4_ForgottenDestinationThatDoesNotComeBack(t *testing.T) {
	t.Parallel()
	for want, change := range map[int64]func(u *underWay){
		0: func(u *underWay) { u.createArchive(2) },
		-1: func(u *underWay) {
			u.createArchive(3)
			must(t, u.store.DeleteEntity(t.Context(), semantics.QueueKind, "archive"))
		},
	} {
		u := newUnderWay(t, false)
		change(u)
		must(t, u.other().Forward(t.Context(), semantics.Source{Path: "orders"}))
		u.wants(0, carriedMessages, want)
	}
}

// A resubmission does not wait for its destination, so its caller learns what to do.
func TestDUR_4_ForgottenDestinationOfAResubmission(t *testing.T) {
	t.Parallel()
	u := newUnderWay(t, true)
	source := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	_, _, err := u.other().Resubmit(t.Context(), source, broker.ResubmitOptions{Target: "archive"})
	if semantics.CodeOf(err) != semantics.StoreUnavailable || !strings.Contains(err.Error(), "create it again") {
		t.Fatalf("got %v, want what to do", err)
	}
	u.createArchive(3)
	_, _, err = u.other().Resubmit(t.Context(), source, broker.ResubmitOptions{Target: "archive"})
	must(t, err)
	u.wants(0, 0, carriedMessages)
}
