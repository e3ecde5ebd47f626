package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

// Two sidecars ask, a third works: each gets the replies to its own requests, and what ends in order leaves nothing
// behind.
func TestRR_2_ManyRequestersShareAReplyQueue(t *testing.T) {
	t.Parallel()
	namespace := redistest.Namespace()
	b := func() (*broker.Broker, *redisstore.Store) {
		store := redistest.Open(t, redisstore.Options{Namespace: namespace})
		b := broker.New(store)
		t.Cleanup(b.Close)
		return b, store
	}
	worker, store := b()
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "work", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	options := semantics.DefaultOptions()
	options.RequiresSession, options.AcceptNext = true, semantics.AcceptNextForbidden
	if _, _, err := store.CreateEntity(t.Context(), semantics.QueueKind, "replies", options); err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var working, asking sync.WaitGroup
	working.Go(func() { work(ctx, t, worker) })
	var askers []*broker.Broker
	for i := range 2 {
		asker, _ := b()
		askers = append(askers, asker)
		for j := range 50 {
			asking.Go(func() {
				m := &semantics.Message{MessageID: fmt.Sprint(j), Body: fmt.Append(nil, i, j)} // the same ids on both
				_, reply, err := asker.Request(t.Context(), semantics.ToQueue("work"), "replies", m, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if got, want := string(reply.Messages[0].Body), "reply to "+string(m.Body); got != want {
					t.Errorf("got %q, want %q", got, want)
				}
				if err := reply.Delivered(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
	}
	asking.Wait()
	stop()
	working.Wait()
	for _, asker := range askers {
		asker.Close()
		if n := asker.Held(); n != 0 || asker.OrphanReplies() != 0 {
			t.Errorf("%d held, %d orphans", n, asker.OrphanReplies())
		}
	}
	runtime, err := store.Runtime(t.Context(), semantics.QueueKind, "replies")
	if err != nil || runtime.Total() != 0 || runtime.Sessions != 0 {
		t.Errorf("left behind: %+v, %v", runtime, err)
	}
}

// work replies to requests until ctx ends.
func work(ctx context.Context, t *testing.T, b *broker.Broker) {
	for ctx.Err() == nil {
		requests, err := b.Receive(ctx, semantics.Source{Path: "work"}, broker.ReceiveOptions{MaxMessages: 10, MaxWait: time.Minute})
		if err != nil {
			if ctx.Err() == nil {
				t.Error(err)
			}
			return
		}
		var tokens []semantics.LockToken
		for _, r := range requests.Messages {
			reply := &semantics.Message{SessionID: r.ReplyToSessionID, CorrelationID: r.MessageID, Body: append([]byte("reply to "), r.Body...)}
			if _, err := b.Send(context.WithoutCancel(ctx), semantics.ToQueue(r.ReplyTo), []*semantics.Message{reply}); err != nil {
				t.Error(err)
			}
			tokens = append(tokens, r.LockToken)
		}
		if _, err := b.Complete(context.WithoutCancel(ctx), requests.Source(), tokens); err != nil {
			t.Error(err)
		}
	}
}
