package daprtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	sdk "github.com/dapr/go-sdk/client"
	"github.com/dapr/go-sdk/service/common"
	service "github.com/dapr/go-sdk/service/grpc"
)

// GRPC is an app with the Go SDK, which daprd calls over gRPC.
func GRPC(t testing.TB, subscriptions ...Subscription) *App {
	t.Helper()
	a := newApp(t, "grpc")
	s := service.NewServiceWithListener(a.listen(t))
	for _, sub := range subscriptions {
		err := s.AddTopicEventHandler(&common.Subscription{
			PubsubName: sub.component(), Topic: sub.Topic, DeadLetterTopic: sub.DeadLetterTopic, Metadata: sub.Metadata,
		}, a.onEvent)
		if err != nil {
			t.Fatal(err)
		}
	}
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Start() })
	t.Cleanup(func() {
		_ = s.Stop()
		serving.Wait()
	})
	return a
}

func (s Subscription) component() string {
	if s.Component == "" {
		return "bus"
	}
	return s.Component
}

func (a *App) onEvent(ctx context.Context, e *common.TopicEvent) (retry bool, err error) {
	switch a.handle(ctx, deliveryOf(e)) {
	case Success:
		return false, nil
	case Drop:
		return false, errors.New("the app drops it")
	default:
		return true, errors.New("the app wants it again")
	}
}

func deliveryOf(e *common.TopicEvent) *Delivery {
	return &Delivery{ID: e.ID, Topic: e.Topic, ContentType: e.DataContentType, Data: e.RawData, Metadata: e.Metadata, Batch: 1}
}

// HTTP is an app that knows nothing of Dapr but its HTTP calls.
func HTTP(t testing.TB, subscriptions ...Subscription) *App {
	t.Helper()
	a := newApp(t, "http")
	listener := a.listen(t)
	mux := http.NewServeMux()
	type bulk struct {
		Enabled            bool `json:"enabled"`
		MaxMessagesCount   int  `json:"maxMessagesCount"`
		MaxAwaitDurationMs int  `json:"maxAwaitDurationMs"`
	}
	type wanted struct {
		PubsubName      string            `json:"pubsubname"`
		Topic           string            `json:"topic"`
		Route           string            `json:"route"`
		DeadLetterTopic string            `json:"deadLetterTopic,omitempty"`
		Metadata        map[string]string `json:"metadata,omitempty"`
		BulkSubscribe   *bulk             `json:"bulkSubscribe,omitempty"`
	}
	var all []wanted
	for i, sub := range subscriptions {
		route := fmt.Sprintf("/on/%d", i)
		w := wanted{PubsubName: sub.component(), Topic: sub.Topic, Route: route, DeadLetterTopic: sub.DeadLetterTopic, Metadata: sub.Metadata}
		handler := a.onRequest
		if sub.IsBulk {
			w.BulkSubscribe, handler = &bulk{Enabled: true, MaxMessagesCount: 10, MaxAwaitDurationMs: 1000}, a.onBulk
		}
		all = append(all, w)
		mux.HandleFunc("POST "+route, handler)
	}
	mux.HandleFunc("GET /dapr/subscribe", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(all) })
	server := &http.Server{Handler: mux} //nolint:gosec // daprd is not a slow client
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return a
}

// event is a CloudEvent as an app gets it over HTTP.
type event struct {
	ID, Topic  string
	Type       string          `json:"datacontenttype"`
	Data       json.RawMessage `json:"data"`
	DataBase64 []byte          `json:"data_base64"`
}

func (e event) delivery() *Delivery {
	d := &Delivery{ID: e.ID, Topic: e.Topic, ContentType: e.Type, Data: e.Data, Metadata: map[string]string{}, Batch: 1}
	var text string
	switch {
	case e.DataBase64 != nil:
		d.Data = e.DataBase64
	case json.Unmarshal(e.Data, &text) == nil:
		d.Data = []byte(text)
	}
	return d
}

// onRequest takes one message and answers in words, as Dapr reads them.
func (a *App) onRequest(w http.ResponseWriter, r *http.Request) {
	var e event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d := e.delivery()
	for name, values := range r.Header {
		if name, isMetadata := strings.CutPrefix(strings.ToLower(name), "metadata."); isMetadata {
			d.Metadata[name] = values[0]
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]Outcome{"status": a.handle(r.Context(), d)})
}

// onBulk takes several messages in one call and answers for each.
func (a *App) onBulk(w http.ResponseWriter, r *http.Request) {
	var got struct {
		Entries []struct {
			EntryID  string `json:"entryId"`
			Event    event
			Metadata map[string]string
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type status struct {
		EntryID string  `json:"entryId"`
		Status  Outcome `json:"status"`
	}
	statuses := make([]status, len(got.Entries))
	var answered sync.WaitGroup
	for i, entry := range got.Entries {
		d := entry.Event.delivery()
		d.Batch = len(got.Entries)
		for name, value := range entry.Metadata {
			d.Metadata[strings.TrimPrefix(strings.ToLower(name), "metadata.")] = value
		}
		answered.Go(func() { statuses[i] = status{EntryID: entry.EntryID, Status: a.handle(r.Context(), d)} })
	}
	answered.Wait()
	_ = json.NewEncoder(w).Encode(map[string][]status{"statuses": statuses})
}

// Stream is an app without an endpoint: it subscribes over a stream of its own, with the Go SDK.
func Stream(t testing.TB, d *Daprd, sub Subscription) *App {
	t.Helper()
	a := newApp(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	o := sdk.SubscriptionOptions{PubsubName: sub.component(), Topic: sub.Topic, Metadata: sub.Metadata}
	if sub.DeadLetterTopic != "" {
		o.DeadLetterTopic = &sub.DeadLetterTopic
	}
	s, err := d.Client(t).Subscribe(ctx, o)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	var work sync.WaitGroup
	work.Go(func() {
		for {
			m, err := s.Receive()
			if err != nil {
				return // the test has ended, or daprd
			}
			work.Go(func() {
				switch a.handle(ctx, deliveryOf(m.TopicEvent)) {
				case Success:
					_ = m.Success()
				case Drop:
					_ = m.Drop()
				default:
					_ = m.Retry()
				}
			})
		}
	})
	a.Unsubscribe = func() {
		cancel()
		work.Wait()
	}
	t.Cleanup(a.Unsubscribe)
	return a
}
