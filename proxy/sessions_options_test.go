package proxy_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// sessionOptions are the options about sessions in JSON: the defaults, and other values.
var sessionOptions = map[string][2]string{
	"requiresSession": {`false`, `true`}, "sessionInFlight": {`100`, `7`}, "onDisconnect": {`"EXPIRE"`, `"RELEASE"`},
	"sessionExpiryMode": {`"MESSAGE"`, `"SESSION"`}, "sessionOnDeadLetter": {`"CONTINUE"`, `"BLOCK"`},
	"acceptNext": {`"ALLOWED"`, `"FORBIDDEN"`}, "sessionStateTtl": {``, `"3600s"`},
}

func members(t *testing.T, body string) map[string]json.RawMessage {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &all); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return all
}

func TestENT_6_SessionOptionsOverHTTP(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	compare := func(name, body string, which int) {
		t.Helper()
		for option, values := range sessionOptions {
			if got := string(members(t, body)[option]); got != values[which] {
				t.Errorf("%s: %s is %s, want %s", name, option, got, values[which])
			}
		}
	}
	compare("default", s.call(t, http.MethodGet, queuePath, "").body, 0)
	const other = `"sessionInFlight":"7","onDisconnect":"RELEASE","sessionExpiryMode":1,"sessionOnDeadLetter":"BLOCK","acceptNext":"FORBIDDEN","sessionStateTtl":"PT1H"`
	compare("created", s.call(t, http.MethodPost, "/v1/queues", `{"name":"tales","requiresSession":true,`+other+`}`).body, 1)
	compare("read", s.call(t, http.MethodGet, talesPath, "").body, 1)
	var ensured struct {
		Differences []struct{ Option, Present, Asked string }
	}
	if err := json.Unmarshal([]byte(s.call(t, http.MethodPut, talesPath, `{}`).body), &ensured); err != nil || len(ensured.Differences) != 0 {
		t.Errorf("nothing was asked for: got %v, %v", ensured, err)
	}
	answer := s.call(t, http.MethodPut, talesPath, `{"requiresSession":false,"acceptNext":"ALLOWED","sessionStateTtl":"2h","sessionInFlight":7}`).body
	if err := json.Unmarshal([]byte(answer), &ensured); err != nil || len(ensured.Differences) != 3 {
		t.Errorf("got %s, want three differences", answer)
	}
	mustPatch(t, s, `{`+other+`}`)
	mustPatch(t, s, `{"sessionInFlight":null,"onDisconnect":"EXPIRE","sessionExpiryMode":"MESSAGE","sessionOnDeadLetter":"CONTINUE","acceptNext":"ALLOWED","sessionStateTtl":"never"}`)
	compare("patched back", s.call(t, http.MethodGet, queuePath, "").body, 0)
	for _, bound := range []string{`"sessionInFlight":1`, `"sessionInFlight":1000`, `"sessionStateTtl":"1s"`, `"sessionStateTtl":"P10675199DT2H48M5.4775807S"`} {
		mustPatch(t, s, `{`+bound+`}`)
	}
	// it is what it was
	if a := s.call(t, http.MethodPatch, talesPath, `{"requiresSession":true,"sessionInFlight":8}`); a.status != http.StatusOK {
		t.Errorf("got %d %s", a.status, a.body)
	}
}

func TestENT_16_SessionOptionsOverGRPC(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	want := &sidebusv1.Queue{
		RequiresSession: proto.Bool(true), SessionInFlight: proto.Int32(7), OnDisconnect: sidebusv1.Queue_RELEASE.Enum(),
		SessionExpiryMode: sidebusv1.Queue_SESSION.Enum(), SessionOnDeadLetter: sidebusv1.Queue_BLOCK.Enum(),
		AcceptNext: sidebusv1.Queue_FORBIDDEN.Enum(), SessionStateTtl: durationpb.New(time.Hour),
	}
	ensured, err := s.admin.EnsureQueue(t.Context(), &sidebusv1.EnsureQueueRequest{Name: tales, Queue: want})
	if err != nil {
		t.Fatal(err)
	}
	got := ensured.GetResource()
	if !got.GetRequiresSession() || got.GetSessionInFlight() != 7 || got.GetOnDisconnect() != want.GetOnDisconnect() ||
		got.GetSessionExpiryMode() != want.GetSessionExpiryMode() || got.GetSessionOnDeadLetter() != want.GetSessionOnDeadLetter() ||
		got.GetAcceptNext() != want.GetAcceptNext() || got.GetSessionStateTtl().AsDuration() != time.Hour {
		t.Errorf("got %v", got)
	}
	updating := func(queue *sidebusv1.Queue, paths ...string) refusalBy[sidebusv1.AdminClient] {
		request := &sidebusv1.UpdateQueueRequest{Name: tales, Queue: queue}
		if len(paths) > 0 {
			request.UpdateMask = &fieldmaskpb.FieldMask{Paths: paths}
		}
		return refuse("update", "INVALID_ARGUMENT", "", sidebusv1.AdminClient.UpdateQueue, request)
	}
	for field, queue := range map[string]*sidebusv1.Queue{
		"onDisconnect":      {OnDisconnect: sidebusv1.Queue_OnDisconnect(2).Enum()},
		"sessionExpiryMode": {SessionExpiryMode: sidebusv1.Queue_SessionExpiryMode(-1).Enum()},
		// which is 0 in eight bits
		"sessionOnDeadLetter": {SessionOnDeadLetter: sidebusv1.Queue_SessionOnDeadLetter(256).Enum()},
		"acceptNext":          {AcceptNext: sidebusv1.Queue_AcceptNext(-256).Enum()},
		"status":              {Status: sidebusv1.Queue_Status(4).Enum()},
	} {
		r := updating(queue)
		r.field = field
		r.check(t, s.admin)
	}
	immutable := updating(&sidebusv1.Queue{}, "requires_session") // back to its default, which is another
	immutable.reason, immutable.field = "PROPERTY_IMMUTABLE", "requiresSession"
	immutable.check(t, s.admin)
	updated, err := s.admin.UpdateQueue(t.Context(), &sidebusv1.UpdateQueueRequest{Name: tales, Queue: &sidebusv1.Queue{}, UpdateMask: &fieldmaskpb.FieldMask{
		Paths: []string{"session_in_flight", "onDisconnect", "session_expiry_mode", "session_on_dead_letter", "accept_next", "session_state_ttl"},
	}})
	if err != nil || updated.GetSessionInFlight() != 100 || updated.GetAcceptNext() != sidebusv1.Queue_ALLOWED || updated.SessionStateTtl != nil || !updated.GetRequiresSession() {
		t.Errorf("got %v, %v", updated, err)
	}
}

// Calls of sessions are measured under their own names on both wires.
func TestSessionCallsAreMeasured(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	if s.conn.Invoke(t.Context(), "/sidebus.v1.Sessions/List", &sidebusv1.SessionsListRequest{Source: orders}, &sidebusv1.SessionsListResponse{}, grpc.WaitForReady(true)) == nil {
		t.Error("a queue without sessions was listed")
	}
	s.eventuallyMeasured(t, `sidebus_rpc_duration_seconds_count{code="SESSION_NOT_SUPPORTED",method="Sessions.List",wire="grpc"} 1`)
	if a := s.call(t, http.MethodPost, queuePath+"/sessions:accept", `{}`); a.status != http.StatusBadRequest {
		t.Errorf("got %d %s", a.status, a.body)
	}
	s.eventuallyMeasured(t, `sidebus_rpc_duration_seconds_count{code="SESSION_NOT_SUPPORTED",method="Sessions.Accept",wire="http"} 1`)
}
