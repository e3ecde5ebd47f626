package httpapi

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/grpcapi"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// brokenWriter is a client that is gone by the time its answer is flushed.
type brokenWriter struct{ *httptest.ResponseRecorder }

func (brokenWriter) FlushError() error { return errors.New("broken pipe") }

func TestRECV_7_FailedFlushGivesBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"PEEK_LOCK", "RECEIVE_AND_DELETE"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			broker := broker.New(memstore.New())
			defer broker.Close()
			if _, err := broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{}, nil); err != nil {
				t.Fatal(err)
			}
			if _, err := broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{}}); err != nil {
				t.Fatal(err)
			}
			logger := slog.New(slog.DiscardHandler)
			metrics, err := obs.NewMetrics(prometheus.NewRegistry(), broker, 10)
			if err != nil {
				t.Fatal(err)
			}
			responses := response.NewTracker(logger)
			h, err := New(grpcapi.NewMessages(broker, metrics, grpcapi.OverHTTP, nil), grpcapi.NewSessions(broker), grpcapi.NewTransactions(grpcapi.NewMessages(broker, metrics, grpcapi.OverHTTP, nil)), grpcapi.NewAdmin(broker), responses, obs.NewCalls(metrics, logger), access.AllowAll{})
			if err != nil {
				t.Fatal(err)
			}
			receive := func(w http.ResponseWriter) {
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/v1/queues/orders/messages:receive",
					strings.NewReader(`{"maxWait":"0s","mode":"`+mode+`"}`))
				h.ServeHTTP(w, r)
				responses.Wait()
			}
			lost := httptest.NewRecorder()
			receive(brokenWriter{lost})
			if lost.Code != http.StatusOK || !strings.Contains(lost.Body.String(), `"deliveryCount":1`) {
				t.Fatalf("got %d %s", lost.Code, lost.Body)
			}
			if counts, err := broker.Runtime(context.WithoutCancel(t.Context()), semantics.QueueKind, "orders"); err != nil || counts.Available != 1 || broker.Held() != 0 {
				t.Errorf("got %+v, %v, held %d", counts, err, broker.Held())
			}
			again := httptest.NewRecorder()
			receive(again)
			if !strings.Contains(again.Body.String(), `"deliveryCount":1`) {
				t.Errorf("the delivery was counted: %s", again.Body)
			}
		})
	}
}
