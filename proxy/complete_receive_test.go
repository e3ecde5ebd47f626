package proxy_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// turn completes messages of "orders" and takes the next one that is there now.
func turn(tokens ...string) *sidebusv1.CompleteAndReceiveRequest {
	return &sidebusv1.CompleteAndReceiveRequest{Source: orders, LockTokens: tokens, MaxWait: &durationpb.Duration{}}
}

func (w *wire) turn(t *testing.T, request *sidebusv1.CompleteAndReceiveRequest) *sidebusv1.CompleteAndReceiveResponse {
	t.Helper()
	answer, err := w.messages.CompleteAndReceive(t.Context(), request)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

// reasons shows the rows of results: "-" for what was done.
func reasons(results []*sidebusv1.SettleResponse_Result) string {
	var all []string
	for _, r := range results {
		reason := "-"
		if r.Reason != nil {
			reason = r.GetReason()
		}
		all = append(all, reason)
	}
	return strings.Join(all, " ")
}

func wantTurn(t *testing.T, answer *sidebusv1.CompleteAndReceiveResponse, rows, messages, failure string) {
	t.Helper()
	if got := reasons(answer.GetResults()); got != rows {
		t.Errorf("the rows are %q, want %q", got, rows)
	}
	if got := texts(answer.GetMessages()); got != messages {
		t.Errorf("received %q, want %q", got, messages)
	}
	if got := answer.GetFailure().GetReason(); got != failure {
		t.Errorf("the failure is %q, want %q", got, failure)
	}
}

func TestRECV_15_OneCallForEachMessage(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"), text("two"), text("three"))
		answer := w.turn(t, turn())
		wantTurn(t, answer, "", "one", "")
		for _, next := range []string{"two", "three", ""} {
			done := answer.GetMessages()[0].GetLockToken()
			answer = w.turn(t, turn(done))
			wantTurn(t, answer, "-", next, "")
			if got := answer.GetResults()[0].GetLockToken(); got != done {
				t.Errorf("the row is of %s, want %s", got, done)
			}
		}
		if counts := w.runtime(t); counts.GetTotalMessageCount() != 0 {
			t.Errorf("got %v", counts)
		}
		if w.broker.Held() != 0 {
			t.Errorf("%d held", w.broker.Held())
		}
	})
}

func TestRECV_15_WhatIsReceivedDependsOnNoRow(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"), text("two"), text("three"), text("four"))
		taken := w.take(t, 2)
		tokens := []string{taken[0].GetLockToken(), taken[1].GetLockToken()}
		w.turn(t, turn(tokens[0]))
		wantTurn(t, w.turn(t, turn(tokens...)), "MESSAGE_LOCK_LOST -", "four", "")
		wantTurn(t, w.turn(t, turn(tokens...)), "MESSAGE_LOCK_LOST MESSAGE_LOCK_LOST", "", "")
	})
}

// A wait does not hold up the completion, and ends with the next message.
func TestRECV_15_CompletesBeforeItWaits(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"))
		request := turn(w.take(t, 1)[0].GetLockToken())
		request.MaxWait = durationpb.New(time.Minute)
		answers := make(chan *sidebusv1.CompleteAndReceiveResponse, 1)
		go func() {
			answer, err := w.messages.CompleteAndReceive(t.Context(), request)
			if err != nil {
				t.Error(err)
			}
			answers <- answer
		}()
		eventually(t, "one is completed", func() bool { return w.runtime(t).GetTotalMessageCount() == 0 })
		w.put(t, text("two"))
		wantTurn(t, <-answers, "-", "two", "")
	})
}

func (w *wire) disableReceiving(t *testing.T) {
	t.Helper()
	if a := w.call(t, http.MethodPatch, "/v1/queues/orders", `{"status":"RECEIVE_DISABLED"}`); a.status != http.StatusOK {
		t.Fatal(a.body)
	}
}

