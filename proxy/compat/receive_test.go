package compat

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/proxy/internal/response"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestREST_8_TimeoutIsSixtySecondsAndAtMostFiveMinutes(t *testing.T) {
	t.Parallel()
	for query, want := range map[string]time.Duration{
		"": time.Minute, "timeout=0": 0, "timeout=7": 7 * time.Second, "timeout=300": 5 * time.Minute, "timeout=301": 5 * time.Minute,
		"timeout=99999999999999999999": 5 * time.Minute, "api-version=2015-01&timeout=5": 5 * time.Second,
	} {
		x := &exchange{request: httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/q/messages/head?"+query, nil)}
		if got, err := x.timeout(); got != want || err != nil {
			t.Errorf("%q: got %s, %v, want %s", query, got, err, want)
		}
	}
}

// deadlineWriter remembers the bounds that are set for writing.
type deadlineWriter struct {
	*httptest.ResponseRecorder

	deadlines []time.Time
}

func (w *deadlineWriter) SetWriteDeadline(at time.Time) error {
	w.deadlines = append(w.deadlines, at)
	return nil
}

// The bound of one answer must not hold for the next on the same connection.
func TestRECV_7_TheTimeOfWritingIsBoundedForOneAnswerOnly(t *testing.T) {
	t.Parallel()
	broker := broker.New(memstore.New())
	defer broker.Close()
	if _, err := broker.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.Options{LockDuration: 20 * time.Second}, []string{"lockDuration"}); err != nil {
		t.Fatal(err)
	}
	if _, err := broker.Send(t.Context(), semantics.ToQueue("orders"), []*semantics.Message{{}, {}}); err != nil {
		t.Fatal(err)
	}
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), broker, 10)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	responses := response.NewTracker(logger)
	h := New(Config{
		Broker: broker, Responses: responses, Calls: obs.NewCalls(metrics, logger), Metrics: metrics,
		Authorizer: access.AllowAll{},
	})
	for method, want := range map[string]time.Duration{http.MethodPost: 19 * time.Second, http.MethodDelete: 30 * time.Second} {
		w := &deadlineWriter{ResponseRecorder: httptest.NewRecorder()}
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, "/orders/messages/head?timeout=0", nil))
		responses.Wait()
		if len(w.deadlines) != 2 || !w.deadlines[1].IsZero() || (time.Until(w.deadlines[0])-want).Abs() > 5*time.Second {
			t.Errorf("%s: %d: bounds %v", method, w.Code, w.deadlines)
		}
	}
}
