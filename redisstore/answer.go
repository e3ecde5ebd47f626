package redisstore

import (
	"math"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of one script that hands out messages. A caller's answer is bounded by semantics.MaxAnswerBytes.
const (
	maxScriptMessages = 250
	maxScriptBytes    = 2 * semantics.MaxAnswerBytes // for all callers together, but one message always fits

	messageOverhead = 256 // of a message, for what an answer tells besides what is stored
)

// answer is what one caller is given, by one script or by several. What it counts for is what lib/answer/weigh_at.lua
// says.
type answer struct {
	limit    int
	register semantics.Register
	entries  []entry
	bytes    int64
	complete bool // a further message would not fit
}

func (a *answer) weight() int { return min(a.limit, maxScriptMessages) }

// open is how many messages more it may get from one script.
func (a *answer) open() int { return min(a.limit-len(a.entries), maxScriptMessages) }

func (a *answer) room() int64 { return max(semantics.MaxAnswerBytes-a.bytes, 0) }

func (a *answer) isFull() bool {
	return len(a.entries) >= a.limit || len(a.entries) > 0 && (a.complete || a.room() == 0)
}

// waits reports whether the sidecar is to be on the waiting list when the next script gives nothing.
func (a *answer) waits() bool { return a.register == semantics.RegisterIfEmpty && len(a.entries) == 0 }

// registersAs is how it registers in the next script.
func (a *answer) registersAs() semantics.Register {
	if a.register == semantics.RegisterIfEmpty && !a.waits() {
		return semantics.RegisterNever
	}
	return a.register
}

func (a *answer) add(entries ...entry) {
	a.entries = append(a.entries, entries...)
	for i := range entries {
		a.bytes += entries[i].weight
	}
}

func (a *answer) roomText() string { return roomText(a.bytes) }

// roomText is the room of an answer with so many bytes as the scripts take it: with a sign when there are messages
// already, because only the first always fits.
func roomText(bytes int64) string {
	room := strconv.FormatInt(max(semantics.MaxAnswerBytes-bytes, 0), 10)
	if bytes > 0 {
		return "+" + room
	}
	return room
}

// safe is what messages may weigh so that this answer gets as many as it may whatever becomes of the others;
// math.MaxInt64 if it makes no difference, as for the one message that always fits.
func (a *answer) safe() int64 {
	if len(a.entries) == 0 && a.open() == 1 {
		return math.MaxInt64
	}
	return a.room() / int64(max(a.open(), 1))
}
