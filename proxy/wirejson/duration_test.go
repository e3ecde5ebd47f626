package wirejson

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	good := map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, "1m30s": 90 * time.Second, "1h0.5m": time.Hour + 30*time.Second, ".5s": time.Second / 2,
		"1.s": time.Second, "-1.5s": -1500 * time.Millisecond, "+2s": 2 * time.Second, "1us": time.Microsecond, "1µs": time.Microsecond,
		"1μs": time.Microsecond, "1ns": 1, "0.000000001s": 1, "PT30S": 30 * time.Second, "PT1M30S": 90 * time.Second, "P1D": 24 * time.Hour,
		"P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond, "P2W": 336 * time.Hour, "PT0S": 0, "-PT1S": -time.Second,
		"PT0.25H": 15 * time.Minute,
	}
	for text, want := range good {
		if got, ok := ParseDuration(text); !ok || got.AsDuration() != want {
			t.Errorf("%q: got %v, %t, want %s", text, got, ok, want)
		}
	}
	bad := []string{
		"", "s", "30", "30 s", "30S", "-", "+", "P", "PT", "P1Y", "P1M", "P1DT", "P1H", "PT1D", "pt1s", "1e3s", "1/2s", "0x1s", "1d", "1.5.5s", "never",
		"0.1ns", "PT1S2M", "١s", "P10675199DT2H48M5.4775807S00000000000000000000000000000000000000000000000",
	}
	for _, text := range bad {
		if got, ok := ParseDuration(text); ok {
			t.Errorf("%q: got %s, want it refused", text, got)
		}
	}
	for text, want := range map[string]int64{"P10675199DT2H48M5.4775807S": maxPBSeconds, "-9999999999999h": -maxPBSeconds} {
		if got, ok := ParseDuration(text); !ok || got.GetSeconds() != want || got.CheckValid() != nil {
			t.Errorf("%q: got %v, %t, want %d s", text, got, ok, want)
		}
	}
}

func TestDurationsAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	for _, want := range []string{"0s", "30s", "0.5s", "-0.5s", "-1.000000001s", "315576000000s", "3600.25s"} {
		d, ok := ParseDuration(want)
		if !ok {
			t.Fatalf("%s is refused", want)
		}
		if got := string(appendSeconds(nil, d.GetSeconds(), int64(d.GetNanos()), 9)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if got := string(appendSeconds(nil, durationpb.New(1).GetSeconds(), 1, 9)); got != "0.000000001s" {
		t.Errorf("got %s", got)
	}
}
