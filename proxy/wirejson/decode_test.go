package wirejson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

func TestNumbersOfAllForms(t *testing.T) {
	t.Parallel()
	good := map[string]int32{`5`: 5, `"5"`: 5, `5.0`: 5, `5e0`: 5, `0.5e1`: 5, `-0`: 0, `2147483647`: 2147483647, `"-2147483648"`: -2147483648}
	for text, want := range good {
		got := &sidebusv1.ReceiveRequest{}
		if err := decode([]byte(`{"maxMessages":`+text+`}`), got); err != nil || got.GetMaxMessages() != want {
			t.Errorf("%s: got %d, %v, want %d", text, got.GetMaxMessages(), err, want)
		}
	}
	bad := map[string]semantics.Code{
		`5.5`: semantics.InvalidArgument, `" 5"`: semantics.InvalidArgument, `"0x5"`: semantics.InvalidArgument, `"5_0"`: semantics.InvalidArgument,
		`"+5"`: semantics.InvalidArgument, `"NaN"`: semantics.InvalidArgument, `1e-1`: semantics.InvalidArgument,
		`2147483648`: semantics.ArgumentOutOfRange, `-2147483649`: semantics.ArgumentOutOfRange, `1e30`: semantics.ArgumentOutOfRange,
	}
	for text, want := range bad {
		err := decode([]byte(`{"maxMessages":`+text+`}`), &sidebusv1.ReceiveRequest{})
		if err == nil || err.Code != want || err.Details[semantics.DetailField] != "maxMessages" {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}
}

func TestBothSpellingsOfNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"maxMessages", "max_messages", `max\u004dessages`} {
		got := &sidebusv1.ReceiveRequest{}
		if err := decode([]byte(`{ "`+name+`" : 3 }`), got); err != nil || got.GetMaxMessages() != 3 {
			t.Errorf("%s: got %v, %v", name, got, err)
		}
	}
}

// Who comes from Service Bus writes names as it does.
func TestUnknownFieldsProposeWhatWasMeant(t *testing.T) {
	t.Parallel()
	for body, c := range map[string]struct {
		into proto.Message
		want string
	}{
		`{"LockDuration":"30s"}`:      {&sidebusv1.Queue{}, "LockDuration is not a known field; did you mean lockDuration?"},
		`{"lockDuratoin":"30s"}`:      {&sidebusv1.Queue{}, "lockDuratoin is not a known field; did you mean lockDuration?"},
		`{"requiressession":true}`:    {&sidebusv1.Queue{}, "requiressession is not a known field; did you mean requiresSession?"},
		`{"durable":true}`:            {&sidebusv1.Queue{}, "durable is not a known field"},
		`{"text":"hello"}`:            {&sidebusv1.SendRequest{}, "text is not a known field; did you mean messages[0].text?"},
		`{"messages":[{"txt":"hi"}]}`: {&sidebusv1.SendRequest{}, "messages[0].txt is not a known field; did you mean text?"},
		`{"lockToken":"x"}`:           {&sidebusv1.CompleteRequest{}, "lockToken is not a known field; did you mean lockTokens?"},
		`{"text":"6 x 7?"}`:           {&sidebusv1.RequestRequest{}, "text is not a known field; did you mean message.text?"},
		`{"seconds":5}`:               {&sidebusv1.ReceiveRequest{}, "seconds is not a known field"},
	} {
		err := Decode([]byte(body), c.into)
		if failure := semantics.AsError(err); failure == nil || failure.Message != c.want {
			t.Errorf("%s: got %v, want %s", body, err, c.want)
		}
	}
	long := strings.Repeat("x", 1<<16)
	err := Decode([]byte(`{"`+long+`":1}`), &sidebusv1.Queue{})
	if failure := semantics.AsError(err); failure == nil || !strings.HasSuffix(failure.Message, "is not a known field") {
		t.Errorf("a long name: got %v", err)
	}
}

