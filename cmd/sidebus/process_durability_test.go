package main

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/test/sidecartest"
)

// A sidecar refuses to start on a Redis that cannot have its level, and says what to do.
func TestDUR_3_SidecarWithALevelThatCannotBe(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--appendonly", "no")
	t.Cleanup(server.Stop)
	for level, want := range map[string]string{"disk": "set appendonly yes", "replica": "add replicas"} {
		code, output := sidecartest.Run(
			t, "serve", "--store", server.URL, "--durability", level,
			"--http-addr=127.0.0.1:0", "--grpc-addr=127.0.0.1:0", "--admin-addr=127.0.0.1:0",
		)
		if code == 0 || !strings.Contains(output, want) {
			t.Errorf("%s: exit code %d without %q:\n%s", level, code, want, output)
		}
	}
}

// A client hears of a send and of a settlement that is stored and not confirmed.
func TestDUR_2_AnswersThatAreNotConfirmed(t *testing.T) {
	t.Parallel()
	pair := redistest.StartPair(t)
	t.Cleanup(pair.Stop)
	s := sidecartest.Start(
		t, "--store", pair.URL, "--namespace", redistest.Namespace(), "--durability", "replica", "--durability-timeout", "50ms",
	)
	s.Queue(t, "orders", "{}")
	goOn := pair.Replica.Pause(t)
	defer goOn()
	answer := s.Call(t.Context(), "POST", "/v1/queues/orders/messages:send", `{"messages":[{"text":"a"}]}`)
	if answer.Status != 503 || !strings.Contains(answer.Text, "DURABILITY_NOT_MET") ||
		!strings.Contains(answer.Text, "stored, not confirmed") {
		t.Errorf("send: %d %s", answer.Status, answer.Text)
	}
	message := s.Receive(t, "orders", 10*time.Second)[0]
	complete := func() sidecartest.Answer {
		return s.Call(t.Context(), "POST", "/v1/queues/orders/messages:complete", `{"lockTokens":["`+message.LockToken+`"]}`)
	}
	if answer := complete(); answer.Status != 200 || !strings.Contains(answer.Text, "DURABILITY_NOT_MET") {
		t.Errorf("complete: %d %s", answer.Status, answer.Text)
	}
	if answer := complete(); !strings.Contains(answer.Text, "MESSAGE_LOCK_LOST") {
		t.Errorf("the message is not settled: %d %s", answer.Status, answer.Text)
	}
}
