package audit

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Witness knows which messages stores have handed out.
type Witness interface {
	// Held returns by number the messages of one side of an entity that were handed out under a lock, were not settled
	// since, and whose lock has not ended now. The prefix is that of the keys of the side: "" or "dead_".
	Held(path, prefix string) (held map[int64]Held, now time.Time)
}

// Held is a message that was handed out.
type Held struct {
	Failed int // deliveries that failed before this one
	Until  time.Time
}

// checkHeld checks that what is locked on one side of an entity is what was handed out there and neither settled nor
// past its end, as often as it should.
func (a *Auditor) checkHeld(path, prefix string, q *audit) {
	if a.witness == nil {
		return
	}
	out, now := a.witness.Held(path, prefix)
	for lock, end := range q.singleLocks(prefix) {
		position, _, _ := strings.Cut(lock, ":")
		if m := sessionLock.FindStringSubmatch(lock); m != nil {
			position, end = unpadded(m[2]), q.zsets["session_locks"][m[1]]
		}
		if int64(end) <= now.UnixMilli() || end == noEnd {
			continue
		}
		number, _ := strconv.ParseInt(cmp.Or(q.logs[prefix+"log"][position].fields["n"], position), 10, 64)
		h, isOut := out[number]
		if !isOut {
			q.fault("%slocks has %d until %d, which was not handed out", prefix, number, int64(end))
			continue
		}
		delete(out, number)
		if got := q.hashes[prefix+"deliveries"][position]; cmp.Or(got, "0") != strconv.Itoa(h.Failed) {
			q.fault("%d has failed %s times, it was handed out with %d", number, got, h.Failed)
		}
		if h.Until.UnixMilli() != int64(end) {
			q.fault("%d is locked until %d, it was said until %d", number, int64(end), h.Until.UnixMilli())
		}
	}
	for _, number := range slices.Sorted(maps.Keys(out)) {
		q.fault("%d of %slog was handed out until %s and is not locked", number, prefix, out[number].Until)
	}
}
