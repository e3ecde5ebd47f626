package console

import (
	"fmt"
	"testing"
	"time"
)

// Before the first look the counts are those of the letters that are still there; after it, what was seen.
func TestDeadLettersOfTheLastHour(t *testing.T) {
	t.Parallel()
	now := time.Unix(100_000, 0)
	late, lost := groupKey{Reason: "Late"}, groupKey{Reason: "Lost", Source: "orders"}
	deadAt := map[groupKey][]int64{late: {now.Unix() - 7200, now.Unix() - 1790}, lost: {now.Unix() - 10}}
	p := &past{}
	look := func(at time.Time) *letters {
		answer := &letters{Groups: []letterGroup{{groupKey: late}, {groupKey: lost}}}
		p.note("emails", answer, deadAt, at)
		return answer
	}
	first := look(now)
	counts, n := first.Groups[0].Counts, len(first.At)
	if n != 121 || counts[0] != 1 || counts[59] != 1 || counts[n/2+1] != 2 || first.Groups[1].Counts[n-2] != 0 || first.Groups[1].Counts[n-1] != 1 {
		t.Errorf("got %d samples, %v, %v", n, counts, first.Groups[1].Counts)
	}
	delete(deadAt, late)
	soon := look(now.Add(5 * time.Second))
	if len(soon.At) != n || soon.Groups[0].Counts[n-2] != 2 || soon.Groups[0].Counts[n-1] != 0 {
		t.Errorf("five seconds later: %d samples, the last %v", len(soon.At), soon.Groups[0].Counts[n-3:])
	}
	later := look(now.Add(30 * time.Minute))
	if at := later.At; at[0] < now.Unix()-1800 || at[len(at)-1] != now.Unix()+1800 {
		t.Errorf("half an hour later: from %d to %d", at[0], at[len(at)-1])
	}
}

func TestDeadLettersOfFewQueuesAreRemembered(t *testing.T) {
	t.Parallel()
	p := &past{}
	for i := range pastsAtMost + 5 {
		p.note(fmt.Sprint(i), &letters{}, nil, time.Unix(100_000+int64(i), 0))
	}
	if len(p.queues) != pastsAtMost || p.queues["0"] != nil || p.queues["24"] == nil {
		t.Errorf("remembers %d", len(p.queues))
	}
}
