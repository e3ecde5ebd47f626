package proxy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// changing are the verbs that change properties, over gRPC; each leaves the message for a peek at the sub-queue.
var changing = map[string]struct {
	call  func(t *testing.T, messages sidebusv1.MessagesClient, token string, changes map[string]*sidebusv1.Value) (*sidebusv1.SettleResponse, error)
	where sidebusv1.SubQueue_Kind
}{
	"abandon": {
		call: func(t *testing.T, messages sidebusv1.MessagesClient, token string, changes map[string]*sidebusv1.Value) (*sidebusv1.SettleResponse, error) {
			return messages.Abandon(t.Context(), &sidebusv1.AbandonRequest{Source: orders, LockTokens: []string{token}, Properties: changes})
		},
	},
	"defer": {
		call: func(t *testing.T, messages sidebusv1.MessagesClient, token string, changes map[string]*sidebusv1.Value) (*sidebusv1.SettleResponse, error) {
			return messages.Defer(t.Context(), &sidebusv1.DeferRequest{Source: orders, LockTokens: []string{token}, Properties: changes})
		},
	},
	"deadLetter": {
		call: func(t *testing.T, messages sidebusv1.MessagesClient, token string, changes map[string]*sidebusv1.Value) (*sidebusv1.SettleResponse, error) {
			return messages.DeadLetter(t.Context(), &sidebusv1.DeadLetterRequest{Source: orders, LockTokens: []string{token}, Properties: changes})
		},
		where: sidebusv1.SubQueue_DEAD_LETTER,
	},
}

// Every type is set by a settlement over gRPC and read over HTTP, and set over HTTP as it was read and read over gRPC.
func TestMSG_13_SettlementsKeepTypeAndValue(t *testing.T) {
	t.Parallel()
	for verb, v := range changing {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			s := start(t, memstore.New())
			changes := map[string]*sidebusv1.Value{}
			for name, p := range properties {
				changes[name] = p.value
			}
			s.send(t, "one")
			settled(t)(v.call(t, s.messages, s.receive(t)[0].GetLockToken(), changes))
			var over struct {
				Messages []struct{ Properties map[string]json.RawMessage }
			}
			text := s.post(t, "peek", `{"subQueue":"`+v.where.String()+`"}`)
			if err := json.Unmarshal([]byte(text), &over); err != nil || len(over.Messages) != 1 {
				t.Fatalf("%v: %s", err, text)
			}
			for name, p := range properties {
				if got := string(over.Messages[0].Properties[name]); got != p.json {
					t.Errorf("%s: got %s, want %s", name, got, p.json)
				}
			}

			all, _, _ := strings.Cut(text[strings.Index(text, `"properties":`):], `,"text"`)
			s.post(t, "purge", `{"include":["DEFERRED","DEAD_LETTER"]}`)
			s.send(t, "two")
			s.post(t, verb, `{"lockTokens":["`+s.receive(t)[0].GetLockToken()+`"],`+all+`}`)
			got := s.peek(t, v.where)[0].GetProperties()
			delete(got, "DeadLetterReason")
			delete(got, "DeadLetterErrorDescription")
			if diff := cmp.Diff(changes, got, protocmp.Transform(), cmp.Comparer(sameFloat)); diff != "" {
				t.Errorf("(-set +got)\n%s", diff)
			}
		})
	}
}

func TestSETTLE_5_ChangesAreMerged(t *testing.T) {
	t.Parallel()
	for verb, v := range changing {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, w *wire) {
				w.put(t, &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{
					"kept": stringValue("k"), "replaced": stringValue("old"), "nulled": stringValue("old"),
				}})
				settled(t)(v.call(t, w.messages, w.take(t, 1)[0].GetLockToken(), map[string]*sidebusv1.Value{
					"replaced": int32Value(7), "nulled": {Kind: &sidebusv1.Value_NullValue{}}, "added": stringValue("new"),
				}))
				got := w.peek(t, v.where)[0].GetProperties()
				delete(got, "DeadLetterReason")
				delete(got, "DeadLetterErrorDescription")
				want := map[string]*sidebusv1.Value{
					"kept": stringValue("k"), "replaced": int32Value(7), "nulled": {Kind: &sidebusv1.Value_NullValue{}}, "added": stringValue("new"),
				}
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		})
	}
}

