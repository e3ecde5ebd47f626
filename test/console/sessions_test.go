package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/sidebus/sidebus/test/sidecartest"
)

func TestSessions(t *testing.T) {
	t.Parallel()
	flags := store(t)
	s := openShop(t, flags...)
	s.must(http.MethodPut, "/v1/queues/trips", `{"requiresSession":true,"lockDuration":"30s"}`)
	s.must(http.MethodPut, "/v1/queues/claims", `{"requiresSession":true,"sessionOnDeadLetter":"BLOCK"}`)
	s.must(http.MethodPut, "/v1/queues/visits", `{"requiresSession":true}`)
	s.block("claims", "claim-7")
	s.sendSessions("visits", 1250)
	for i := range 14 {
		text := fmt.Sprintf(`{"json":{"stop":1},"sessionId":"bus-%d"}`, 101+i)
		s.every(2*time.Second, func() {
			s.Call(s.ctx, http.MethodPost, "/v1/queues/trips/messages:send", `{"messages":[`+text+`]}`)
		})
	}
	peer := sidecartest.Start(t, flags...)
	for i, sidecar := range []*sidecartest.Sidecar{s.Sidecar, s.Sidecar, peer, peer, sidecartest.Start(t, flags...)} {
		s.ride(sidecar, 3+i%3)
	}
	browse(t, "sessions.mjs", s.ui())
}

// block leaves a session with a state that a dead letter has blocked.
func (s *shop) block(queue, session string) {
	s.t.Helper()
	base := "/v1/queues/" + queue
	s.send("queues/"+queue, fmt.Sprintf(`{"text":"step","sessionId":%q}`, session), 3)
	lock := lockIn(s.must(http.MethodPost, base+"/sessions:accept", fmt.Sprintf(`{"sessionId":%q}`, session)))
	s.must(http.MethodPost, base+"/sessions:setState", fmt.Sprintf(`{"lockToken":%q,"state":"c3RlcCAx"}`, lock)) // step 1
	got := s.must(http.MethodPost, base+"/messages:receive", fmt.Sprintf(`{"sessionLockToken":%q}`, lock))
	s.must(http.MethodPost, base+"/messages:deadLetter", fmt.Sprintf(`{"sessionLockToken":%q,"lockTokens":[%q]}`, lock, tokensIn(got)[0]))
	s.must(http.MethodPost, base+"/sessions:close", fmt.Sprintf(`{"lockToken":%q}`, lock))
}

func lockIn(answer sidecartest.Answer) string {
	var accepted struct{ Session struct{ LockToken string } }
	_ = json.Unmarshal([]byte(answer.Text), &accepted) // what is malformed has no lock
	return accepted.Session.LockToken
}

// sendSessions sends a message to each of n sessions.
func (s *shop) sendSessions(queue string, n int) {
	s.t.Helper()
	const inCall = 50
	for i := 0; i < n; i += inCall {
		body := ""
		for j := range inCall {
			body += fmt.Sprintf(`,{"text":"v","sessionId":"visitor-%05d"}`, i+j)
		}
		s.must(http.MethodPost, "/v1/queues/"+queue+"/messages:send", `{"messages":[`+body[1:]+`]}`)
	}
}

// ride lets a worker of a sidecar hold one session of trips after the other, each for some ticks of a second.
func (s *shop) ride(at *sidecartest.Sidecar, ticks int) {
	lock, left := "", 0
	post := func(path, body string) sidecartest.Answer {
		return at.Call(s.ctx, http.MethodPost, "/v1/queues/trips/"+path, body)
	}
	s.every(time.Second, func() {
		if left--; left > 0 {
			return
		}
		if lock != "" {
			got := post("messages:receive", fmt.Sprintf(`{"maxMessages":10,"maxWait":"0s","sessionLockToken":%q}`, lock))
			if tokens := tokensIn(got); len(tokens) > 0 {
				list, _ := json.Marshal(tokens)
				post("messages:complete", fmt.Sprintf(`{"lockTokens":%s,"sessionLockToken":%q}`, list, lock))
			}
			post("sessions:close", fmt.Sprintf(`{"lockToken":%q}`, lock))
		}
		lock, left = lockIn(post("sessions:accept", `{"maxWait":"0s"}`)), ticks
	})
}
