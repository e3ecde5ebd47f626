package proxy_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// The methods as functions of a client.
var (
	accepting    = sidebusv1.SessionsClient.Accept
	renewing     = sidebusv1.SessionsClient.RenewLock
	closing      = sidebusv1.SessionsClient.Close
	gettingState = sidebusv1.SessionsClient.GetState
	settingState = sidebusv1.SessionsClient.SetState
	listing      = sidebusv1.SessionsClient.List
	unblocking   = sidebusv1.SessionsClient.Unblock
	givingUp     = sidebusv1.SessionsClient.DeadLetterRest
)

func TestSESS_11_AcceptByName(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"lockDuration":"30s"`)
		held := w.accept(t, "empty") // it has no message
		want := w.clock.Now().Add(30 * time.Second)
		if !held.GetLockedUntil().AsTime().Equal(want) || len(held.GetLockToken()) != 36 || held.State != nil || held.GetStateVersion() != 0 {
			t.Errorf("got %v", held)
		}
		refuse("held", "SESSION_CANNOT_BE_LOCKED", "", accepting, acceptNamed("empty")).check(t, w.sessions)
		_, err := w.sessions.Accept(t.Context(), acceptNamed("empty"))
		if info := infoOf(t, err); info.GetMetadata()["entity"] != "tales" {
			t.Errorf("got %v", info)
		}
		w.accept(t, "Empty") // another one: ids keep their case
		w.close(t, held)
		if again := w.accept(t, "empty"); again.GetLockToken() == held.GetLockToken() {
			t.Errorf("the token %s was given twice", again.GetLockToken())
		}
	})
}

func acceptNamed(id string) *sidebusv1.SessionsAcceptRequest {
	return &sidebusv1.SessionsAcceptRequest{Source: tales, SessionId: &id}
}

func TestSESS_11_AcceptWaitsUntilTheSessionIsFree(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"grpc", "http"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			over := newSpyStore()
			w := overSpy(t, over, wire)
			held := w.accept(t, "s")
			tried := make(chan struct{}, 100)
			over.beforeAccept = func(context.Context) { tried <- struct{}{} }
			answered := make(chan error, 1)
			go func() {
				request := acceptNamed("s")
				request.MaxWait = durationpb.New(time.Minute)
				_, err := w.sessions.Accept(t.Context(), request)
				answered <- err
			}()
			<-tried
			w.close(t, held)
			if err := <-answered; err != nil {
				t.Errorf("got %v", err)
			}
		})
	}
}

// overSpy starts a sidecar over a spyStore, with the queue "tales", of which a test sees one wire.
func overSpy(t *testing.T, over *spyStore, name string) *wire {
	t.Helper()
	w := &wire{sidecar: start(t, over)}
	w.messages, w.sessions = w.clients(name)
	w.openTales(t, "")
	return w
}

func TestSESS_12_AcceptNext(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		if got := w.next(t); got != nil {
			t.Errorf("no session: got %v", got)
		}
		strict := &sidebusv1.SessionsAcceptRequest{Source: tales, MaxWait: &durationpb.Duration{}, Strict: true}
		refuse("strict", "SERVICE_TIMEOUT", "", accepting, strict).check(t, w.sessions)
		w.tell(t, "a", "a1")
		w.clock.advance(time.Second)
		w.tell(t, "b", "b1")
		for _, want := range []string{"a", "b"} { // SESS-13
			if got := w.next(t); got.GetSessionId() != want {
				t.Errorf("got %v, want %s", got, want)
			}
		}
		if got := w.next(t); got != nil {
			t.Errorf("all are held: got %v", got)
		}
	})
}

func TestSESS_12_AcceptNextWaitsIfNothingIsSaid(t *testing.T) {
	t.Parallel()
	for _, wire := range []string{"grpc", "http"} {
		t.Run(wire, func(t *testing.T) {
			t.Parallel()
			over := newSpyStore()
			w := overSpy(t, over, wire)
			tried := make(chan struct{}, 100)
			over.beforeAccept = func(context.Context) { tried <- struct{}{} }
			answered := make(chan *sidebusv1.SessionsAcceptResponse, 1)
			go func() {
				accepted, err := w.sessions.Accept(t.Context(), &sidebusv1.SessionsAcceptRequest{Source: tales, Strict: true})
				if err != nil {
					t.Error(err)
				}
				answered <- accepted
			}()
			<-tried
			w.tell(t, "late", "x")
			if got := <-answered; got.GetSession().GetSessionId() != "late" {
				t.Errorf("got %v", got)
			}
		})
	}
}

// How the answers stand in JSON: no session is the empty object, and a wait may be written in either way.
func TestJSONOfAccept(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	for _, body := range []string{`{"maxWait":"0s"}`, `{"maxWait":"PT0S","sessionId":null}`, `{"max_wait":"1ms","strict":false}`, `{"maxWait":"PT0.001S"}`} {
		if a := s.call(t, http.MethodPost, talesPath+"/sessions:accept", body); a.status != http.StatusOK || a.body != `{}` {
			t.Errorf("%s: got %d %s", body, a.status, a.body)
		}
	}
	if a := s.call(t, http.MethodPost, talesPath+"/sessions:accept", `{"sessionId":"s","maxWait":"1m","strict":true}`); a.status != http.StatusOK ||
		!strings.Contains(a.body, `{"session":{"sessionId":"s","lockToken":"`) || !strings.HasSuffix(a.body, `,"stateVersion":"0"}}`) {
		t.Errorf("got %d %s", a.status, a.body)
	}
	if a := s.call(t, http.MethodGet, "/v1/queues/TALES/sessions?pageSize=0&pageToken=", ""); a.body != `{"sessions":[],"nextPageToken":""}` {
		t.Errorf("no sessions: got %d %s", a.status, a.body)
	}
}

func TestSESS_18_RenewLock(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"lockDuration":"30s"`)
		w.tell(t, "s", "one")
		held := w.next(t)
		m := w.hear(t, held, 1)[0]
		if !m.GetLockedUntil().AsTime().Equal(held.GetLockedUntil().AsTime()) { // MSG-11
			t.Errorf("the message is locked until %s, the session until %s", m.GetLockedUntil().AsTime(), held.GetLockedUntil().AsTime())
		}
		renew := &sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: strings.ToUpper(held.GetLockToken())}
		for range 3 {
			w.clock.advance(29 * time.Second)
			renewed, err := w.sessions.RenewLock(t.Context(), renew)
			if want := w.clock.Now().Add(30 * time.Second); err != nil || !renewed.GetLockedUntil().AsTime().Equal(want) {
				t.Fatalf("got %v, %v, want %s", renewed, err, want)
			}
		}
		settled(t)(w.messages.Complete(t.Context(), &sidebusv1.CompleteRequest{
			Source: tales, LockTokens: []string{m.GetLockToken()}, SessionLockToken: &held.LockToken,
		}))
		w.clock.advance(30 * time.Second)
		refuse("ended", "SESSION_LOCK_LOST", "", renewing, renew).check(t, w.sessions)
	})
}

func TestSESS_21_Close(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "one", "two", "three")
		held := w.next(t)
		if got := texts(w.hear(t, held, 2)); got != "one two" {
			t.Fatalf("received %q", got)
		}
		w.close(t, held)
		refuse("twice", "SESSION_LOCK_LOST", "", closing, &sidebusv1.SessionsCloseRequest{Source: tales, LockToken: held.GetLockToken()}).check(t, w.sessions)
		if w.broker.Held() != 0 {
			t.Errorf("%d held, want 0", w.broker.Held())
		}
		again := w.hear(t, w.next(t), 10)
		if texts(again) != "one two three" || again[0].GetDeliveryCount() != 1 { // DC-2
			t.Errorf("got %v", again)
		}
	})
}

// Every verb of who lost the session says so and changes nothing (SESS-22).
func TestSESS_22_LostSession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"maxDeliveryCount":2`)
		w.tell(t, "s", "one", "two")
		held := w.next(t)
		m := w.hear(t, held, 1)[0]
		w.clock.advance(time.Minute)
		w.close(t, w.accept(t, "s")) // so that the end is processed
		check := w.unchangedTales(t)
		lost, lock := "SESSION_LOCK_LOST", &held.LockToken
		for _, r := range []refusalBy[sidebusv1.SessionsClient]{
			refuse("renew", lost, "", renewing, &sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: *lock}),
			refuse("close", lost, "", closing, &sidebusv1.SessionsCloseRequest{Source: tales, LockToken: *lock}),
			refuse("get state", lost, "", gettingState, &sidebusv1.SessionsGetStateRequest{Source: tales, LockToken: *lock}),
			refuse("set state", lost, "", settingState, &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: *lock, State: []byte("x")}),
			refuse("nobody's token", lost, "", renewing, &sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: nobodysToken}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.sessions) })
		}
		for _, r := range []refusal{
			refuse("receive", lost, "", sidebusv1.MessagesClient.Receive, hearNow(*lock, 1)),
			refuse("receive deferred", lost, "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: tales, SequenceNumbers: []int64{1}, SessionLockToken: lock}),
			refuse("reactivate", lost, "", reactivating, &sidebusv1.ReactivateRequest{Source: tales, SequenceNumbers: []int64{1}, SessionLockToken: lock}),
			refuse("peek", lost, "", peeking, &sidebusv1.PeekRequest{Source: tales, SessionLockToken: lock}),
			refuse("purge", lost, "", purging, &sidebusv1.PurgeRequest{Source: tales, SessionLockToken: lock}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.messages) })
		}
		for verb, settle := range settlements(w, m.GetLockToken(), nobodysToken) {
			response, err := settle(t.Context(), lock)
			if err != nil || len(response.GetResults()) != 2 || response.GetResults()[0].GetReason() != lost || response.GetResults()[1].GetReason() != lost {
				t.Errorf("%s: got %v, %v", verb, response, err)
			}
		}
		w.eventuallyCounts(t, 2, "sidebus_locks_lost_total", `outcome="complete"`)
		check(t)
		if again := w.hear(t, w.next(t), 1); again[0].GetDeliveryCount() != 2 { // DC-3
			t.Errorf("got %v, want a second delivery", again)
		}
	})
}

