package audit

import (
	"context"
	"maps"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// TransfersSuffix names, behind the path of a source, its transfer dead-letter queue.
const TransfersSuffix = "/$transfer"

// noEnd is the end of the locks of messages that a transfer has set aside.
const noEnd = 253402300799000

var (
	transferNote = regexp.MustCompile(`^(\d+):\d+:\d+:(?:queue|topic):\d+:.+$`)
	arrivalField = regexp.MustCompile(`^\d+:(?:dead_)?:[^:]+$`)
	arrivalNote  = regexp.MustCompile(`^\d+:\d+:\d+:[-.dfmqsu]*$`)
)

// auditTransfers checks the transfer dead-letter queue of a source, which is a queue with nothing on its main side.
func (a *Auditor) auditTransfers(ctx context.Context, path string, of *audit) error {
	q, err := a.read(ctx, path+TransfersSuffix)
	if err != nil {
		return err
	}
	maps.DeleteFunc(of.keys, func(key string, _ bool) bool { return strings.HasPrefix(key, "transfer:") })
	if len(q.entity) == 0 {
		for key := range q.keys {
			q.fault("%s is left without a transfer dead-letter queue", key)
		}
		of.faults = append(of.faults, q.faults...)
		return nil
	}
	for _, option := range []string{"status", "lock_duration_ms", "dead_letter_ttl_ms"} {
		if q.entity[option] != of.entity[option] {
			q.fault("%s is %q, of its source %q", option, q.entity[option], of.entity[option])
		}
	}
	for key := range q.keys {
		if key != "entity" && !strings.HasPrefix(key, "dead_") {
			q.fault("%s of a transfer dead-letter queue", key)
		}
	}
	first := q.checkSide("dead_")
	a.checkHeld(path+TransfersSuffix, "dead_", q)
	q.checkDeadNumbers()
	q.checkAlarm(first)
	if err := a.checkSweeper(ctx, path+TransfersSuffix, q); err != nil {
		of.faults = append(of.faults, err)
	}
	return nil
}

// checkForwarding checks what a source has to forward: messages that are set aside belong to the transfer that is
// noted, and a sweeper will come for what is to be forwarded.
func (a *Auditor) checkForwarding(ctx context.Context, path string, q *audit) {
	for _, side := range []string{"", "dead_"} {
		note, aside := q.entity[side+"transfer"], q.countAside(side)
		m := transferNote.FindStringSubmatch(note)
		if (note != "" && m == nil) || (note != "") != (aside > 0) || (m != nil && m[1] != q.entity[side+"transfer_number"]) {
			q.fault("%stransfer is %q, the last was %q, %d messages are set aside", side, note, q.entity[side+"transfer_number"], aside)
		}
		option := map[string]string{"": "forward_to", "dead_": "forward_dead_to"}[side]
		if note == "" && (q.entity[option] == "" || q.countAvailable(side) == 0) {
			continue
		}
		_, _, err := a.alarm(ctx, path)
		if q.entity["forwarder_called"] != "1" || err == redis.Nil { //nolint:errorlint // go-redis returns this value
			q.fault("no sweeper comes to forward what is in %slog: forwarder_called is %q (%v)", side, q.entity["forwarder_called"], err)
		}
	}
}

func (q *audit) countAside(side string) int {
	n := 0
	for _, end := range q.zsets[side+"locks"] {
		if end == noEnd {
			n++
		}
	}
	return n
}

// countAvailable counts messages that are neither locked, delayed nor deferred.
func (q *audit) countAvailable(side string) int {
	n := len(q.logs[side+"log"]) - len(q.singleLocks(side)) - len(q.zsets[side+"delayed"])
	for _, deferred := range q.zsets[side+"deferred"] {
		if deferred > 0 {
			n--
		}
	}
	return n
}

// checkArrivals checks what an entity remembers of transfers to it.
func (q *audit) checkArrivals() {
	for source, note := range q.hashes["arrivals"] {
		if !arrivalField.MatchString(source) || !arrivalNote.MatchString(note) {
			q.fault("arrivals has %q of %q", note, source)
		}
	}
}
