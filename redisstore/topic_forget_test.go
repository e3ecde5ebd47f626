package redisstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/partitioned"
)

// forgetsBetween is a Store that runs something between a look for due messages and what is done with them.
type forgetsBetween struct {
	*redisstore.Store
	do *func()
}

func (s forgetsBetween) Due(ctx context.Context, topic string, limit int) ([]*semantics.Received, error) {
	due, err := s.Store.Due(ctx, topic, limit)
	if do := *s.do; do != nil && len(due) > 0 {
		*s.do = nil
		do()
	}
	return due, err
}

// Redis forgets a scheduled message of a topic while a sidecar enqueues it, and assigns its number to another one. That
// one is not taken for the first.
func TestDUR_4_AnotherMessageHasTheNumber(t *testing.T) {
	t.Parallel()
	client, options := rawClient(t), redisstore.Options{Namespace: redistest.Namespace()}
	below := redistest.Open(t, options)
	var between func()
	b, other := brokerOver(partitioned.New(forgetsBetween{below, &between})), brokerOver(partitioned.New(below))
	t.Cleanup(b.Close)
	t.Cleanup(other.Close)
	_, err := b.CreateEntity(t.Context(), semantics.TopicKind, "news", semantics.Options{}, nil)
	must(t, err)
	sub := semantics.SubscriptionPath("news", "eu")
	_, err = b.CreateEntity(t.Context(), semantics.SubscriptionKind, sub, semantics.Options{}, nil)
	must(t, err)
	past := redistest.Remember(t, client, options.Namespace)
	transact := func(s interface {
		Transact(context.Context, *semantics.Once, []semantics.Operation) semantics.TransactionOutcome
	}, id string,
	) {
		outcome := s.Transact(t.Context(), nil, []semantics.Operation{{
			Verb: semantics.OperationSend, Source: semantics.Source{Path: "news"}, IsTopic: true,
			Messages: []*semantics.Message{{MessageID: id, Body: []byte(id)}},
		}})
		must(t, outcome.Err)
	}
	transact(below, "forgotten")
	between = func() {
		past.Return(t)
		transact(below, "kept")
	}
	_ = b.ActivateDue(t.Context(), "news")
	must(t, other.ActivateDue(t.Context(), "news"))
	messages, err := other.Peek(t.Context(), semantics.Source{Path: sub}, 1, 10, semantics.ShowAll)
	must(t, err)
	ids := ""
	for _, m := range messages {
		ids += fmt.Sprint(" ", m.MessageID)
	}
	if ids != " kept" {
		t.Errorf("the subscription has%s, want what was sent after Redis had forgotten", ids)
	}
}
