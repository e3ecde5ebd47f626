package audit

import (
	"strconv"
	"strings"
)

// Contents get what an Auditor reads that clients have sent, in the form in which it is stored.
type Contents struct {
	Payload func(payload, chunk string) // chunk: of an entry with several messages, their sizes and lengths
	State   func(state string, size int64)
}

// Showing makes an Auditor that also shows what it reads.
func (a *Auditor) Showing(c Contents) *Auditor {
	with := *a
	with.contents = &c
	return &with
}

func (c *Contents) show(q *audit) {
	for _, part := range []string{"log", "dead_log", "scheduled"} {
		for _, e := range q.logs[part] {
			c.Payload(e.payload, e.fields["z"])
		}
	}
	for _, body := range q.hashes["bodies"] {
		c.Payload(body, "")
	}
	for session, state := range q.hashes["session_states"] {
		record := q.hashes["sessions"][session]
		size, _ := strconv.ParseInt(record[strings.LastIndexByte(record, ':')+1:], 10, 64)
		c.State(state, size)
	}
}