// What only the message itself can tell is told in its row, and its lock holds.
func TestSETTLE_5_RowsOfMessagesThatCannotTakeThem(t *testing.T) {
	t.Parallel()
	const large = 31 << 10
	for verb, v := range changing {
		t.Run(verb, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, w *wire) {
				w.put(t, &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{
					"Name": int32Value(1), "a": stringValue(strings.Repeat("x", large)),
				}})
				token := w.take(t, 1)[0].GetLockToken()
				check := w.unchanged(t)
				for reason, changes := range map[string]map[string]*sidebusv1.Value{
					"INVALID_ARGUMENT":      {"name": int32Value(2)}, // MSG-14
					"MESSAGE_SIZE_EXCEEDED": {"b": stringValue(strings.Repeat("x", large)), "c": stringValue(strings.Repeat("x", 2<<10))},
				} {
					response, err := v.call(t, w.messages, token, changes)
					if err != nil || response.GetResults()[0].GetReason() != reason || response.GetResults()[0].GetLockToken() != token {
						t.Errorf("%s: got %v, %v", reason, response, err)
					}
					check(t)
				}
				if w.broker.Held() != 1 {
					t.Errorf("%d held, want 1", w.broker.Held())
				}
				settled(t)(v.call(t, w.messages, token, nil))
				if text := w.ask(t, "GET", "/metrics").body; strings.Contains(text, "sidebus_locks_lost_total{") {
					t.Errorf("a lock was counted as lost:\n%s", text)
				}
			})
		})
	}
}

func stringValue(s string) *sidebusv1.Value {
	return &sidebusv1.Value{Kind: &sidebusv1.Value_StringValue{StringValue: s}}
}

func int32Value(n int32) *sidebusv1.Value {
	return &sidebusv1.Value{Kind: &sidebusv1.Value_Int32Value{Int32Value: n}}
}

func TestSETTLE_6_TextsOfDeadLetters(t *testing.T) {
	t.Parallel()
	longest := strings.Repeat("€", 4096)
	empty := ""
	cases := map[string]struct {
		request             *sidebusv1.DeadLetterRequest
		reason, description string                      // the typed fields
		properties          map[string]*sidebusv1.Value // nil: both texts
	}{
		"none":          {request: &sidebusv1.DeadLetterRequest{}},
		"empty":         {request: &sidebusv1.DeadLetterRequest{Reason: &empty, Description: &empty}},
		"the longest":   {request: &sidebusv1.DeadLetterRequest{Reason: &longest, Description: &longest}, reason: longest, description: longest},
		"as properties": {request: &sidebusv1.DeadLetterRequest{Properties: map[string]*sidebusv1.Value{"DeadLetterReason": stringValue("r"), "DeadLetterErrorDescription": stringValue("d")}}, reason: "r", description: "d"},
		"both ways, the same": {request: &sidebusv1.DeadLetterRequest{
			Reason: proto.String("r"), Properties: map[string]*sidebusv1.Value{"DeadLetterReason": stringValue("r")},
		}, reason: "r"},
		"no string (SETTLE-7)": {
			request:    &sidebusv1.DeadLetterRequest{Properties: map[string]*sidebusv1.Value{"DeadLetterReason": int32Value(5)}},
			properties: map[string]*sidebusv1.Value{"DeadLetterReason": int32Value(5), "DeadLetterErrorDescription": stringValue("")},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothWires(t, func(t *testing.T, w *wire) {
				w.put(t, text("x"))
				request := proto.CloneOf(c.request)
				request.Source, request.LockTokens = orders, []string{w.take(t, 1)[0].GetLockToken()}
				settled(t)(w.messages.DeadLetter(t.Context(), request))
				got, err := w.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: orders, SubQueue: sidebusv1.SubQueue_DEAD_LETTER})
				if err != nil {
					t.Fatal(err)
				}
				m := got.GetMessages()[0]
				if m.GetDeadLetterReason() != c.reason || m.GetDeadLetterErrorDescription() != c.description {
					t.Errorf("got %.50q, %.50q", m.GetDeadLetterReason(), m.GetDeadLetterErrorDescription())
				}
				want := c.properties
				if want == nil {
					want = map[string]*sidebusv1.Value{"DeadLetterReason": stringValue(c.reason), "DeadLetterErrorDescription": stringValue(c.description)}
				}
				if diff := cmp.Diff(want, m.GetProperties(), protocmp.Transform()); diff != "" {
					t.Errorf("properties (-want +got)\n%s", diff)
				}
			})
		})
	}
}

func TestSettlementsAreCounted(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	there := s.furnish(t)
	s.post(t, "defer", `{"lockTokens":["`+there.token+`","`+nobodysToken+`"]}`)
	s.post(t, "deleteBySequence", `{"sequenceNumbers":["1","99"]}`)
	s.post(t, "cancelScheduled", `{"sequenceNumbers":[5]}`)
	s.post(t, "resubmit", `{}`)
	s.post(t, "purge", `{"include":["DEFERRED"],"before":"2099-01-01T00:00:00Z"}`) // what was resubmitted just now too
	for _, want := range []string{
		`sidebus_messages_settled_total{entity="orders",outcome="defer"} 2`, `sidebus_locks_lost_total{entity="orders",outcome="defer"} 1`,
		`sidebus_messages_removed_total{entity="orders",verb="delete"} 1`, `sidebus_messages_removed_total{entity="orders",verb="cancel"} 1`,
		`sidebus_messages_removed_total{entity="orders",verb="purge"} 3`,
		`sidebus_messages_resubmitted_total{entity="orders/$deadletterqueue"} 1`,
		`sidebus_rpc_duration_seconds_count{code="OK",method="Messages.Purge",wire="http"} 1`,
	} {
		s.eventuallyMeasured(t, want)
	}
}