func TestRECV_15_FailureOfTheReceiveHidesNoRow(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		stop    func(t *testing.T, w *wire)
		failure string
	}{
		"draining": {func(_ *testing.T, w *wire) { w.broker.BeginDrain() }, "STORE_UNAVAILABLE"},
		"disabled": {func(t *testing.T, w *wire) { w.disableReceiving(t) }, "ENTITY_DISABLED"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, w *wire) {
				w.put(t, text("one"), text("two"))
				taken := w.take(t, 1)
				c.stop(t, w)
				answer := w.turn(t, turn(taken[0].GetLockToken()))
				wantTurn(t, answer, "-", "", c.failure)
				if f := answer.GetFailure(); f.GetMessage() == "" || len(f.GetDetails()) == 0 {
					t.Errorf("the failure is %v", f)
				}
				if _, err := w.messages.CompleteAndReceive(t.Context(), turn()); infoOf(t, err).GetReason() != c.failure {
					t.Errorf("without tokens: got %v, want %s", err, c.failure)
				}
				w.eventuallyCounts(t, 2, "sidebus_rpcs_total", `method="Messages.CompleteAndReceive"`, `code="`+c.failure+`"`)
			})
		})
	}
}

// All arguments are checked before anything is done.
func TestRECV_15_BadArgumentsCompleteNothing(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"))
		token := w.take(t, 1)[0].GetLockToken()
		check := w.unchanged(t)
		cases := []struct {
			name, reason, field string
			change              func(*sidebusv1.CompleteAndReceiveRequest)
		}{
			{"no message", outOfRange, "maxMessages", func(r *sidebusv1.CompleteAndReceiveRequest) { r.MaxMessages = proto.Int32(0) }},
			{"too many messages", outOfRange, "maxMessages", func(r *sidebusv1.CompleteAndReceiveRequest) { r.MaxMessages = proto.Int32(1001) }},
			{"long wait", outOfRange, "maxWait", func(r *sidebusv1.CompleteAndReceiveRequest) { r.MaxWait = durationpb.New(301 * time.Second) }},
			{"unknown mode", "INVALID_ARGUMENT", "mode", func(r *sidebusv1.CompleteAndReceiveRequest) { r.Mode = 9 }},
			{"no token", "INVALID_ARGUMENT", "lockTokens", func(r *sidebusv1.CompleteAndReceiveRequest) { r.LockTokens = []string{token, "x"} }},
			{"too many tokens", outOfRange, "lockTokens", func(r *sidebusv1.CompleteAndReceiveRequest) { r.LockTokens = slices.Repeat(r.LockTokens, 1001) }},
			{"unknown queue", "ENTITY_NOT_FOUND", "", func(r *sidebusv1.CompleteAndReceiveRequest) { r.Source = "queues/absent" }},
			{"a session that it has not", "SESSION_NOT_SUPPORTED", "", func(r *sidebusv1.CompleteAndReceiveRequest) { r.SessionLockToken = &token }},
		}
		for _, c := range cases {
			request := turn(token)
			c.change(request)
			t.Run(c.name, func(t *testing.T) {
				refuse(c.name, c.reason, c.field, sidebusv1.MessagesClient.CompleteAndReceive, request).check(t, w.messages)
				check(t)
			})
		}
	})
}

func TestRECV_15_ReceiveAndDeleteOfTheNext(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.put(t, text("one"), text("two"))
		request := turn(w.take(t, 1)[0].GetLockToken())
		request.Mode = sidebusv1.ReceiveRequest_RECEIVE_AND_DELETE
		answer := w.turn(t, request)
		wantTurn(t, answer, "-", "two", "")
		if answer.GetMessages()[0].LockToken != nil {
			t.Errorf("got %v", answer)
		}
		eventually(t, "nothing is left", func() bool { return w.runtime(t).GetTotalMessageCount() == 0 })
	})
}

func TestRECV_15_InASession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "one", "two", "three")
		held := w.next(t)
		tale := func(tokens ...string) *sidebusv1.CompleteAndReceiveRequest {
			r := turn(tokens...)
			r.Source, r.SessionLockToken = tales, proto.String(held.GetLockToken())
			return r
		}
		answer := w.turn(t, tale())
		wantTurn(t, answer, "", "one", "")
		answer = w.turn(t, tale(answer.GetMessages()[0].GetLockToken()))
		wantTurn(t, answer, "-", "two", "")
		w.close(t, held)
		wantTurn(t, w.turn(t, tale(answer.GetMessages()[0].GetLockToken())), "SESSION_LOCK_LOST", "", "SESSION_LOCK_LOST")
		held = w.next(t)
		wantTurn(t, w.turn(t, tale()), "", "two", "")
	})
}
