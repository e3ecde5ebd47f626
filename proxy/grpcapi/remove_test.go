package grpcapi

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowStore is a memstore that takes some steps and then does not answer before the call ends.
type slowStore struct {
	*memstore.Store

	steps int
}

func (s *slowStore) step(ctx context.Context) error {
	if s.steps--; s.steps >= 0 {
		return nil
	}
	<-ctx.Done()
	return &semantics.Error{Code: semantics.Cancelled, Message: "the caller went away", Err: ctx.Err()}
}

func (s *slowStore) Purge(ctx context.Context, source semantics.Source, purge semantics.Purge) (semantics.Purged, error) {
	if err := s.step(ctx); err != nil {
		return semantics.Purged{}, err
	}
	return s.Store.Purge(ctx, source, purge)
}

func (s *slowStore) Resubmit(ctx context.Context, source semantics.Source, target string, letters []semantics.Resubmission, bypass bool) ([]semantics.Resubmitted, error) {
	if err := s.step(ctx); err != nil {
		return nil, err
	}
	return s.Store.Resubmit(ctx, source, target, letters, bypass)
}

// slow returns a Messages whose store answers some steps, with 1200 messages available, or dead letters.
func slow(t *testing.T, steps int, dead bool) *Messages {
	t.Helper()
	store := &slowStore{Store: memstore.New(), steps: steps}
	b := broker.New(store)
	t.Cleanup(b.Close)
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), b, 10)
	if err != nil {
		t.Fatal(err)
	}
	ctx, _ := response.NewTracker(slog.New(slog.DiscardHandler)).Begin(t.Context())
	if _, err := b.CreateEntity(ctx, semantics.QueueKind, "orders", semantics.Options{}, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		batch := make([]*semantics.Message, 600)
		for i := range batch {
			batch[i] = &semantics.Message{}
		}
		if _, err := b.Send(ctx, semantics.ToQueue("orders"), batch); err != nil {
			t.Fatal(err)
		}
		if !dead {
			continue
		}
		taken, err := b.Receive(ctx, semantics.Source{Path: "orders"}, broker.ReceiveOptions{MaxMessages: 1000})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range taken.Messages {
			if _, err := b.DeadLetter(ctx, semantics.Source{Path: "orders"}, []semantics.LockToken{m.LockToken}, broker.DeadLetterOptions{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return NewMessages(b, metrics, OverGRPC, nil)
}

func TestPURGE_4_EndsWithinItsBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slow(t, 1, false)
		start := time.Now()
		all := &sidebusv1.PurgeRequest{Source: "queues/orders", Before: timestamppb.New(start.Add(time.Hour))}
		purged, err := s.Purge(t.Context(), all)
		if err != nil || purged.GetDeleted() != 500 || !purged.GetMore() || purged.GetBefore() == nil || time.Since(start) != workBudget {
			t.Errorf("got %v, %v after %s", purged, err, time.Since(start))
		}
		_, err = s.Purge(t.Context(), all)
		if semantics.CodeOf(err) != semantics.ServiceTimeout {
			t.Errorf("nothing removed: got %v, want %s", err, semantics.ServiceTimeout)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the caller's own patience
		defer cancel()
		if _, err := s.Purge(ctx, all); semantics.CodeOf(err) != semantics.Cancelled {
			t.Errorf("caller gone: got %v, want %s", err, semantics.Cancelled)
		}
	})
}

func TestDLQ_22_EndsWithinItsBudget(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := slow(t, 2, true)
		start := time.Now()
		resubmitted, err := s.Resubmit(t.Context(), &sidebusv1.ResubmitRequest{Source: "queues/orders"})
		if err != nil || len(resubmitted.GetResults()) != 200 || !resubmitted.GetMore() || time.Since(start) != workBudget {
			t.Errorf("got %d, %v, %v after %s", len(resubmitted.GetResults()), resubmitted.GetMore(), err, time.Since(start))
		}
		if _, err := s.Resubmit(t.Context(), &sidebusv1.ResubmitRequest{Source: "queues/orders"}); semantics.CodeOf(err) != semantics.ServiceTimeout {
			t.Errorf("nothing moved: got %v, want %s", err, semantics.ServiceTimeout)
		}
	})
}