func TestNullIsAbsent(t *testing.T) {
	t.Parallel()
	got := &sidebusv1.SendRequest{}
	err := decode([]byte(`{"messages":[{"messageId":null,"timeToLive":null,"properties":null,"body":null,"text":"x"}],"target":null}`), got)
	want := &sidebusv1.SendRequest{Messages: []*sidebusv1.Message{{Content: &sidebusv1.Message_Text{Text: "x"}}}}
	if diff := cmp.Diff(want, got, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

// Only a lifetime can be "never"; elsewhere it would be taken for absent, which means something else.
func TestNeverIsForLifetimes(t *testing.T) {
	t.Parallel()
	lifetimes := &sidebusv1.Queue{}
	if err := decode([]byte(`{"defaultMessageTimeToLive":"never","deadLetterTtl":"never","autoDeleteOnIdle":"never"}`), lifetimes); err != nil || !proto.Equal(lifetimes, &sidebusv1.Queue{}) {
		t.Errorf("got %v, %v", lifetimes, err)
	}
	for text, into := range map[string]proto.Message{
		`{"delay":"never"}`: &sidebusv1.AbandonRequest{}, `{"redeliveryDelay":"never"}`: &sidebusv1.Queue{},
		`{"maxWait":"never"}`: &sidebusv1.ReceiveRequest{}, `{"lockDuration":"never"}`: &sidebusv1.Queue{},
	} {
		if err := decode([]byte(text), into); err == nil || err.Code != semantics.InvalidArgument || strings.Contains(err.Message, "never") {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// Whatever is sent, decode does not panic, and what it accepts it writes in a form that it reads as the same.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"messages":[]}`, `{"messages":[{"text":"a\u00e9","properties":{"a":1,"b":{"type":"uuid","value":"x"}}}]}`, `{"messages":[{"json":{"x" : [1, 2]}}]}`,
		`{"messages":[{"body":"AA==","timeToLive":"PT1S"}]} `, "{\"messages\":[{\"text\":\"\\\"\\\\\"}]}", `{"messages":[{"properties":{"t":{"type":"timespan","value":"1h"}}}]}`,
		`{"messages":[{"scheduledEnqueueTime":"2026-01-02T03:04:05.678+01:00","priority":"1"}]}`, `{"messages":[{"scheduledEnqueueTime":"9999-12-31T23:59:59-01:00"}]}`,
		`[1,{"a":"}"}]`, `{"messages":[{"json":"]}"},{"json":[[],{}]}]}`, `{"messages":[{"timeToLive":"never","sequenceNumber":[{"a":1}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		first := &sidebusv1.SendRequest{}
		if decode(data, first) != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("accepted %q", data)
		}
		text := Encode(first)
		second := &sidebusv1.SendRequest{}
		if err := decode(text, second); err != nil {
			t.Fatalf("%q became %q, which is refused: %v", data, text, err)
		}
		if !proto.Equal(first, second) {
			t.Fatalf("%q became %q: %v, %v", data, text, first, second)
		}
	})
}

// What cannot be read in a transaction is named by its operation, and by its position in it.
func TestTX_11_UnreadableOperations(t *testing.T) {
	t.Parallel()
	good := `{"complete":{"source":"queues/a","lockTokens":["x"]}}`
	for operation, index := range map[string]string{
		`{"receive":{}}`: "",
		`{"complete":{"source":"queues/a","lockTokens":["x","y",7]}}`: "2",
		`{"send":{"target":"queues/a","messages":[{},{"ttl":1}]}}`:    "1",
	} {
		err := decode([]byte(`{"operations":[`+good+`,`+operation+`]}`), &sidebusv1.TransactRequest{})
		if err == nil || err.Details[semantics.DetailOperation] != "1" || err.Details[semantics.DetailIndex] != index {
			t.Errorf("%s: got %v with %v, want operation 1 and index %q", operation, err, semantics.AsError(err).Details, index)
		}
	}
}