// settlements are the verbs that settle messages of "tales" under the lock of a session.
func settlements(w *wire, tokens ...string) map[string]func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error) {
	return map[string]func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error){
		"complete": func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error) {
			return w.messages.Complete(ctx, &sidebusv1.CompleteRequest{Source: tales, LockTokens: tokens, SessionLockToken: lock})
		},
		"abandon": func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error) {
			return w.messages.Abandon(ctx, &sidebusv1.AbandonRequest{Source: tales, LockTokens: tokens, SessionLockToken: lock})
		},
		"defer": func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error) {
			return w.messages.Defer(ctx, &sidebusv1.DeferRequest{Source: tales, LockTokens: tokens, SessionLockToken: lock})
		},
		"release": func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error) {
			return w.messages.Release(ctx, &sidebusv1.ReleaseRequest{Source: tales, LockTokens: tokens, SessionLockToken: lock})
		},
		"dead-letter": func(ctx context.Context, lock *string) (*sidebusv1.SettleResponse, error) {
			return w.messages.DeadLetter(ctx, &sidebusv1.DeadLetterRequest{Source: tales, LockTokens: tokens, SessionLockToken: lock})
		},
	}
}

func TestSESS_29_BlockAndUnblock(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"sessionOnDeadLetter":"BLOCK"`)
		w.tell(t, "s", "bad", "good")
		held := w.next(t)
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
			Source: tales, LockTokens: []string{w.hear(t, held, 1)[0].GetLockToken()}, SessionLockToken: &held.LockToken,
		}))
		if row := w.row(t, "s"); !row.GetBlocked() || !row.GetLocked() || row.GetAvailableCount() != 1 {
			t.Errorf("got %v", row)
		}
		if got := w.hear(t, held, 1); len(got) != 0 {
			t.Errorf("its holder received %v", got)
		}
		w.close(t, held)
		refuse("blocked", "SESSION_CANNOT_BE_LOCKED", "", accepting, acceptNamed("s")).check(t, w.sessions)
		if got := w.next(t); got != nil {
			t.Errorf("accepted %v", got)
		}
		for _, id := range []string{"s", "s", "unknown"} { // one that is not blocked stays as it is
			if _, err := w.sessions.Unblock(t.Context(), &sidebusv1.SessionsUnblockRequest{Source: tales, SessionId: id}); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		if got := texts(w.hear(t, w.next(t), 10)); got != "good" {
			t.Errorf("received %q", got)
		}
		if rows := w.rows(t); len(rows) != 1 || rows[0].GetBlocked() {
			t.Errorf("got %v", rows)
		}
	})
}

func TestSESS_29_DeadLetterRest(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"sessionOnDeadLetter":"BLOCK"`)
		w.tell(t, "s", "bad", "worse", "worst")
		w.tell(t, "other", "good")
		held := w.accept(t, "s")
		settled(t)(w.messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{
			Source: tales, LockTokens: []string{w.hear(t, held, 1)[0].GetLockToken()}, SessionLockToken: &held.LockToken,
		}))
		w.close(t, held)
		for _, id := range []string{"s", "s", "unknown"} { // one without messages is not an error
			request := &sidebusv1.SessionsDeadLetterRestRequest{Source: tales, SessionId: id}
			if _, err := w.sessions.DeadLetterRest(t.Context(), request); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
		dead, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{
			Source: tales, SubQueue: sidebusv1.SubQueue_DEAD_LETTER, MaxMessages: proto.Int32(9),
		})
		if got := texts(dead.GetMessages()); err != nil || got != "bad worse worst" || dead.GetMessages()[2].GetDeadLetterReason() != "SessionDeadLettered" {
			t.Errorf("got %v, %v", dead, err)
		}
		w.tell(t, "s", "new")
		if got := texts(w.hear(t, w.accept(t, "s"), 10)); got != "new" {
			t.Errorf("received %q", got)
		}
		if got := texts(w.hear(t, w.next(t), 10)); got != "good" {
			t.Errorf("received %q", got)
		}
	})
}

