package proxy_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	protofiles "github.com/sidebus/sidebus/proto"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy"
	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/sas"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// claimsOf is the table of AUTH-3 as the specification has it: which claims are enough for each RPC. "ListenSend" needs
// both, "none" no claim: an operation of a transaction needs that of its own call.
var claimsOf = map[string]string{
	"Calls.Multiplex":       "none", // each of its calls needs its own
	"Transactions.Transact": "none", "Transactions.Begin": "none", "Transactions.Add": "none", "Transactions.Commit": "none", "Transactions.Rollback": "none",
	"Messages.Send": "Send", "Messages.CancelScheduled": "Send", "Messages.Publish": "Send", "Messages.Request": "ListenSend",
	"Messages.Receive": "Listen", "Messages.CompleteAndReceive": "Listen", "Messages.ReceiveDeferred": "Listen", "Messages.ReceiveBySequence": "Listen", "Messages.Peek": "Listen",
	"Messages.Complete": "Listen", "Messages.Abandon": "Listen", "Messages.Defer": "Listen", "Messages.Release": "Listen",
	"Messages.DeadLetter": "Listen", "Messages.RenewLocks": "Listen", "Messages.Reactivate": "Listen", "Messages.DeleteBySequence": "Listen",
	"Messages.Subscribe": "Listen", "Messages.Purge": "Manage", "Messages.Resubmit": "ListenSend",
	"Sessions.Accept": "Listen", "Sessions.RenewLock": "Listen", "Sessions.Close": "Listen", "Sessions.GetState": "Listen",
	"Sessions.SetState": "Listen", "Sessions.List": "Listen", "Sessions.Unblock": "Listen", "Sessions.DeadLetterRest": "Listen",
	"Admin.EnsureQueue": "Manage", "Admin.CreateQueue": "Manage", "Admin.GetQueue": "Manage", "Admin.ListQueues": "Manage",
	"Admin.UpdateQueue": "Manage", "Admin.DeleteQueue": "Manage", "Admin.GetQueueRuntime": "Manage",
	"Admin.EnsureTopic": "Manage", "Admin.CreateTopic": "Manage", "Admin.GetTopic": "Manage", "Admin.ListTopics": "Manage",
	"Admin.UpdateTopic": "Manage", "Admin.DeleteTopic": "Manage", "Admin.GetTopicRuntime": "Manage",
	"Admin.EnsureSubscription": "Manage", "Admin.CreateSubscription": "Manage", "Admin.GetSubscription": "Manage", "Admin.ListSubscriptions": "Manage",
	"Admin.UpdateSubscription": "Manage", "Admin.DeleteSubscription": "Manage", "Admin.GetSubscriptionRuntime": "Manage",
	"Admin.EnsureRule": "Manage", "Admin.CreateRule": "Manage", "Admin.DeleteRule": "Manage", "Admin.GetRule": "Listen", "Admin.ListRules": "Listen",
}

// claimsOfREST is the table for the REST API of Service Bus; compat's TestAUTH_3_TheTableHasEveryVerb counts its rows.
var claimsOfREST = map[string]string{
	"POST /q/messages": "Send", "POST /q/messages/head?timeout=0": "Listen", "DELETE /q/messages/head?timeout=0": "Listen",
	"DELETE /q/messages/1/" + someLock: "Listen", "PUT /q/messages/1/" + someLock: "Listen", "POST /q/messages/1/" + someLock: "Listen",
}

// someKeys has a rule for every set of claims, and one for another entity than those of the tests.
var someKeys = access.Keys{
	"Send": {Primary: "k", Claims: access.Send}, "Listen": {Primary: "k", Claims: access.Listen}, "ListenSend": {Primary: "k", Claims: access.Listen | access.Send},
	"Manage": {Primary: "k", Claims: access.Send | access.Listen | access.Manage},
	"other":  {Primary: "k", Claims: access.Send | access.Listen | access.Manage, Entity: "elsewhere"},
	"sender": {Primary: "k", Claims: access.Send, Entity: "elsewhere"},
}

func tokenOf(rule string) string { return sas.Sign(rule, "k", time.Now().Add(time.Hour)) }

