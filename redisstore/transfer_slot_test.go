package redisstore_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Source and destination of a transfer may lie in different slots: each of its steps keeps to one of them, and so does
// whatever is done with what was refused.
func TestTransfersKeepToTheirSlots(t *testing.T) {
	t.Parallel()
	s := redistest.Open(t, redisstore.Options{URL: clusterNode(t)})
	ctx := t.Context()
	must(t, makeQueue(t, s, "archive", func(o *semantics.Options) { o.MaxMessageCount = 1 }))
	must(t, createTopic(t, s, func(o *semantics.Options) { o.UnmatchedTo, o.MaxSizeInMegabytes = "archive", 1 }))
	must(t, subscribe(t, s, "eu", func(o *semantics.Options) { o.ForwardDeadLetteredMessagesTo = "archive" }))
	must(t, makeQueue(t, s, "orders", func(o *semantics.Options) { o.ForwardTo = "news" }))
	for range 3 {
		_, err := s.Send(ctx, "orders", message(200<<10))
		must(t, err)
	}
	broker := brokerOver(s)
	defer broker.Close()
	eu, refused := of("eu"), semantics.Source{Path: of("eu").Path, SubQueue: semantics.TransferDeadLetterQueue}
	must(t, broker.Forward(ctx, orders))
	for range 3 {
		m := receiveOneOf(t, s, eu)
		_, err := s.DeadLetter(ctx, eu, []semantics.LockToken{m.LockToken}, semantics.DeadLetterTexts{}, nil)
		must(t, err)
	}
	must(t, broker.Forward(ctx, deadOf("eu")))
	must(t, publish(t, s, semantics.Publication{
		Message: &semantics.Message{MessageID: "u"}, Copies: copiesOf(&semantics.Message{MessageID: "u"}, semantics.UnmatchedSubscription),
	}).Err)
	must(t, broker.Forward(ctx, of(semantics.UnmatchedSubscription)))
	counts, err := s.Runtime(ctx, semantics.SubscriptionKind, eu.Path)
	if err != nil || counts.TransferDeadLetter != 2 {
		t.Fatalf("refused: %+v %v", counts, err)
	}
	held := receiveOneOf(t, s, refused)
	_, err = s.Abandon(ctx, refused, []semantics.LockToken{held.LockToken}, semantics.AbandonOptions{
		Properties: map[string]semantics.Value{"p": semantics.String("v")},
	})
	must(t, err)
	options := semantics.DefaultOptions()
	options.MaxSizeInMegabytes = 0 // nothing fits any more, so sizes are added up
	_, err = s.UpdateEntity(ctx, semantics.TopicKind, "news", options, []string{"maxSizeInMegabytes", "unmatchedTo"})
	must(t, err)
	moved, err := s.Resubmit(ctx, refused, eu.Path, []semantics.Resubmission{{SequenceNumber: 2, MessageID: "m"}}, false)
	if err != nil || moved[0].Code != semantics.EntityFull {
		t.Errorf("sent again: %+v %v", moved, err)
	}
	_, err = s.Send(ctx, "orders", message(1))
	must(t, err)
	must(t, broker.Forward(ctx, orders))
	_, err = s.Purge(ctx, undelivered, semantics.Purge{Show: semantics.ShowAvailable, Limit: 9, Before: time.Now().Add(time.Hour)})
	must(t, err)
	must(t, s.DeleteEntity(ctx, semantics.TopicKind, "news"))
	must(t, s.DeleteEntity(ctx, semantics.QueueKind, "orders"))
}
