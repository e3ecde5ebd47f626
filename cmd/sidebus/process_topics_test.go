package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// What was scheduled at a topic reaches its subscriptions in time, by the rules of that moment, without anybody's
// asking (SCHED-6).
func TestSCHED_7_SidecarActivatesTopics(t *testing.T) {
	t.Parallel()
	for name, store := range map[string][]string{
		"memory": {"--store", "memory"}, "redis": {"--store", redistest.URL(t), "--namespace", redistest.Namespace()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sidecartest.Start(t, store...)
			s.Must(t, http.MethodPut, "/v1/topics/news", `{}`)
			const red = "/v1/topics/news/subscriptions/red"
			s.Must(t, http.MethodPut, red, `{"rules":[{"name":"red","filter":{"sql":{"expression":"color = 'red'"}}}]}`)
			due := time.Now().Add(500 * time.Millisecond).UTC()
			s.Must(t, http.MethodPost, "/v1/topics/news/messages:send", fmt.Sprintf(
				`{"messages":[{"text":"yes","scheduledEnqueueTime":%[1]q,"properties":{"color":"red"}},{"text":"no","scheduledEnqueueTime":%[1]q}]}`,
				due.Format(time.RFC3339Nano)))
			got := s.Must(t, http.MethodPost, red+"/messages:receive", `{"maxWait":"20s","maxMessages":10}`)
			if early := time.Until(due); early > time.Millisecond {
				t.Errorf("received %s early", early)
			}
			if !strings.Contains(got.Text, `"text":"yes"`) || strings.Contains(got.Text, `"text":"no"`) {
				t.Errorf("got %s", got.Text)
			}
		})
	}
}
