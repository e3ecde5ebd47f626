package push

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/test/apptest"
)

// Over a real Redis the app gets messages of all sizes and answers in all ways; at whatever moment the sidecar stops,
// nothing is lost, nothing comes twice that may not, and what is locked was handed out.
func TestRECV_14_AnswersAndStopsOnRedis(t *testing.T) {
	t.Parallel()
	apptest.Run(t, apptest.Wire{
		Verbs: []apptest.Verb{
			apptest.Complete, apptest.Complete, apptest.Abandon, apptest.Release, apptest.Defer, apptest.DeadLetter, apptest.Leave,
		},
		Start: startOnRedis,
	})
}

func startOnRedis(t *testing.T, broker *broker.Broker, queue string, atATime int, app *apptest.App) (stop func()) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerFor(t, broker, queue, app, w, r) }))
	end := run(t, broker, Handler{
		Source: "queues/" + queue, URL: server.URL, MaxConcurrent: atATime, MaxConcurrentSessions: atATime,
	})
	return func() {
		end()
		app.LetGo()
		server.Close()
	}
}

// run runs a Pusher with a handler.
func run(t *testing.T, broker *broker.Broker, to Handler) (end func()) {
	t.Helper()
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), broker, 10)
	if err != nil {
		t.Fatal(err)
	}
	pusher, err := New([]Handler{to}, broker, access.AllowAll{}, metrics, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	over := make(chan struct{})
	go func() {
		defer close(over)
		pusher.Run(ctx)
	}()
	return func() {
		cancel()
		<-over
	}
}

// answerFor answers a call as the app says.
func answerFor(t *testing.T, broker *broker.Broker, queue string, app *apptest.App, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the sidecar stops
	}
	var properties struct{ MessageId, LockToken string } //nolint:revive // names of the wire
	if err := json.Unmarshal([]byte(r.Header.Get("BrokerProperties")), &properties); err != nil {
		t.Error(err)
	}
	switch verb := app.Take(properties.MessageId, body); verb {
	case apptest.Complete, apptest.None:
	case apptest.Abandon:
		w.WriteHeader(http.StatusServiceUnavailable)
	case apptest.Leave:
		source := semantics.Source{Path: queue}
		if text := r.Header.Get(sessionHeader); text != "" {
			source.SessionLock, err = semantics.ParseLockToken(text)
		}
		token, failed := semantics.ParseLockToken(properties.LockToken)
		if err != nil || failed != nil {
			t.Error(err, failed)
		}
		app.CompleteLater(broker, source, token)
		w.WriteHeader(http.StatusAccepted)
	default:
		w.Header().Set(settleHeader, string(verb))
	}
}

// A sidecar or its Redis fails in the turn that completes a message of a session and takes the next one.
func TestSESS_25_FailuresInTurnsOfHandlers(t *testing.T) {
	t.Parallel()
	apptest.FailInTurns(t, func(t *testing.T, on semantics.Store, queue string, take func(string, int) bool) (stop func()) {
		t.Helper()
		server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				return // the sidecar stops
			}
			var properties struct{ DeliveryCount int }
			if err := json.Unmarshal([]byte(r.Header.Get("BrokerProperties")), &properties); err != nil {
				t.Error(err)
			}
			if !take(string(body), properties.DeliveryCount) {
				<-r.Context().Done()
			}
		}))
		b := broker.New(on)
		end := run(t, b, Handler{Source: "queues/" + queue, URL: server.URL})
		return func() {
			end()
			server.Close()
			b.Close()
		}
	})
}
