package redisstore

import (
	"math"
	"slices"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// Bounds of one script that hands out messages. A caller's answer is bounded by semantics.MaxAnswerBytes.
const (
	maxScriptMessages = 250
	maxScriptBytes    = 2 * semantics.MaxAnswerBytes // for all callers together, but one message always fits

	messageOverhead = 256 // of a message, for what an answer has besides what is stored
)

// answer is what one caller gets, from one script or several. lib/answer/weigh_at.lua says what each message counts
// for.
type answer struct {
	limit    int
	register semantics.Register
	entries  []entry
	bytes    int64
	complete bool // a further message would not fit
}

func (a *answer) weight() int { return min(a.limit, maxScriptMessages) }

// open returns how many more messages it may get from one script.
func (a *answer) open() int { return min(a.limit-len(a.entries), maxScriptMessages) }

func (a *answer) bytesLeft() int64 { return max(semantics.MaxAnswerBytes-a.bytes, 0) }

func (a *answer) isFull() bool {
	return len(a.entries) >= a.limit || len(a.entries) > 0 && (a.complete || a.bytesLeft() == 0)
}

// waits reports whether the sidecar is to be on the waiting list when the next script returns nothing.
func (a *answer) waits() bool { return a.register == semantics.RegisterIfEmpty && len(a.entries) == 0 }

// registersAs returns how it registers in the next script.
func (a *answer) registersAs() semantics.Register {
	if a.register == semantics.RegisterIfEmpty && !a.waits() {
		return semantics.RegisterNever
	}
	return a.register
}

func (a *answer) add(entries ...entry) {
	if a.entries == nil {
		a.entries = slices.Clip(entries) // what follows them is for other calls
	} else {
		a.entries = append(a.entries, entries...)
	}
	for i := range entries {
		a.bytes += entries[i].weight
	}
}

func (a *answer) bytesLeftText() string { return bytesLeftText(a.bytes) }

// bytesLeftText returns how many bytes an answer that has so many may still take, in the form of the scripts: with a
// plus sign if it has a message, because only the first always fits.
func bytesLeftText(bytes int64) string {
	left := strconv.FormatInt(max(semantics.MaxAnswerBytes-bytes, 0), 10)
	if bytes > 0 {
		return "+" + left
	}
	return left
}

// safe returns the weight up to which every message fits, whatever the other answers take; math.MaxInt64 if the weight
// makes no difference, as for the one message that always fits.
func (a *answer) safe() int64 {
	if len(a.entries) == 0 && a.open() == 1 {
		return math.MaxInt64
	}
	return a.bytesLeft() / int64(max(a.open(), 1))
}