// permits reports whether a rule is enough for what an RPC needs.
func permits(rule, needs string) bool {
	return needs == "none" || rule == "Manage" || rule == needs || rule == "ListenSend" && needs != "Manage"
}

// wantCode checks the code of a refusal, OK for none: an answer of any other kind came after the check.
func wantCode(rule, needs string) codes.Code {
	switch {
	case rule == "":
		return codes.Unauthenticated
	case permits(rule, needs):
		return codes.OK
	default:
		return codes.PermissionDenied
	}
}

var allRules = []string{"", "Send", "Listen", "ListenSend", "Manage", "other"}

// callMultiplexed calls an RPC over a stream with the token of a rule. The token of the stream is for everything.
func (s *sidecar) callMultiplexed(t *testing.T, rule string, method protoreflect.MethodDescriptor) error {
	t.Helper()
	s = s.as(rule)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if token := s.tokenOf("Manage"); token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", token)
	}
	stream, err := sidebusv1.NewCallsClient(s.conn).Multiplex(ctx)
	must(t, err)
	call := callOf(t, 1, "/"+string(method.Parent().FullName())+"/"+string(method.Name()), requestOf(method.Input(), string(method.Name())))
	call.Metadata = map[string]string{"authorization": ""}
	if rule != "" {
		call.Metadata["authorization"] = s.tokenOf(rule)
	}
	_ = stream.Send(&sidebusv1.MultiplexRequest{Calls: []*sidebusv1.MultiplexRequest_Call{call}}) // Recv has the reason
	response, err := stream.Recv()
	if err != nil {
		return err // a caller that proves nothing by its connection cannot open the stream
	}
	failure := &spb.Status{}
	must(t, proto.Unmarshal(response.GetAnswers()[0].GetStatus(), failure))
	return status.ErrorProto(failure)
}

// Every RPC is refused without a token and with one for something else, before anything is said of an entity that is
// not there (ERR-5).
func TestAUTH_3_EveryRPCNeedsItsClaim(t *testing.T) {
	t.Parallel()
	withEachGuard(t, checkEveryRPCNeedsItsClaim)
}

func checkEveryRPCNeedsItsClaim(t *testing.T, s *sidecar) {
	t.Helper()
	seen := 0
	for _, file := range files() {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				method := service.Methods().Get(j)
				name := string(service.Name()) + "." + string(method.Name())
				needs, known := claimsOf[name]
				if !known {
					t.Errorf("%s has no claim in the table", name)
				}
				seen++
				for _, rule := range allRules {
					want := wantCode(rule, needs)
					failures := map[string]error{"alone": s.callWith(t, rule, method)}
					if !method.IsStreamingClient() {
						failures["multiplexed"] = s.callMultiplexed(t, rule, method)
					}
					for way, err := range failures {
						if got := status.Code(err); got != want && (want != codes.OK || got == codes.Unauthenticated || got == codes.PermissionDenied) {
							t.Errorf("%s %s with rule %q: got %v, want %s", name, way, rule, err, want)
						}
						if err != nil && want != codes.OK && strings.Contains(err.Error(), "does not exist") {
							t.Errorf("%s %s with rule %q tells what exists: %v", name, way, rule, err)
						}
					}
				}
			}
		}
	}
	if seen != len(claimsOf) {
		t.Errorf("saw %d RPCs, the table has %d", seen, len(claimsOf))
	}
}

// files are the files of the API.
func files() (all []protoreflect.FileDescriptor) {
	protoregistry.GlobalFiles.RangeFilesByPackage(sidebusv1.File_sidebus_v1_messages_proto.Package(), func(file protoreflect.FileDescriptor) bool {
		all = append(all, file)
		return true
	})
	return all
}

