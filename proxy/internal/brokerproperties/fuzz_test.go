package brokerproperties

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

// lifetimes compares what rides as seconds in floating point.
var lifetimes = cmp.Comparer(func(a, b time.Duration) bool { return math.Abs(a.Seconds()-b.Seconds()) <= 1e-12*math.Abs(a.Seconds()) })

// What Parse takes, it takes again when it was written; whatever it is given, it writes ASCII only.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"MessageId":"m","Label":"\u00e9","TimeToLive":1.5}`, `{"TimeToLiveTimeSpan":"1.00:00:00.5"}`, `{"ScheduledEnqueueTimeUtc":"2027-01-02T15:04:05Z"}`,
		`{"Label":"\ud83d\ude00"}`, `{"Label":"\ud83d"}`, `{"ForcePersistence":true,"x":[{}]}`, `null`, `{"TimeToLive":1e308}`, `{"TimeToLive":-0}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var m semantics.Message
		if err := Parse(text, &m); err != nil {
			if semantics.CodeOf(err) != semantics.InvalidArgument {
				t.Fatalf("got %v", err)
			}
			return
		}
		if m.TimeToLive != nil && *m.TimeToLive <= 0 {
			return // refused later
		}
		header := http.Header{}
		Write(header, &semantics.Received{Message: m})
		written := writtenIn(header)
		for _, c := range []byte(written) {
			if c < ' ' || c >= 0x7f {
				t.Fatalf("%q is no header", written)
			}
		}
		var again semantics.Message
		if err := Parse([]byte(written), &again); err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if m.ScheduledAt = m.ScheduledAt.Truncate(1e9); m.TimeToLive == nil {
			again.TimeToLive = nil // it is written as one without end
		}
		if diff := cmp.Diff(m, again, lifetimes); diff != "" {
			t.Errorf("%s became %s\n%s", text, written, diff)
		}
	})
}

// FuzzValue: any header is a property or refused, and a property is the same after it was written.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{`"x"`, `x`, `5`, `5.0`, `-1e-7`, `true`, `null`, `"\ud800"`, `"`, `007`, `9223372036854775808`, ``} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseValue(text)
		if err != nil || (&semantics.Message{Properties: map[string]semantics.Value{"p": v}}).Validate() != nil {
			return
		}
		written := string(appendValue(nil, v))
		if again, err := parseValue(written); err != nil || again != v {
			t.Errorf("%q became %s and then %v, %v", text, written, again, err)
		}
	})
}
