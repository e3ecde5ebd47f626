package console

import (
	"fmt"
	"net/http"
	"testing"
	"time"
)

func TestFlow(t *testing.T) {
	t.Parallel()
	s := openShop(t, store(t)...)
	s.connect()
	s.fill()
	s.open()
	s.every(500*time.Millisecond, func() {
		s.Call(s.ctx, http.MethodPost, "/v1/queues/returns/messages:send", `{"messages":[{"text":"a"},{"text":"b"}]}`)
		s.Call(s.ctx, http.MethodPost, "/v1/topics/telemetry/messages:send", `{"messages":[{"text":"t"}]}`)
	})
	browse(t, "flow.mjs", s.ui())
}

// connect creates entities that forward, and a topic with many subscriptions.
func (s *shop) connect() {
	s.t.Helper()
	s.must(http.MethodPut, "/v1/queues/graveyard", `{}`)
	s.must(http.MethodPut, "/v1/queues/claims", `{"forwardTo":"returns","forwardDeadLetteredMessagesTo":"graveyard"}`)
	s.must(http.MethodPut, "/v1/queues/letters", `{"forwardDeadLetteredMessagesTo":"graveyard"}`)
	s.must(http.MethodPut, "/v1/topics/telemetry", `{}`)
	for i := range 30 {
		s.must(http.MethodPut, fmt.Sprintf("/v1/topics/telemetry/subscriptions/sensor-%02d", i), `{"defaultMessageTimeToLive":"60s"}`)
	}
	s.must(http.MethodPut, "/v1/topics/events/subscriptions/archive", `{"forwardTo":"archive"}`)
}
