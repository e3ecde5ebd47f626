package proxy_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// What needs a session on a queue that has them, and what does not go with them (SESS-5, SESS-6).
func TestSESS_6_VerbsAndKindsOfQueues(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "one")
		held := w.next(t)
		lock, token := &held.LockToken, w.hear(t, held, 1)[0].GetLockToken()
		check := w.unchangedTales(t)
		needed, wrong := "SESSION_REQUIRED", "INVALID_OPERATION"
		one := []int64{1}
		refusals := []refusal{
			refuse("send", "SESSION_ID_MISSING", "", sending, &sidebusv1.SendRequest{Target: tales, Messages: []*sidebusv1.Message{inSession("s", "x"), text("y")}}),
			refuse("send empty id", "SESSION_ID_MISSING", "", sending, &sidebusv1.SendRequest{Target: tales, Messages: []*sidebusv1.Message{inSession("", "x")}}),
			refuse("receive", needed, "", sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: tales}),
			refuse("receive deferred", needed, "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: tales, SequenceNumbers: one}),
			refuse("receive by sequence", wrong, "", receivingByNumber, &sidebusv1.ReceiveBySequenceRequest{Source: tales, SequenceNumbers: one}),
			refuse("renew", wrong, "", sidebusv1.MessagesClient.RenewLocks, &sidebusv1.RenewLocksRequest{Source: tales, LockTokens: []string{token}}),
		}
		for _, r := range refusals {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.messages); check(t) })
		}
		for verb, settle := range settlements(w, token) {
			if _, err := settle(t.Context(), nil); reasonOf(t, err) != needed {
				t.Errorf("%s: got %v", verb, err)
			}
		}
		check(t)

		for _, r := range callsInSession(orders, *lock, token, "SESSION_NOT_SUPPORTED") {
			t.Run("plain queue: "+r.name, func(t *testing.T) { r.check(t, w.messages) })
		}
		for source, reason := range map[string]string{orders: "SESSION_NOT_SUPPORTED", absent: "ENTITY_NOT_FOUND"} {
			for _, r := range sessionCalls(source, *lock, reason) {
				t.Run(source+": "+r.name, func(t *testing.T) { r.check(t, w.sessions) })
			}
		}
		check(t)
	})
}

// Fields that name a session, each refused by its name before anything is done.
func TestSessionRefusalsOnBothWires(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		w.openTales(t, "")
		w.tell(t, "s", "one", "two")
		held := w.accept(t, "s")
		token := w.hear(t, held, 1)[0].GetLockToken()
		check := w.unchangedTales(t)
		bad := "INVALID_ARGUMENT"
		const lockField, ownField, idField = "sessionLockToken", "lockToken", "sessionId"
		for _, lock := range []string{
			"", "x", held.GetLockToken()[1:], held.GetLockToken() + "0", strings.ReplaceAll(held.GetLockToken(), "-", ""), "00000000-0000-0000-0000-000000000000",
			held.GetLockToken()[:35] + "\x00", strings.Repeat("é", 18),
		} {
			one := []int64{1}
			for _, r := range []refusal{
				refuse("receive", bad, lockField, sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: tales, SessionLockToken: &lock}),
				refuse("receive deferred", bad, lockField, receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: tales, SequenceNumbers: one, SessionLockToken: &lock}),
				refuse("reactivate", bad, lockField, reactivating, &sidebusv1.ReactivateRequest{Source: tales, SequenceNumbers: one, SessionLockToken: &lock}),
				refuse("peek", bad, lockField, peeking, &sidebusv1.PeekRequest{Source: tales, SessionLockToken: &lock}),
				refuse("purge", bad, lockField, purging, &sidebusv1.PurgeRequest{Source: tales, SessionLockToken: &lock}),
			} {
				t.Run(r.name+" "+lock, func(t *testing.T) { r.check(t, w.messages) })
			}
			for verb, settle := range settlements(w, token) {
				if _, err := settle(t.Context(), &lock); reasonOf(t, err) != bad || infoOf(t, err).GetMetadata()["field"] != lockField {
					t.Errorf("%s %q: got %v", verb, lock, err)
				}
			}
			for _, r := range []refusalBy[sidebusv1.SessionsClient]{
				refuse("renew", bad, ownField, renewing, &sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: lock}),
				refuse("close", bad, ownField, closing, &sidebusv1.SessionsCloseRequest{Source: tales, LockToken: lock}),
				refuse("get state", bad, ownField, gettingState, &sidebusv1.SessionsGetStateRequest{Source: tales, LockToken: lock}),
				refuse("set state", bad, ownField, settingState, &sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: lock}),
			} {
				t.Run(r.name+" "+lock, func(t *testing.T) { r.check(t, w.sessions) })
			}
		}
		for name, id := range map[string]string{"empty": "", "129 characters": strings.Repeat("x", 129), "65 of two units": strings.Repeat("\U0001f600", 65)} {
			for _, r := range []refusal{
				refuse("peek", bad, idField, peeking, &sidebusv1.PeekRequest{Source: tales, SessionId: &id}),
				refuse("purge", bad, idField, purging, &sidebusv1.PurgeRequest{Source: tales, SessionId: &id}),
			} {
				t.Run(r.name+" "+name, func(t *testing.T) { r.check(t, w.messages) })
			}
			for _, r := range []refusalBy[sidebusv1.SessionsClient]{
				refuse("accept", bad, idField, accepting, &sidebusv1.SessionsAcceptRequest{Source: tales, SessionId: &id}),
				refuse("unblock", bad, idField, unblocking, &sidebusv1.SessionsUnblockRequest{Source: tales, SessionId: id}),
				refuse("rest", bad, idField, givingUp, &sidebusv1.SessionsDeadLetterRestRequest{Source: tales, SessionId: id}),
			} {
				t.Run(r.name+" "+name, func(t *testing.T) { r.check(t, w.sessions) })
			}
		}
		both := proto.String("s")
		for _, r := range []refusal{
			refuse("peek by both", bad, idField, peeking, &sidebusv1.PeekRequest{Source: tales, SessionId: both, SessionLockToken: &held.LockToken}),
			refuse("purge by both", bad, idField, purging, &sidebusv1.PurgeRequest{Source: tales, SessionId: both, SessionLockToken: &held.LockToken}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.messages) })
		}
		accept := func(name, reason, field string, request *sidebusv1.SessionsAcceptRequest) refusalBy[sidebusv1.SessionsClient] {
			if request.Source == "" {
				request.Source = tales
			}
			return refuse("accept: "+name, reason, field, accepting, request)
		}
		for _, r := range []refusalBy[sidebusv1.SessionsClient]{
			accept("SESS-12 long wait", outOfRange, "maxWait", &sidebusv1.SessionsAcceptRequest{MaxWait: durationpb.New(300*time.Second + 1)}),
			accept("SESS-12 negative wait", outOfRange, "maxWait", &sidebusv1.SessionsAcceptRequest{MaxWait: durationpb.New(-1)}),
			accept("SESS-11 long wait", outOfRange, "maxWait", &sidebusv1.SessionsAcceptRequest{SessionId: both, MaxWait: durationpb.New(60*time.Second + 1)}),
			accept("malformed queue", bad, "name", &sidebusv1.SessionsAcceptRequest{Source: "queues/a b"}),
			refuse("list: malformed queue", bad, "name", listing, &sidebusv1.SessionsListRequest{Source: "queues/a b"}),
			refuse("unblock: malformed queue", bad, "name", unblocking, &sidebusv1.SessionsUnblockRequest{Source: "queues/a b", SessionId: "s"}),
			refuse("renew: malformed queue", bad, "name", renewing, &sidebusv1.SessionsRenewLockRequest{Source: "queues/a b", LockToken: held.GetLockToken()}),
		} {
			t.Run(r.name, func(t *testing.T) { r.check(t, w.sessions) })
		}
		check(t)
	})
}