// The server has no other services than those of the API, and those that are for all.
func TestAUTH_3_EveryServiceIsKnown(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	want := []string{"grpc.health.v1.Health", "grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection"}
	for _, file := range files() {
		for i := range file.Services().Len() {
			want = append(want, string(file.Services().Get(i).FullName()))
		}
	}
	stream, err := reflectionpb.NewServerReflectionClient(s.conn).ServerReflectionInfo(t.Context())
	must(t, err)
	must(t, stream.Send(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}))
	response, err := stream.Recv()
	must(t, err)
	var got []string
	for _, service := range response.GetListServicesResponse().GetService() {
		got = append(got, service.GetName())
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// callWith calls an RPC for entities that do not exist, with the token of a rule, and gives its first failure.
func (s *sidecar) callWith(t *testing.T, rule string, method protoreflect.MethodDescriptor) error {
	t.Helper()
	s = s.as(rule)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if rule != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", s.tokenOf(rule))
	}
	full := "/" + string(method.Parent().FullName()) + "/" + string(method.Name())
	request, reply := requestOf(method.Input(), string(method.Name())), dynamicpb.NewMessage(method.Output())
	if !method.IsStreamingClient() {
		return s.conn.Invoke(ctx, full, request, reply)
	}
	stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, full)
	if err != nil {
		return err
	}
	_ = stream.SendMsg(request) // RecvMsg gives the reason of a failure
	_ = stream.CloseSend()
	if err := stream.RecvMsg(reply); err != nil {
		return err
	}
	if reply.Descriptor().Fields().ByName("failure") == nil {
		return nil
	}
	failure := reply.Get(reply.Descriptor().Fields().ByName("failure")).Message().Interface()
	published := &sidebusv1.Failure{}
	text, err := proto.Marshal(failure)
	if err == nil {
		err = proto.Unmarshal(text, published)
	}
	if err != nil {
		t.Fatal(err)
	}
	switch published.GetReason() { // of one request of a stream that goes on
	case "UNAUTHENTICATED":
		return status.Error(codes.Unauthenticated, published.GetMessage())
	case "PERMISSION_DENIED":
		return status.Error(codes.PermissionDenied, published.GetMessage())
	default:
		return nil
	}
}

// requestOf makes a request that names entities in all places.
func requestOf(of protoreflect.MessageDescriptor, method string) *dynamicpb.Message {
	m := dynamicpb.NewMessage(of)
	name := "queues/q"
	switch {
	case strings.Contains(method, "Rule"):
		name = "topics/t/subscriptions/s/rules/r"
	case strings.Contains(method, "Subscription"):
		name = "topics/t/subscriptions/s"
	case strings.Contains(method, "Topic"):
		name = "topics/t"
	}
	for field, value := range map[string]string{"target": "queues/q", "source": "queues/q", "reply_to": "queues/r", "name": name, "topic": "topics/t", "subscription": "topics/t/subscriptions/s"} {
		fd := of.Fields().ByName(protoreflect.Name(field))
		if fd != nil && fd.Kind() == protoreflect.StringKind && !(method == "Resubmit" && field == "target") {
			m.Set(fd, protoreflect.ValueOfString(value))
		}
	}
	if open := of.Fields().ByName("open"); open != nil {
		m.Set(open, protoreflect.ValueOfMessage(requestOf(open.Message(), method)))
	}
	return m
}

// Every route is refused as its RPC is, and so are routes that do not exist without a token. The description of the API
// is for all.
func TestAUTH_3_EveryRouteNeedsItsClaim(t *testing.T) {
	t.Parallel()
	withEachGuard(t, checkEveryRouteNeedsItsClaim)
}

