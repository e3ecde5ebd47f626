package compat_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

func TestIDEM_1_IdempotencyKey(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.create(semantics.TopicKind, "news", semantics.Options{})
	s.create(semantics.SubscriptionKind, "news/Subscriptions/eu", semantics.Options{})
	for _, path := range []string{"orders", "news"} {
		const key, replayed = "Idempotency-Key", "Idempotent-Replayed"
		send := func() answer { return s.want(http.StatusCreated, post, "/"+path+"/messages", "body", key, "k") }
		first, again := send(), send()
		once := first.header.Get(replayed) == "" && again.header.Get(replayed) == "true"
		if !once || first.header.Get(brokerProperties) != again.header.Get(brokerProperties) {
			t.Errorf("%s: got %v, again %v", path, first.header, again.header)
		}
		batch := `[{"Body":"one"},{"Body":"two"}]`
		sendBatch := func() answer {
			return s.want(http.StatusCreated, post, "/"+path+"/messages", batch, "Content-Type", batchType, key, "batch")
		}
		sendBatch()
		if a := sendBatch(); a.header.Get(replayed) != "true" {
			t.Errorf("%s: a batch again: got %v", path, a.header)
		}
		for _, bad := range [][]string{{key, "k", key, "k"}, {key, ""}, {key, strings.Repeat("x", 129)}, {key, "batch"}} {
			s.want(http.StatusBadRequest, post, "/"+path+"/messages", "body", bad...)
		}
	}
	for _, path := range []string{"orders", "news/Subscriptions/eu"} {
		if got := s.stored(path); len(got) != 3 {
			t.Errorf("%s has %d messages, want 3", path, len(got))
		}
	}
}
