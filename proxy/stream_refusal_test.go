package proxy_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// someToken is the token of no lock.
const someToken = "5b5ef8a1-57a5-4e2c-a9f0-0a4c2d4e5f60"

func opening(change func(open *sidebusv1.SubscribeOpen)) *sidebusv1.SubscribeRequest {
	open := &sidebusv1.SubscribeOpen{Source: orders}
	change(open)
	return &sidebusv1.SubscribeRequest{RequestId: "open", Request: &sidebusv1.SubscribeRequest_Open{Open: open}}
}

// A stream that cannot be opened ends with the reason.
func TestERR_2_RefusedOpenings(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	long := opening(func(*sidebusv1.SubscribeOpen) {})
	long.RequestId = strings.Repeat("x", 129)
	for _, c := range []struct {
		name          string
		request       *sidebusv1.SubscribeRequest
		reason, field string
	}{
		{"nothing asked", &sidebusv1.SubscribeRequest{}, "INVALID_ARGUMENT", "request"},
		{
			"not opened", &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Credits{Credits: &sidebusv1.SubscribeCredits{}}},
			"INVALID_ARGUMENT", "open",
		},
		{"unknown field", unknownField(opening(func(*sidebusv1.SubscribeOpen) {})), "INVALID_ARGUMENT", "request"},
		{"unknown option", opening(func(o *sidebusv1.SubscribeOpen) { unknownField(o) }), "INVALID_ARGUMENT", "open"},
		{"long request id", long, "INVALID_ARGUMENT", "requestId"},
		{"long id", opening(func(o *sidebusv1.SubscribeOpen) { o.Id = strings.Repeat("x", 129) }), "INVALID_ARGUMENT", "id"},
		{"no source", opening(func(o *sidebusv1.SubscribeOpen) { o.Source = "" }), "INVALID_ARGUMENT", "source"},
		{"a thing", opening(func(o *sidebusv1.SubscribeOpen) { o.Source = "things/t" }), "INVALID_ARGUMENT", "source"},
		{"no such subscription", opening(func(o *sidebusv1.SubscribeOpen) { o.Source = "topics/t/subscriptions/s" }), "ENTITY_NOT_FOUND", ""},
		{"a queue as a topic", opening(func(o *sidebusv1.SubscribeOpen) { o.Source = "topics/orders" }), "ENTITY_NOT_FOUND", ""},
		{"no such queue", opening(func(o *sidebusv1.SubscribeOpen) { o.Source = "queues/nothing" }), "ENTITY_NOT_FOUND", ""},
		{"unknown sub-queue", opening(func(o *sidebusv1.SubscribeOpen) { o.SubQueue = 7 }), "INVALID_ARGUMENT", "subQueue"},
		{"unknown mode", opening(func(o *sidebusv1.SubscribeOpen) { o.Mode = 7 }), "INVALID_ARGUMENT", "mode"},
		{"many credits", opening(func(o *sidebusv1.SubscribeOpen) { o.Credits = proto.Int32(1001) }), "ARGUMENT_OUT_OF_RANGE", "credits"},
		{"much ahead", opening(func(o *sidebusv1.SubscribeOpen) { o.Prefetch = 1001 }), "ARGUMENT_OUT_OF_RANGE", "prefetch"},
		{"ahead in sessions", opening(func(o *sidebusv1.SubscribeOpen) { o.Source, o.Prefetch = tales, 1 }), "INVALID_OPERATION", "prefetch"},
		{"no sessions", opening(func(o *sidebusv1.SubscribeOpen) { o.MaxConcurrentSessions = proto.Int32(0) }), "ARGUMENT_OUT_OF_RANGE", "maxConcurrentSessions"},
		{"none in flight", opening(func(o *sidebusv1.SubscribeOpen) { o.SessionInFlight = proto.Int32(0) }), "ARGUMENT_OUT_OF_RANGE", "sessionInFlight"},
		{"long renewal", opening(func(o *sidebusv1.SubscribeOpen) { o.MaxAutoRenew = durationpb.New(25 * time.Hour) }), "ARGUMENT_OUT_OF_RANGE", "maxAutoRenew"},
		{"broken renewal", opening(func(o *sidebusv1.SubscribeOpen) { o.MaxAutoRenew = &durationpb.Duration{Nanos: 2e9} }), "INVALID_ARGUMENT", "maxAutoRenew"},
		{"long idleness", opening(func(o *sidebusv1.SubscribeOpen) { o.SessionIdle = durationpb.New(-1) }), "ARGUMENT_OUT_OF_RANGE", "sessionIdle"},
		{"broken idleness", opening(func(o *sidebusv1.SubscribeOpen) { o.SessionIdle = &durationpb.Duration{Seconds: 1, Nanos: -1} }), "INVALID_ARGUMENT", "sessionIdle"},
	} {
		stream := s.dialStream(t)
		stream.send(c.request)
		_, err := stream.stream.Recv()
		if status.Code(err) != statuses[c.reason].grpc {
			t.Errorf("%s: got %v, want %s", c.name, err, c.reason)
			continue
		}
		if info := infoOf(t, err); info.GetReason() != c.reason || info.GetMetadata()["field"] != c.field {
			t.Errorf("%s: got %v, want %s %q", c.name, info, c.reason, c.field)
		}
	}
	if end := s.dialStream(t).closes(); end != "OK" {
		t.Errorf("a stream that asks for nothing ends with %s", end)
	}
}