var brokenInstant = &timestamppb.Timestamp{Nanos: -1}

// What JSON cannot say, or says otherwise: see refusedFields.
func TestGRPCRefusalsOfSessions(t *testing.T) {
	t.Parallel()
	s := start(t, newSpyStore())
	s.openTales(t, "")
	const thing, bad = "things/t", "INVALID_ARGUMENT"
	for _, r := range []refusalBy[sidebusv1.SessionsClient]{
		refuse("accept: unknown field", bad, "request", accepting, unknownField(&sidebusv1.SessionsAcceptRequest{Source: tales})),
		refuse("renew: unknown field", bad, "request", renewing, unknownField(&sidebusv1.SessionsRenewLockRequest{Source: tales, LockToken: nobodysToken})),
		refuse("close: unknown field", bad, "request", closing, unknownField(&sidebusv1.SessionsCloseRequest{Source: tales, LockToken: nobodysToken})),
		refuse("get state: unknown field", bad, "request", gettingState, unknownField(&sidebusv1.SessionsGetStateRequest{Source: tales, LockToken: nobodysToken})),
		refuse("set state: unknown field", bad, "request", settingState, unknownField(&sidebusv1.SessionsSetStateRequest{Source: tales, LockToken: nobodysToken})),
		refuse("list: unknown field", bad, "request", listing, unknownField(&sidebusv1.SessionsListRequest{Source: tales})),
		refuse("unblock: unknown field", bad, "request", unblocking, unknownField(&sidebusv1.SessionsUnblockRequest{Source: tales, SessionId: "s"})),
		refuse("rest: unknown field", bad, "request", givingUp,
			unknownField(&sidebusv1.SessionsDeadLetterRestRequest{Source: tales, SessionId: "s"})),
		refuse("accept: other kind", bad, "source", accepting, &sidebusv1.SessionsAcceptRequest{Source: thing}),
		refuse("renew: other kind", bad, "source", renewing, &sidebusv1.SessionsRenewLockRequest{Source: thing, LockToken: nobodysToken}),
		refuse("list: other kind", bad, "source", listing, &sidebusv1.SessionsListRequest{Source: thing}),
		refuse("unblock: other kind", bad, "source", unblocking, &sidebusv1.SessionsUnblockRequest{Source: thing, SessionId: "s"}),
		refuse("accept: broken wait", bad, "maxWait", accepting, &sidebusv1.SessionsAcceptRequest{Source: tales, MaxWait: &durationpb.Duration{Seconds: 1, Nanos: -1}}),
		refuse("list: broken instant", bad, "activeSince", listing, &sidebusv1.SessionsListRequest{Source: tales, ActiveSince: brokenInstant}),
		refuse("list: the other broken instant", bad, "updatedSince", listing, &sidebusv1.SessionsListRequest{Source: tales, UpdatedSince: brokenInstant}),
	} {
		t.Run(r.name, func(t *testing.T) { r.check(t, s.sessions) })
	}
}