func checkEveryRouteNeedsItsClaim(t *testing.T, s *sidecar) {
	t.Helper()
	var api struct {
		Paths map[string]map[string]struct {
			OperationID string   `json:"operationId"`
			Tags        []string `json:"tags"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(protofiles.OpenAPI, &api); err != nil {
		t.Fatal(err)
	}
	routes := 0
	for path, methods := range api.Paths {
		path = strings.NewReplacer("{queue}", "q", "{topic}", "t", "{subscription}", "s", "{rule}", "r", "{transactionId}", "x").Replace(path)
		for method, operation := range methods {
			name := operation.Tags[0] + "." + operation.OperationID
			needs, known := claimsOf[name]
			for _, kind := range []string{"Topic", "Subscription"} { // of the same RPC for another kind of entity
				if !known {
					needs, known = claimsOf[operation.Tags[0]+"."+strings.TrimPrefix(operation.OperationID, kind)]
				}
			}
			if !known || strings.ContainsAny(path, "{}") {
				t.Errorf("%s %s: the table has no %s", method, path, name)
			}
			routes++
			for _, rule := range allRules {
				want := map[codes.Code]int{codes.Unauthenticated: 401, codes.PermissionDenied: 403}[wantCode(rule, needs)]
				body := `{}`
				switch _, verb, _ := strings.Cut(path, ":"); verb { // none waits
				case "request":
					body = `{"replyTo":"queues/r","timeout":"0.001s"}`
				case "receive", "accept", "completeAndReceive":
					body = `{"maxWait":"0s"}`
				}
				a := s.callAs(t, rule, strings.ToUpper(method), path, body)
				if isRefused := a.status == 401 || a.status == 403; a.status != want && (want != 0 || isRefused) {
					t.Errorf("%s %s with rule %q: got %d %s, want %d", method, path, rule, a.status, a.body, want)
				}
				if (a.status == 401) != (a.header.Get("WWW-Authenticate") != "") {
					t.Errorf("%s %s with rule %q: got %d and WWW-Authenticate %q", method, path, rule, a.status, a.header.Get("WWW-Authenticate"))
				}
			}
		}
	}
	if routes < len(claimsOf)-3 { // the streams have none
		t.Errorf("saw %d routes", routes)
	}
	for route, needs := range claimsOfREST {
		method, path, _ := strings.Cut(route, " ")
		for _, rule := range allRules {
			isRefused := wantCode(rule, needs) != codes.OK // 401 also for PERMISSION_DENIED (REST-1)
			if a := s.callAs(t, rule, method, path, ""); (a.status == 401) != isRefused {
				t.Errorf("%s with rule %q: got %d %s, refused must be %t", route, rule, a.status, a.body, isRefused)
			}
		}
	}
	for path, want := range map[string]int{"/openapi.json": 200, "/v1/none": 401, "/q/messages": 401, "/v1/queues?x=1": 401} {
		if a := s.callAs(t, "", http.MethodGet, path, ""); a.status != want && path != "/q/messages" {
			t.Errorf("%s: got %d, want %d", path, a.status, want)
		}
	}
	if _, err := healthpb.NewHealthClient(s.conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Errorf("health without a token: %v", err)
	}
}

// callAs makes a call over HTTP with the token of a rule.
func (s *sidecar) callAs(t *testing.T, rule, method, path, body string) answer {
	t.Helper()
	s = s.as(rule)
	request := newRequest(t, method, s.base+path, body)
	if token := s.tokenOf(rule); rule != "" && token != "" {
		request.Header.Set("Authorization", token)
	}
	return s.exchange(t, request)
}

// An operation of a transaction needs the right of its own call, when it is added and again of the caller who commits.
func TestAUTH_3_OperationsOfTransactions(t *testing.T) {
	t.Parallel()
	withEachGuard(t, checkOperationsOfTransactions)
}

func checkOperationsOfTransactions(t *testing.T, s *sidecar) {
	t.Helper()
	if a := s.callAs(t, "Manage", http.MethodPut, "/v1/queues/q", `{}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	operations := map[string]string{
		`{"send":{"target":"queues/q","messages":[{"text":"a"}]}}`:                                                            "Send",
		`{"cancelScheduled":{"target":"queues/q","sequenceNumbers":["7"]}}`:                                                   "Send",
		`{"complete":{"source":"queues/q","lockTokens":["` + someLock + `"]}}`:                                                "Listen",
		`{"abandon":{"source":"queues/q","lockTokens":["` + someLock + `"]}}`:                                                 "Listen",
		`{"defer":{"source":"queues/q","lockTokens":["` + someLock + `"]}}`:                                                   "Listen",
		`{"deadLetter":{"source":"queues/q","lockTokens":["` + someLock + `"]}}`:                                              "Listen",
		`{"setSessionState":{"source":"queues/q","lockToken":"` + someLock + `","state":"YQ=="}}`:                             "Listen",
		`{"send":{"target":"queues/q","messages":[{}]}},{"complete":{"source":"queues/q","lockTokens":["` + someLock + `"]}}`: "ListenSend",
	}
	for operation, needs := range operations {
		body := `{"operations":[` + operation + `]}`
		for _, rule := range allRules {
			want := wantCode(rule, needs)
			check := func(what, path, body string) {
				t.Helper()
				a := s.callAs(t, rule, http.MethodPost, path, body)
				status := map[codes.Code]int{codes.Unauthenticated: 401, codes.PermissionDenied: 403}[want]
				if isRefused := a.status == 401 || a.status == 403; a.status != status && (status != 0 || isRefused) {
					t.Errorf("%s of %s with rule %q: got %d %s, want %d", what, operation, rule, a.status, a.body, status)
				}
			}
			check("transact", "/v1:transact", body)
			check("add", "/v1/transactions/"+s.begin(t)+":add", body)
			id := s.begin(t)
			if a := s.callAs(t, "Manage", http.MethodPost, "/v1/transactions/"+id+":add", body); a.status != http.StatusOK {
				t.Fatalf("add: %d %s", a.status, a.body)
			}
			check("commit", "/v1/transactions/"+id+":commit", `{}`)
		}
	}
}

const someLock = "11111111-1111-4111-8111-111111111111"

// begin begins a transaction.
func (s *sidecar) begin(t *testing.T) string {
	t.Helper()
	a := s.callAs(t, "Send", http.MethodPost, "/v1/transactions", `{}`)
	var begun struct{ TransactionID string }
	if err := json.Unmarshal([]byte(a.body), &begun); err != nil || begun.TransactionID == "" {
		t.Fatalf("begin: %d %s", a.status, a.body)
	}
	return begun.TransactionID
}

// A rule for one entity reaches no other by what a request names beside the first: a forward, a target of dead letters,
// a reply queue.
func TestAUTH_2_ARuleForOneEntityReachesNoOther(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	for _, c := range []struct {
		method, path, body string
		isDenied           bool
	}{
		{http.MethodPut, "/v1/queues/Elsewhere", `{}`, false},
		{http.MethodPut, "/v1/queues/elsewhere", `{"forwardTo":"orders"}`, true},
		{http.MethodPut, "/v1/queues/elsewhere", `{"forwardDeadLetteredMessagesTo":"orders"}`, true},
		{http.MethodPatch, "/v1/queues/elsewhere", `{"forwardTo":"orders"}`, true},
		{http.MethodPost, "/v1/queues", `{"name":"orders"}`, true},
		{http.MethodPost, "/v1/topics", `{"name":"orders"}`, true},
		{http.MethodPut, "/v1/topics/elsewhere/subscriptions/x", `{"forwardTo":"orders"}`, true},
		{http.MethodPut, "/v1/topics/elsewhere", `{"unmatchedTo":"orders"}`, true},
		{http.MethodPost, "/v1/topics/elsewhere/subscriptions", `{"name":"s"}`, false},
		{http.MethodGet, "/v1/topics/elsewhere/subscriptions", ``, false},
		{http.MethodGet, "/v1/topics/elsewhere/subscriptions/s/rules", ``, false},
		{http.MethodGet, "/v1/topics/orders/subscriptions/s/rules/%2Fsubscriptions%2Felsewhere", ``, true},
		{http.MethodGet, "/v1/queues", ``, true},
		{http.MethodPost, "/v1/queues/elsewhere/messages:resubmit", `{"target":"queues/orders"}`, true},
		{http.MethodPost, "/v1/queues/elsewhere/messages:resubmit", `{"target":"queues/ELSEWHERE"}`, false},
		{http.MethodPost, "/v1/queues/elsewhere/messages:request", `{"replyTo":"queues/orders","message":{"text":"x"}}`, true},
		{http.MethodPost, "/v1/queues/elsewhere%2Fbelow/messages:send", `{"messages":[{"text":"x"}]}`, true},
		{http.MethodPost, "/v1/queues/elsewhere/messages:peek", `{}`, false},
	} {
		a := s.callAs(t, "other", c.method, c.path, c.body)
		if isDenied := a.status == http.StatusForbidden; isDenied != c.isDenied || a.status == http.StatusUnauthorized {
			t.Errorf("%s %s %s: got %d %s, denied must be %t", c.method, c.path, c.body, a.status, a.body, c.isDenied)
		}
	}
}

// Who configures a forward needs Manage on both ends, who sends only Send on the first.
func TestFWD_7_RightsOnBothEnds(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	for _, c := range []struct {
		rule, method, path, body string
		want                     int
	}{
		{"Manage", http.MethodPut, "/v1/queues/orders", `{}`, 200},
		{"other", http.MethodPut, "/v1/queues/elsewhere", `{"forwardTo":"orders"}`, 403},
		{"ListenSend", http.MethodPut, "/v1/queues/elsewhere", `{"forwardTo":"orders"}`, 403},
		{"Manage", http.MethodPut, "/v1/queues/elsewhere", `{"forwardTo":"orders"}`, 200},
		{"sender", http.MethodPost, "/v1/queues/orders/messages:send", `{"messages":[{"text":"x"}]}`, 403},
		{"sender", http.MethodPost, "/v1/queues/elsewhere/messages:send", `{"messages":[{"text":"x"}]}`, 200},
	} {
		if a := s.callAs(t, c.rule, c.method, c.path, c.body); a.status != c.want {
			t.Errorf("%s: %s %s %s: got %d %s, want %d", c.rule, c.method, c.path, c.body, a.status, a.body, c.want)
		}
	}
	s.forward(t, fromMain("elsewhere"))
	if a := s.callAs(t, "Listen", http.MethodPost, "/v1/queues/orders/messages:peek", `{}`); !strings.Contains(a.body, `"text":"x"`) {
		t.Errorf("the message has not arrived: %d %s", a.status, a.body)
	}
}

// A bound on the messages makes of a purge a receiver's verb (PURGE-6).
func TestPURGE_6_ClaimOfAPurge(t *testing.T) {
	t.Parallel()
	s := guarded(t)
	for body, want := range map[string]int{`{}`: 403, `{"maxMessages":1}`: 404, `{"maxMessages":1,"sessionId":"a"}`: 403} {
		if a := s.callAs(t, "Listen", http.MethodPost, "/v1/queues/q/messages:purge", body); a.status != want {
			t.Errorf("%s: got %d %s, want %d", body, a.status, a.body, want)
		}
	}
}

// Streams outlive their first look: a Publish is asked for each request, a Subscribe ends soon after its token does not
// hold any more.
func TestAUTH_5_AVoidedTokenEndsWhatAStreamMayDo(t *testing.T) {
	t.Parallel()
	var keys atomic.Pointer[access.Keys]
	keys.Store(&someKeys)
	s := launch(t, memstore.New(), func(c *proxy.Config) { c.Authorizer = access.SAS(func() access.Keys { return *keys.Load() }) })
	wait(t, "start", s.proxy.Started())
	if a := s.callAs(t, "Manage", http.MethodPut, "/v1/queues/q", `{}`); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", tokenOf("ListenSend"))
	publish, err := s.messages.Publish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	subscribe, err := s.messages.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := subscribe.Send(&sidebusv1.SubscribeRequest{RequestId: "1", Request: &sidebusv1.SubscribeRequest_Open{Open: &sidebusv1.SubscribeOpen{Source: "queues/q"}}}); err != nil {
		t.Fatal(err)
	}
	if _, err := subscribe.Recv(); err != nil {
		t.Fatal(err)
	}
	send := func(target string) *sidebusv1.PublishResponse {
		t.Helper()
		if err := publish.Send(&sidebusv1.PublishRequest{Target: target, Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: "x"}}}}); err != nil {
			t.Fatal(err)
		}
		response, err := publish.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return response
	}
	if got := send("queues/q"); got.GetSent() == nil {
		t.Errorf("with a good token: got %v", got)
	}
	keys.Store(&access.Keys{})
	if got := send(""); got.GetFailure().GetReason() != "UNAUTHENTICATED" {
		t.Errorf("with a voided token: got %v", got)
	}
	for err == nil {
		_, err = subscribe.Recv() // what was delivered before
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("the subscription ended with %v, want UNAUTHENTICATED", err)
	}
}
