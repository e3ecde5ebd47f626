package console

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
)

var noon = time.Unix(1_800_000_000, 0)

// A quiet hour is two samples, however long it is watched, and nothing is older than an hour.
func TestRingIsAnHour(t *testing.T) {
	t.Parallel()
	var r ring
	n := semantics.Runtime{Active: 3, Available: 3}
	for s := range 7200 {
		r.note(&n, noon.Add(time.Duration(s)*time.Second), nil)
	}
	if len(r.samples) != 2 {
		t.Errorf("%d samples of quiet hours", len(r.samples))
	}
	for s := range 7200 {
		n.LastSequence++
		r.note(&n, noon.Add(time.Duration(7200+s)*time.Second), nil)
	}
	span := r.samples[len(r.samples)-1].at - r.samples[0].at
	if len(r.samples) > 361 || span > 3600 || span < 3580 {
		t.Errorf("%d samples over %d s", len(r.samples), span)
	}
	if got := r.recent(noon.Add(4 * time.Hour)); len(got) < 55 || len(got) > 61 || got[0][1] != 1 || got[0][2] != 1 {
		t.Errorf("the last minutes are %v", got)
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	long := noon.Add(-time.Hour)
	waiting := semantics.Runtime{Active: 5, Available: 5, AvailableSince: noon.Add(-2 * time.Minute)}
	with := func(change func(*semantics.Runtime)) semantics.Runtime { n := waiting; change(&n); return n }
	for name, c := range map[string]struct {
		n      semantics.Runtime
		left   time.Time
		before int64 // dead letters some minutes ago
		want   []warning
	}{
		"fine":          {semantics.Runtime{}, noon, 0, nil},
		"no receiver":   {waiting, long, 0, []warning{noReceiver}},
		"just sent":     {with(func(n *semantics.Runtime) { n.AvailableSince = noon }), long, 0, nil},
		"slow":          {waiting, noon.Add(-time.Second), 0, nil},
		"session held":  {with(func(n *semantics.Runtime) { n.LockedSessions = 1 }), long, 0, nil},
		"one is locked": {with(func(n *semantics.Runtime) { n.Locked = 1 }), long, 0, nil},
		"delayed":       {with(func(n *semantics.Runtime) { n.Delayed = 5 }), long, 0, nil},
		"old dead":      {semantics.Runtime{DeadLetter: 4}, noon, 4, nil},
		"more dead":     {semantics.Runtime{DeadLetter: 5}, noon, 4, []warning{deadLettersRise}},
		"full":          {semantics.Runtime{SizeInBytes: 900 << 20}, noon, 0, []warning{nearQuota}},
		"refused":       {semantics.Runtime{TransferDeadLetter: 1}, noon, 0, []warning{transfersFail}},
	} {
		r := newRow(semantics.Entity{Name: "orders", Options: semantics.DefaultOptions()})
		r.count(&c.n)
		var history ring
		history.note(&semantics.Runtime{DeadLetter: c.before}, noon.Add(-5*time.Minute), nil)
		history.note(&c.n, noon, nil)
		if got := warningsOf(&r, &c.n, &history, c.left, noon); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// Times are in the samples since the one before, and null where nothing was received.
func TestTimesAreInTheSamples(t *testing.T) {
	t.Parallel()
	var r ring
	took := broker.Latency{Count: 3, Half: 20 * time.Millisecond, At95: 1500 * time.Millisecond}
	n := semantics.Runtime{}
	for s := range 4 {
		r.note(&n, noon.Add(time.Duration(s)*sampleSpacing), func() (waits, takes broker.Latency) {
			if s == 1 {
				return took, broker.Latency{}
			}
			return broker.Latency{}, broker.Latency{}
		})
	}
	text, err := json.Marshal(r.columns())
	if err != nil || !strings.Contains(string(text), `"waitHalf":[null,0.020,null,null],"wait95":[null,1.500,null,null],"takeHalf":[null,null,null,null]`) {
		t.Errorf("got %s, %v", text, err)
	}
}
