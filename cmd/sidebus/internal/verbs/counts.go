package verbs

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/duration"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// narrow are the columns of counts after the name. Nine characters for a size and seven for the others fit 80 columns
// with a name of 24.
var narrow = []string{"ACTIVE", "LOCKED", "DEFER", "SCHED", "DEAD", "SIZE", "OLDEST"}

// narrowRow returns the cells of narrow.
func narrowRow(c *sidebusv1.QueueRuntime, now time.Time) []string {
	return []string{
		short(c.GetActiveMessageCount()), short(c.GetLockedCount()), short(c.GetDeferredCount()),
		short(c.GetScheduledMessageCount()),
		short(c.GetDeadLetterMessageCount() + c.GetTransferDeadLetterMessageCount()), client.Bytes(c.GetSizeInBytes()),
		age(c.GetOldestEnqueuedTime(), now),
	}
}

// short writes a count in at most 5 characters, "12345" or "1.2M".
func short(n int64) string {
	const exact = 100_000
	if n < exact {
		return strconv.FormatInt(n, 10)
	}
	size, unit := float64(n), 0
	for ; size >= 999.5 && unit < 5; unit++ {
		size /= 1000
	}
	digits := 0
	if size < 9.95 {
		digits = 1
	}
	return strconv.FormatFloat(size, 'f', digits, 64) + [...]string{"", "k", "M", "G", "T", "P"}[unit]
}

// age writes how long ago an instant was, in its largest unit.
func age(at *timestamppb.Timestamp, now time.Time) string {
	if at == nil {
		return client.Absent
	}
	d := max(now.Sub(at.AsTime()), 0)
	for _, unit := range []time.Duration{duration.Day, time.Hour, time.Minute} {
		if d >= unit {
			return duration.Text(d.Truncate(unit))
		}
	}
	return duration.Text(d.Truncate(time.Second))
}

// fitNames shortens the first column so that a table fits into a width. If a name does not
// fit, subscriptions lose first the words that all of them have, "topics/news/subscriptions/eu" becomes "news/.../eu". What is then cut off is the beginning.
func fitNames(header []string, rows [][]string, width int) {
	const gap, least = 2, 12
	rest := 0
	for i := 1; i < len(header); i++ {
		widest := len(header[i])
		for _, row := range rows {
			widest = max(widest, utf8.RuneCountInString(row[i]))
		}
		rest += gap + widest
	}
	most := max(width-rest, least)
	isTooLong := slices.ContainsFunc(rows, func(row []string) bool { return utf8.RuneCountInString(row[0]) > most })
	for _, row := range rows {
		if topic, name := client.TopicOf(row[0]); topic != "" && isTooLong {
			row[0] = strings.TrimPrefix(topic, "topics/") + "/.../" + name
		}
		if name := []rune(row[0]); len(name) > most {
			row[0] = "..." + string(name[len(name)-most+3:])
		}
	}
}