func TestRECV_13_SecondStreamOfAnID(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	open := ordersOpen(1)
	open.Id = "worker"
	first := s.subscribe(t, open)
	second := s.dialStream(t)
	second.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: open}})
	_, err := second.stream.Recv()
	if info := infoOf(t, err); info.GetReason() != "INVALID_OPERATION" || info.GetMetadata()["field"] != "id" {
		t.Errorf("got %v", info)
	}
	s.send(t, "1")
	first.wants("1")
	first.leave()
	eventually(t, "the id is free", func() bool {
		again := s.dialStream(t)
		again.send(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: open}})
		opened, err := again.stream.Recv()
		return err == nil && opened.GetOpened() != nil
	})
}

// A request that fails is answered, with or without an id, and the stream goes on.
func TestERR_4_RefusedRequests(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	s.publish(t).send(publication(orders, "1"), publication(tales, "a/1"))
	plain, sessions := s.subscribe(t, ordersOpen(1)), s.subscribe(t, talesOpen(1, 1))
	plain.wants("1")
	sessions.wants("+a a/1")
	settle := func(change func(r *sidebusv1.SubscribeSettle)) *sidebusv1.SubscribeRequest {
		r := completion()
		r.LockTokens = []string{someToken}
		change(r)
		return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: r}}
	}
	complete := func(r *sidebusv1.CompleteRequest) *sidebusv1.SubscribeRequest {
		return settle(func(s *sidebusv1.SubscribeSettle) { s.Verb = &sidebusv1.SubscribeSettle_Complete{Complete: r} })
	}
	abandon := func(r *sidebusv1.AbandonRequest) *sidebusv1.SubscribeRequest {
		return settle(func(s *sidebusv1.SubscribeSettle) { s.Verb = &sidebusv1.SubscribeSettle_Abandon{Abandon: r} })
	}
	deadLetter := func(r *sidebusv1.DeadLetterRequest) *sidebusv1.SubscribeRequest {
		return settle(func(s *sidebusv1.SubscribeSettle) { s.Verb = &sidebusv1.SubscribeSettle_DeadLetter{DeadLetter: r} })
	}
	renew := func(tokens ...string) *sidebusv1.SubscribeRequest {
		return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_RenewLocks{RenewLocks: &sidebusv1.SubscribeRenewLocks{LockTokens: tokens}}}
	}
	ofSession := func(token string) (all []*sidebusv1.SubscribeRequest) {
		session := &sidebusv1.SubscribeSession{SessionLockToken: token}
		return []*sidebusv1.SubscribeRequest{
			{Request: &sidebusv1.SubscribeRequest_RenewSession{RenewSession: session}},
			{Request: &sidebusv1.SubscribeRequest_CloseSession{CloseSession: session}},
			{Request: &sidebusv1.SubscribeRequest_GetState{GetState: session}},
			{Request: &sidebusv1.SubscribeRequest_SetState{SetState: &sidebusv1.SubscribeSetState{SessionLockToken: token}}},
		}
	}
	long := renew(someToken)
	long.RequestId = strings.Repeat("x", 129)
	type refused struct {
		name          string
		on            *subscriber
		request       *sidebusv1.SubscribeRequest
		reason, field string
	}
	all := []refused{
		{"second open", plain, opening(func(*sidebusv1.SubscribeOpen) {}), "INVALID_ARGUMENT", "open"},
		{"nothing asked", plain, &sidebusv1.SubscribeRequest{}, "INVALID_ARGUMENT", "request"},
		{"unknown field", plain, unknownField(renew(someToken)), "INVALID_ARGUMENT", "request"},
		{"long id", plain, long, "INVALID_ARGUMENT", "requestId"},
		{"unknown field of settle", plain, settle(func(r *sidebusv1.SubscribeSettle) { unknownField(r) }), "INVALID_ARGUMENT", "settle"},
		{"unknown field of a verb", plain, abandon(unknownField(&sidebusv1.AbandonRequest{})), "INVALID_ARGUMENT", "verb"},
		{"no verb", plain, settle(func(r *sidebusv1.SubscribeSettle) { r.Verb = nil }), "INVALID_ARGUMENT", "verb"},
		{"no tokens", plain, settle(func(r *sidebusv1.SubscribeSettle) { r.LockTokens = nil }), "INVALID_ARGUMENT", "lockTokens"},
		{"no UUID", plain, settle(func(r *sidebusv1.SubscribeSettle) { r.LockTokens = []string{someToken, "x"} }), "INVALID_ARGUMENT", "lockTokens"},
		{"empty token", plain, settle(func(r *sidebusv1.SubscribeSettle) { r.LockTokens = []string{""} }), "INVALID_OPERATION", "lockTokens"},
		{"tokens in the verb", plain, complete(&sidebusv1.CompleteRequest{LockTokens: []string{someToken}}), "INVALID_ARGUMENT", "verb"},
		{"source in the verb", plain, complete(&sidebusv1.CompleteRequest{Source: orders}), "INVALID_ARGUMENT", "verb"},
		{"sub-queue in the verb", plain, complete(&sidebusv1.CompleteRequest{SubQueue: sidebusv1.SubQueue_DEAD_LETTER}), "INVALID_ARGUMENT", "verb"},
		{"session in the verb", plain, complete(&sidebusv1.CompleteRequest{SessionLockToken: proto.String(someToken)}), "INVALID_ARGUMENT", "verb"},
		{"long delay", plain, abandon(&sidebusv1.AbandonRequest{Delay: durationpb.New(8 * 24 * time.Hour)}), "ARGUMENT_OUT_OF_RANGE", "delay"},
		{"long reason", plain, deadLetter(&sidebusv1.DeadLetterRequest{Reason: proto.String(strings.Repeat("x", 4097))}), "ARGUMENT_OUT_OF_RANGE", "reason"},
		{"credits", plain, &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Credits{Credits: &sidebusv1.SubscribeCredits{Credits: -1}}}, "ARGUMENT_OUT_OF_RANGE", "credits"},
		{"renew nothing", plain, renew(), "INVALID_ARGUMENT", "lockTokens"},
		{"renew no UUID", plain, renew("x"), "INVALID_ARGUMENT", "lockTokens"},
		{"renew in a session", sessions, renew(someToken), "INVALID_OPERATION", ""},
	}
	for _, r := range ofSession("x") {
		all = append(all, refused{"no UUID of a session", sessions, r, "INVALID_ARGUMENT", "sessionLockToken"})
	}
	for _, r := range ofSession("") {
		all = append(all, refused{"no session", sessions, r, "INVALID_ARGUMENT", "sessionLockToken"})
	}
	for _, r := range ofSession(someToken) {
		all = append(all, refused{"a session that is not held", sessions, r, "SESSION_LOCK_LOST", ""})
	}
	for _, r := range ofSession(someToken) {
		if r.GetCloseSession() == nil {
			all = append(all, refused{"a session of a plain queue", plain, r, "SESSION_NOT_SUPPORTED", ""})
		}
	}
	for _, c := range all {
		for _, id := range []string{"some", ""} {
			request := proto.CloneOf(c.request)
			if len(request.GetRequestId()) < 100 {
				request.RequestId = id
			}
			c.on.send(request)
			failure := c.on.answer(request.GetRequestId()).GetFailure()
			if failure.GetReason() != c.reason || failure.GetDetails()["field"] != c.field {
				t.Errorf("%s: got %v, want %s %q", c.name, failure, c.reason, c.field)
			}
		}
	}
	plain.complete("1")
	sessions.complete("a/1")
}

// Only requests with an id are answered, and only with what was requested.
func TestRECV_13_AnswersAreForThoseWhoAsk(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	s.openTales(t, "")
	s.publish(t).send(publication(tales, "a/1", "a/2", "a/3"))
	c := s.subscribe(t, talesOpen(1, 3))
	c.wants("+a a/1 a/2 a/3")
	session := &sidebusv1.SubscribeSession{SessionLockToken: c.held["a"]}
	for _, r := range []*sidebusv1.SubscribeRequest{
		c.settling(completion(), "a/1"),
		{Request: &sidebusv1.SubscribeRequest_RenewSession{RenewSession: session}},
		{Request: &sidebusv1.SubscribeRequest_GetState{GetState: session}},
		{RequestId: "credits", Request: &sidebusv1.SubscribeRequest_Credits{Credits: &sidebusv1.SubscribeCredits{Credits: 3}}},
		{RequestId: "close", Request: &sidebusv1.SubscribeRequest_CloseSession{CloseSession: session}},
	} {
		c.send(r)
	}
	c.wants("-a:CLOSED +a a/2 a/3")
	if len(c.early) != 0 {
		t.Errorf("unasked: %v", c.early)
	}
}