func TestRR_5_AcceptNextForbidden(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, `,"acceptNext":"FORBIDDEN"`)
		w.tell(t, "s", "x")
		refuse("next", "INVALID_OPERATION", "", accepting, &sidebusv1.SessionsAcceptRequest{Source: tales}).check(t, w.sessions)
		w.accept(t, "s")
	})
}

func TestDrainingAcceptsNoSession(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "x")
		held := w.next(t)
		w.broker.BeginDrain()
		for _, request := range []*sidebusv1.SessionsAcceptRequest{{Source: tales}, acceptNamed("other")} {
			_, err := w.sessions.Accept(t.Context(), request)
			if info := infoOf(t, err); info.GetReason() != string(semantics.StoreUnavailable) || info.GetMetadata()["cause"] != "draining" {
				t.Errorf("%v: got %v", request, info)
			}
		}
		if _, err := w.sessions.RenewLock(t.Context(), &sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: held.GetLockToken()}); err != nil {
			t.Errorf("renew: %v", err)
		}
		w.close(t, held)
	})
}

func TestSTAT_2_SessionsOfADisabledQueue(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "x")
		held := w.next(t)
		if a := w.call(t, http.MethodPatch, talesPath, `{"status":"RECEIVE_DISABLED"}`); a.status != http.StatusOK {
			t.Fatal(a.body)
		}
		const disabled = "ENTITY_DISABLED"
		for _, r := range []refusalBy[sidebusv1.SessionsClient]{
			refuse("accept next", disabled, "", accepting, &sidebusv1.SessionsAcceptRequest{Source: tales}),
			refuse("accept", disabled, "", accepting, acceptNamed("other")),
			refuse("get state", disabled, "", gettingState, &sidebusv1.SessionsGetStateRequest{Source: tales, LockToken: held.GetLockToken()}),
			refuse("set state", disabled, "", settingState, &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: held.GetLockToken()}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.sessions) })
		}
		if rows := w.rows(t); len(rows) != 1 {
			t.Errorf("got %v", rows)
		}
		if _, err := w.sessions.RenewLock(t.Context(), &sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: held.GetLockToken()}); err != nil {
			t.Errorf("renew: %v", err)
		}
		w.close(t, held)
	})
}
