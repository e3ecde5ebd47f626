package audit

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// checkScheduled checks the scheduled messages and returns when the first is due.
func (q *audit) checkScheduled() int64 {
	log, due, ids := q.logs["scheduled"], q.zsets["due"], q.zsets["scheduled_ids"]
	if len(log) != len(due) || len(log) != len(ids) {
		q.fault("scheduled has %d, due %d, scheduled_ids %d", len(log), len(due), len(ids))
	}
	first := int64(0)
	for number, e := range log {
		n, _ := strconv.ParseInt(number, 10, 64)
		member := fmt.Sprintf("%016d", n)
		at, has := due[member]
		if _, named := ids[scheduledID.Replace(e.fields["i"])+"\x00"+member]; !has || !named {
			q.fault("scheduled %s is not in due or scheduled_ids", number)
		}
		if _, active := q.logs["log"][number]; active || n > q.number("sequence") {
			q.fault("scheduled %s is active too, or above the sequence", number)
		}
		first = earlier(first, int64(at))
	}
	return first
}

func (q *audit) checkHistory() {
	history, times := q.hashes["history"], q.zsets["history_times"]
	if len(history) != len(times) {
		q.fault("history has %d, history_times %d", len(history), len(times))
	}
	for key, value := range history {
		at, _, _ := strings.Cut(value, ":")
		if strconv.FormatInt(int64(times[key]), 10) != at {
			q.fault("history has %s for %q, history_times %v", value, key, times[key])
		}
	}
}

// checkRequests checks what is remembered of sends with a request id (IDEM-1).
func (q *audit) checkRequests() {
	requests, times := maps.Clone(q.hashes["requests"]), q.zsets["request_times"]
	counted, bytes := requests[""], 0
	delete(requests, "")
	if len(requests) != len(times) || len(requests) > semantics.MaxRequestsKept {
		q.fault("requests has %d, request_times %d", len(requests), len(times))
	}
	for id, value := range requests {
		at, _, _ := strings.Cut(value, ":")
		if strconv.FormatInt(int64(times[id]), 10) != at {
			q.fault("requests has %s for %q, request_times %v", value, id, times[id])
		}
		if strings.Contains(value, ":RUNS ") {
			bytes += len(value)
		}
	}
	if counted != strconv.Itoa(bytes) && (counted != "" || bytes > 0) {
		q.fault("requests counts %s bytes of answers in runs, has %d", counted, bytes)
	}
}
