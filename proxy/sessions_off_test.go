package proxy_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// callsInSession are the calls about messages that can name a session or its lock, all refused for a reason.
func callsInSession(source, held, token, reason string) []refusal {
	lock, one, tokens := &held, []int64{1}, []string{token}
	return []refusal{
		refuse("receive", reason, "", sidebusv1.MessagesClient.Receive, &sidebusv1.ReceiveRequest{Source: source, SessionLockToken: lock}),
		refuse("receive deferred", reason, "", receivingDeferred, &sidebusv1.ReceiveDeferredRequest{Source: source, SequenceNumbers: one, SessionLockToken: lock}),
		refuse("complete", reason, "", sidebusv1.MessagesClient.Complete, &sidebusv1.CompleteRequest{Source: source, LockTokens: tokens, SessionLockToken: lock}),
		refuse("complete and receive", reason, "", sidebusv1.MessagesClient.CompleteAndReceive, &sidebusv1.CompleteAndReceiveRequest{Source: source, LockTokens: tokens, SessionLockToken: lock}),
		refuse("abandon", reason, "", abandoning, &sidebusv1.AbandonRequest{Source: source, LockTokens: tokens, SessionLockToken: lock}),
		refuse("defer", reason, "", deferring, &sidebusv1.DeferRequest{Source: source, LockTokens: tokens, SessionLockToken: lock}),
		refuse("release", reason, "", sidebusv1.MessagesClient.Release, &sidebusv1.ReleaseRequest{Source: source, LockTokens: tokens, SessionLockToken: lock}),
		refuse("dead-letter", reason, "", deadLettering, &sidebusv1.DeadLetterRequest{Source: source, LockTokens: tokens, SessionLockToken: lock}),
		refuse("reactivate", reason, "", reactivating, &sidebusv1.ReactivateRequest{Source: source, SequenceNumbers: one, SessionLockToken: lock}),
		refuse("peek by lock", reason, "", peeking, &sidebusv1.PeekRequest{Source: source, SessionLockToken: lock}),
		refuse("peek by name", reason, "", peeking, &sidebusv1.PeekRequest{Source: source, SessionId: proto.String("s")}),
		refuse("purge by lock", reason, "", purging, &sidebusv1.PurgeRequest{Source: source, SessionLockToken: lock}),
		refuse("purge by name", reason, "", purging, &sidebusv1.PurgeRequest{Source: source, SessionId: proto.String("s")}),
	}
}

// sessionCalls are all calls of the service Sessions, refused for a reason.
func sessionCalls(source, lock, reason string) []refusalBy[sidebusv1.SessionsClient] {
	now := &durationpb.Duration{}
	return []refusalBy[sidebusv1.SessionsClient]{
		refuse("accept next", reason, "", accepting, &sidebusv1.SessionsAcceptRequest{Source: source, MaxWait: now}),
		refuse("accept", reason, "", accepting, &sidebusv1.SessionsAcceptRequest{Source: source, SessionId: proto.String("s")}),
		refuse("renew", reason, "", renewing, &sidebusv1.SessionsRenewLockRequest{Source: source, LockToken: lock}),
		refuse("close", reason, "", closing, &sidebusv1.SessionsCloseRequest{Source: source, LockToken: lock}),
		refuse("get state", reason, "", gettingState, &sidebusv1.SessionsGetStateRequest{Source: source, LockToken: lock}),
		refuse("set state", reason, "", settingState, &sidebusv1.SessionsSetStateRequest{Source: source, LockToken: lock}),
		refuse("list", reason, "", listing, &sidebusv1.SessionsListRequest{Source: source}),
		refuse("unblock", reason, "", unblocking, &sidebusv1.SessionsUnblockRequest{Source: source, SessionId: "s"}),
		refuse("rest", reason, "", givingUp, &sidebusv1.SessionsDeadLetterRestRequest{Source: source, SessionId: "s"}),
	}
}

// A sidecar with sessions switched off refuses every call for a session, also for one that another sidecar holds.
func TestSESS_8_CallsForSessionsElsewhere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"grpc", "http"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memstore.New()
			on := start(t, store)
			w := &wire{sidecar: on, messages: on.messages, sessions: on.sessions}
			w.openTales(t, "")
			w.tell(t, "s", "one", "two")
			held := w.next(t)
			token := w.hear(t, held, 1)[0].GetLockToken()
			check := w.unchangedTales(t)

			off := launchBroker(t, broker.New(store, broker.WithRules(filter.Compile), broker.WithoutSessions()), store)
			wait(t, "start", off.proxy.Started())
			messages, sessions := off.clients(name)
			const no = "SESSION_NOT_SUPPORTED"
			refused := append(callsInSession(tales, held.GetLockToken(), token, no), refuse("request", no, "", requesting, asking(text("question"))))
			for _, r := range refused {
				t.Run(r.name, func(t *testing.T) { r.check(t, messages) })
			}
			for _, r := range sessionCalls(tales, held.GetLockToken(), no) {
				t.Run(r.name+" of sessions", func(t *testing.T) { r.check(t, sessions) })
			}
			check(t)
			on.counted(t, orders, "available 0 locked 0 dead 0") // the request was not sent
		})
	}
}
