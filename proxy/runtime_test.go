package proxy_test

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// Counts have the times of their entity, and counting does not use the entity (CNT-5).
func TestCNT_1_TimesInRuntime(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		const news, eu = "topics/news", "topics/news/subscriptions/eu"
		made := w.clock.Now()
		mustPut(t, w.sidecar, "/v1/queues/parcels", `{}`)
		mustPut(t, w.sidecar, "/v1/"+news, `{}`)
		mustPut(t, w.sidecar, "/v1/"+eu, `{}`)
		w.clock.advance(time.Minute)
		for _, path := range []string{"queues/parcels", news, eu} {
			if a := w.call(t, http.MethodPatch, "/v1/"+path, `{"userMetadata":"x"}`); a.status != http.StatusOK {
				t.Fatalf("%d %s", a.status, a.body)
			}
		}
		w.clock.advance(time.Minute)
		for _, target := range []string{"queues/parcels", news} {
			request := &sidebusv1.SendRequest{Target: target, Messages: []*sidebusv1.Message{text("a")}}
			if _, err := w.messages.Send(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			w.clock.advance(time.Minute)
			queue, err1 := w.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: "queues/parcels"})
			topic, err2 := w.admin.GetTopicRuntime(t.Context(), &sidebusv1.GetTopicRuntimeRequest{Name: news})
			subscription, err3 := w.admin.GetSubscriptionRuntime(t.Context(), &sidebusv1.GetSubscriptionRuntimeRequest{Name: eu})
			if err1 != nil || err2 != nil || err3 != nil {
				t.Fatal(err1, err2, err3)
			}
			for name, counts := range map[string]interface {
				GetCreatedAt() *timestamppb.Timestamp
				GetUpdatedAt() *timestamppb.Timestamp
				GetAccessedAt() *timestamppb.Timestamp
			}{"queue": queue, "topic": topic, "subscription": subscription} {
				created, updated := counts.GetCreatedAt().AsTime(), counts.GetUpdatedAt().AsTime()
				accessed := counts.GetAccessedAt().AsTime()
				used := made.Add(2 * time.Minute)
				if name == "subscription" { // a copy that arrives does not use it
					used = accessed
				}
				if !created.Equal(made) || !updated.Equal(made.Add(time.Minute)) || !accessed.Equal(used) || accessed.Before(made) {
					t.Errorf("%s: got %v, %v, %v", name, created, updated, accessed)
				}
			}
		}
	})
}
