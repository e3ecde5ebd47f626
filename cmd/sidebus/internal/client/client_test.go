package client

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

func TestResource(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"orders": "queues/orders", "queues/orders": "queues/orders", "a/b": "queues/a/b", "a%2Fb": "queues/a/b",
		"queues/queues%2Fx": "queues/queues/x", `a\b`: "queues/a/b", "topics/t": "topics/t", "50%": "queues/50%",
	} {
		if got := Resource(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1h30m": 90 * time.Minute, "7d": 168 * time.Hour, "1d12h": 36 * time.Hour, "1.5h": 90 * time.Minute,
		"PT30S": 30 * time.Second, "P1DT1H": 25 * time.Hour, "-0.5s": -500 * time.Millisecond, "1ms": time.Millisecond, "0": 0,
	} {
		got, err := duration.Wire(text)
		if err != nil || got.AsDuration() != want {
			t.Errorf("%s: got %v, %v; want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "5", "P", "PT", "1y", "s", "1.s.", "P1M", " 1s", strings.Repeat("1", 70) + "s", "0.1ns"} {
		if got, err := duration.Wire(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, got)
		}
	}
}

func TestPropertyTypes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a=": `""`, "a=x y": `"x y"`, "a=-5": "-5", "a=1e3": `{"type":"double","value":1000}`, "a=[1]": `"[1]"`, "a= 1": `" 1"`,
		"a=99999999999999999999": `"99999999999999999999"`, "a=b=c": `"b=c"`,
		"a:string=5": `"5"`, "a:bool=true": "true", "a:null=": "null", "a:char=é": `{"type":"char","value":"é"}`,
		"a:bytes=/w==": `{"type":"bytes","value":"/w=="}`, "a:float=0.5": `{"type":"float","value":0.5}`,
		"a:double=NaN": `{"type":"double","value":"NaN"}`, "a:uint64=7": `{"type":"uint64","value":"7"}`,
		"a:uint16=7": `{"type":"uint16","value":7}`, "a:int64=7": "7", "a:timespan=PT1M": `{"type":"timespan","value":"60s"}`,
		"a:datetime=2026-01-02T03:04:05Z": `{"type":"datetime","value":"2026-01-02T03:04:05Z"}`,
	} {
		name, value, err := Property(text)
		if err != nil || name != "a" || property(value) != want {
			t.Errorf("%s: got %q %v, %v; want %s", text, name, value, err, want)
		}
	}
	for _, text := range []string{
		"a", "=1", "a:x=1", "a:bool=yes", "a:char=ab", "a:char=", "a:bytes=?", "a:int32=1.5", "a:int64=x", "a:uint64=-1", "a:float=x",
		"a:double=", "a:timespan=1", "a:timespan=1ns", "a:null=x",
	} {
		if _, value, err := Property(text); err == nil {
			t.Errorf("%s: got %v, want an error", text, value)
		}
	}
}

// property gives the value as the API writes it.
func property(value *sidebusv1.Value) string {
	m := &sidebusv1.Message{Properties: map[string]*sidebusv1.Value{"a": value}}
	return strings.TrimSuffix(strings.TrimPrefix(string(JSON(m)), `{"properties":{"a":`), `}}`)
}

func TestFailuresOfTheStoreNameTheCause(t *testing.T) {
	t.Parallel()
	for cause, want := range map[string]string{
		"":                "STORE_UNAVAILABLE: Redis rejected the request; try again",
		"redis_wrongpass": "STORE_UNAVAILABLE: Redis rejected the request; the cause is redis_wrongpass; check the user and the password of --store in the sidecar",
		"redis_oom":       "STORE_UNAVAILABLE: Redis rejected the request; the cause is redis_oom; try again",
	} {
		f := &Failure{Reason: semantics.StoreUnavailable, Message: "Redis rejected the request"}
		if cause != "" {
			f.Details = map[string]string{semantics.DetailCause: cause}
		}
		if got := f.Error(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestTexts(t *testing.T) {
	t.Parallel()
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 30: "5.0 GiB", 3 << 40: "3.0 TiB", 4000 << 40: "4000.0 TiB"} {
		if got := Bytes(n); got != want {
			t.Errorf("%d bytes: got %s, want %s", n, got, want)
		}
	}
	if got := Span(&durationpb.Duration{Seconds: 315_576_000_000}); got != "315576000000s" {
		t.Errorf("the longest duration: got %s", got)
	}
	octets := &sidebusv1.ReceivedMessage{Content: &sidebusv1.ReceivedMessage_Body{Body: []byte{0xff, 0}}}
	if got := Body(octets); got != "(2 bytes)" {
		t.Errorf("octets: got %s", got)
	}
	value := &sidebusv1.ReceivedMessage{Content: &sidebusv1.ReceivedMessage_Json{Json: "{\n \"a\": 1}"}}
	if got := Body(value) + Body(&sidebusv1.ReceivedMessage{}); got != `{"a":1}` {
		t.Errorf("JSON and nothing: got %s", got)
	}
}
