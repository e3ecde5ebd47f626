package redistest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// scheduledID writes an id as scheduled_ids has it.
var scheduledID = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")

// Auditor walks the raw keys of entities and says what does not belong together: a message in two states or in none, an
// index entry without its message, a sum that is wrong. What it knows is lua/README.md and not the scripts. It only
// reads and is safe for concurrent use, but an entity that changes meanwhile looks broken.
type Auditor struct {
	client    *redis.Client
	namespace string
	ledger    *Ledger
	known     bool // no keys are looked for besides those that an entity has
}

// NewAuditor makes an Auditor of a namespace.
func NewAuditor(client *redis.Client, namespace string) *Auditor {
	return &Auditor{client: client, namespace: namespace}
}

// With makes an Auditor that also compares what is locked with what a Ledger says was handed out.
func (a *Auditor) With(ledger *Ledger) *Auditor {
	with := *a
	with.ledger = ledger
	return &with
}

// Audit checks all that is kept of an entity, of a topic with its subscriptions, also of one that was deleted, of which
// there must be nothing. It blocks for some round trips.
func (a *Auditor) Audit(ctx context.Context, path string) error {
	q, err := a.read(ctx, path)
	if err != nil {
		return err
	}
	if len(q.entity) == 0 {
		for key := range q.keys {
			q.fault("%s is left without an entity", key)
		}
		return errors.Join(q.faults...)
	}
	if q.entity["kind"] == "topic" {
		return a.auditTopic(ctx, path, q)
	}
	return a.auditQueue(ctx, path, q)
}

func (a *Auditor) auditQueue(ctx context.Context, path string, q *audit) error {
	if err := a.auditTransfers(ctx, path, q); err != nil {
		return err
	}
	q.checkParts(queueParts)
	q.checkRuns()
	q.readSessions()
	first := q.checkSide("") // the earliest instant at which something is due
	first = earlier(first, q.checkSide("dead_"))
	a.checkLedger(path, "", q)
	a.checkLedger(path, "dead_", q)
	q.checkDeadNumbers()
	first = earlier(first, q.checkScheduled())
	first = earlier(first, q.checkSessions())
	q.checkHistory()
	q.checkRequests()
	q.checkArrivals()
	q.checkAlarm(first)
	a.checkForwarding(ctx, path, q)
	return a.checkSweeper(ctx, path, q)
}

// checkSweeper checks that a sweeper comes in time, and returns all that was found.
func (a *Auditor) checkSweeper(ctx context.Context, path string, q *audit) error {
	alarm, err := a.client.ZScore(ctx, "sb:{"+a.namespace+"}:alarms", semantics.Fold(path)).Result()
	if want := q.number("alarm_ms"); want > 0 && (err != nil || int64(alarm) > want) {
		q.fault("no sweeper comes by %d: the alarm is %v (%v)", want, alarm, err)
	}
	return errors.Join(q.faults...)
}

type audit struct {
	tag    string
	keys   map[string]bool // parts that exist
	entity map[string]string
	logs   map[string]map[string]logEntry // by part and position
	zsets  map[string]map[string]float64
	hashes map[string]map[string]string
	faults []error

	sessions map[string]*sessionKept // nil for a queue without sessions
	places   map[string][]place      // of the messages in by_session, by position and by number of scheduled ones
}

type logEntry struct {
	size   int64
	fields map[string]string
	times  string // the name of the first field
}

func (q *audit) fault(format string, args ...any) {
	q.faults = append(q.faults, fmt.Errorf(q.tag+" "+format, args...))
}

// parts are the keys of entities by type. A queue or subscription has queueParts, a topic topicParts.
type parts map[string][]string

var queueParts = parts{
	"stream": {"log", "dead_log", "scheduled"},
	"zset": {
		"ready", "locks", "waiting", "expiry", "gaps", "delayed", "deferred", "dead_ready", "dead_locks", "dead_waiting",
		"dead_expiry", "dead_gaps", "dead_delayed", "dead_deferred", "dead_numbers", "due", "scheduled_ids", "history_times",
		"by_session", "session_locks", "ready_sessions", "idle_sessions", "states_due", "request_times", "run_locks",
	},
	"hash": {
		"entity", "deliveries", "modified", "dead_deliveries", "dead_modified", "history",
		"sessions", "session_tokens", "session_waiting", "session_states", "arrivals", "requests", "runs",
	},
}

var topicParts = parts{
	"stream": {"scheduled"},
	"zset":   {"due", "scheduled_ids", "history_times", "rules", "request_times"},
	"hash":   {"entity", "history", "subscriptions", "arrivals", "requests"},
}

// tagOf returns what all keys of an entity begin with.
func (a *Auditor) tagOf(path string) string {
	if source, ok := strings.CutSuffix(path, transfersSuffix); ok {
		return a.tagOf(source) + "transfer:"
	}
	if topic, name, ok := semantics.SplitSubscription(path); ok {
		return a.tagOf(topic) + "subscriptions/" + semantics.Fold(name) + ":"
	}
	return "sb:{" + a.namespace + "/" + semantics.Fold(path) + "}:"
}

// read fetches all keys in one go, and the names of those there are, so that none is missed.
func (a *Auditor) read(ctx context.Context, path string) (*audit, error) {
	q := &audit{
		tag: a.tagOf(path), keys: map[string]bool{}, logs: map[string]map[string]logEntry{},
		zsets: map[string]map[string]float64{}, hashes: map[string]map[string]string{},
	}
	var names *redis.StringSliceCmd
	streams, zsets, hashes := map[string]*redis.Cmd{}, map[string]*redis.ZSliceCmd{}, map[string]*redis.MapStringStringCmd{}
	_, err := a.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		if !a.known {
			names = p.Keys(ctx, globQuote(q.tag)+"*")
		}
		for _, of := range []parts{queueParts, topicParts} {
			for _, part := range of["stream"] {
				streams[part] = p.Do(ctx, "XRANGE", q.tag+part, "-", "+")
			}
			for _, part := range of["zset"] {
				zsets[part] = p.ZRangeWithScores(ctx, q.tag+part, 0, -1)
			}
			for _, part := range of["hash"] {
				hashes[part] = p.HGetAll(ctx, q.tag+part)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if names != nil {
		for _, key := range names.Val() {
			if part := strings.TrimPrefix(key, q.tag); part != "barred" { // it outlives what it is about
				q.keys[part] = true
			}
		}
	}
	for part, cmd := range streams {
		items, err := cmd.Slice()
		if err != nil {
			return nil, err
		}
		q.readLog(part, items)
	}
	for part, cmd := range zsets {
		q.zsets[part] = map[string]float64{}
		for _, z := range cmd.Val() {
			q.zsets[part][fmt.Sprint(z.Member)] = z.Score
		}
	}
	for part, cmd := range hashes {
		q.hashes[part] = cmd.Val()
	}
	if a.known {
		q.findKeys()
	}
	q.entity = q.hashes["entity"]
	return q, nil
}

// findKeys takes for the keys that there are those in which something was found.
func (q *audit) findKeys() {
	found := func(part string, n int) {
		if n > 0 {
			q.keys[part] = true
		}
	}
	for part, log := range q.logs {
		found(part, len(log))
	}
	for part, zset := range q.zsets {
		found(part, len(zset))
	}
	for part, hash := range q.hashes {
		found(part, len(hash))
	}
}

// checkParts checks that there are no other keys than those an entity may have.
func (q *audit) checkParts(may parts) {
	all := slices.Concat(may["stream"], may["zset"], may["hash"])
	for part := range q.keys {
		if !slices.Contains(all, part) {
			q.fault("%s is not a key of a %s", part, q.entity["kind"])
		}
	}
}

func (q *audit) readLog(part string, items []any) {
	q.logs[part] = map[string]logEntry{}
	for _, item := range items {
		row := item.([]any)
		position, size, _ := strings.Cut(row[0].(string), "-")
		e := logEntry{fields: map[string]string{}}
		e.size, _ = strconv.ParseInt(size, 10, 64)
		fields := row[1].([]any)
		e.times = fields[0].(string)
		for i := 2; i+1 < len(fields); i += 2 {
			e.fields[fields[i].(string)] = fields[i+1].(string)
		}
		q.logs[part][position] = e
	}
}

func globQuote(s string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(s)
}

func (q *audit) number(field string) int64 {
	n, _ := strconv.ParseInt(q.entity[field], 10, 64)
	return n
}

// checkSide checks the main queue or the dead letters and returns the first instant at which something is due on it.
func (q *audit) checkSide(side string) int64 {
	log := q.logs[side+"log"]
	cursor, sequence := q.number(side+"cursor"), q.number(side+"sequence")
	inGap := q.checkGaps(side, cursor, sequence)
	locked := map[string]bool{}
	first := int64(0)
	for lock, end := range q.singleLocks(side) {
		position, _, _ := strings.Cut(lock, ":")
		if side == "" && q.sessions != nil {
			position = q.lockInSession(lock, end)
		}
		if locked[position] {
			q.fault("%s has two locks", side+position)
		}
		locked[position] = true
		if end != noEnd {
			first = earlier(first, int64(end))
		}
	}
	for position, visible := range q.zsets[side+"delayed"] {
		_ = position
		first = earlier(first, int64(visible))
	}
	bytes := int64(0)
	for position, e := range log {
		bytes += e.size + q.more(side, position)
		if side == "" && q.sessions != nil {
			q.checkPlace(position, e, locked[position], sequence)
		} else {
			q.checkState(side, position, cursor, sequence, inGap[position], locked[position])
		}
		first = earlier(first, q.checkExpiry(side, position, e, locked[position]))
	}
	if side == "" {
		for _, e := range q.logs["scheduled"] {
			bytes += e.size
		}
	}
	if got := q.number(side + "bytes"); got != bytes {
		q.fault("%sbytes is %d, the messages are %d", side, got, bytes)
	}
	q.checkOrphans(side, log, locked)
	return first
}

// checkGaps returns the positions in gaps, which must lie apart and above the cursor.
func (q *audit) checkGaps(side string, cursor, sequence int64) map[string]bool {
	type span struct{ first, last int64 }
	var spans []span
	for member, score := range q.zsets[side+"gaps"] {
		var s span
		if _, err := fmt.Sscanf(member, "%d-%d", &s.first, &s.last); err != nil || float64(s.first) != score {
			q.fault("%sgaps has %s at %v", side, member, score)
		}
		spans = append(spans, s)
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.first - b.first) })
	in, before := map[string]bool{}, cursor
	for _, s := range spans {
		if s.first <= before+1 || s.last < s.first || s.last > sequence {
			q.fault("%sgaps has %d-%d after %d, cursor %d, sequence %d", side, s.first, s.last, before, cursor, sequence)
		}
		for n := s.first; n <= s.last; n++ {
			in[strconv.FormatInt(n, 10)] = true
		}
		before = s.last
	}
	return in
}

// checkState checks that a message is in exactly one state (I6 of reliability: no orphans).
func (q *audit) checkState(side, position string, cursor, sequence int64, inGap, locked bool) {
	n, _ := strconv.ParseInt(position, 10, 64)
	deferred, isDeferred := q.zsets[side+"deferred"][position]
	_, ready := q.zsets[side+"ready"][position]
	_, delayed := q.zsets[side+"delayed"][position]
	if isDeferred && (deferred < 0) != locked {
		q.fault("%s is deferred with %v, locked is %v", side+position, deferred, locked)
	}
	states := []string{}
	for name, is := range map[string]bool{
		"fresh": n > cursor && !inGap, "ready": ready, "delayed": delayed, "locked": locked, "deferred": isDeferred && !locked,
	} {
		if is {
			states = append(states, name)
		}
	}
	if len(states) != 1 || n > sequence {
		q.fault("%s is in the states %v, cursor %d, sequence %d", side+position, states, cursor, sequence)
	}
}

// checkExpiry checks the entry of one message among the lifetimes: with the sign turned while it is locked, and there
// unless it is deferred.
func (q *audit) checkExpiry(side, position string, e logEntry, locked bool) int64 {
	expires, has := q.zsets[side+"expiry"][position]
	if has && (expires < 0) != locked {
		q.fault("%s expires at %v, locked is %v", side+position, expires, locked)
	}
	_, deferred := q.zsets[side+"deferred"][position]
	_, end, _ := strings.Cut(e.times, ":")
	if side == "" && end != "0" {
		if !has && !deferred {
			q.fault("%s expires at %s and is not in expiry", position, end)
		}
		if has && strconv.FormatInt(int64(max(expires, -expires)), 10) != end {
			q.fault("%s expires at %s, expiry has %v", position, end, expires)
		}
	}
	if has && expires > 0 {
		return int64(expires)
	}
	return 0
}

// checkOrphans checks that nothing is kept for messages that are not there.
func (q *audit) checkOrphans(side string, log map[string]logEntry, locked map[string]bool) {
	members := map[string][]string{"locks": slices.Collect(maps.Keys(locked))}
	for _, part := range []string{"ready", "delayed", "deferred", "expiry"} {
		members[part] = slices.Collect(maps.Keys(q.zsets[side+part]))
	}
	for _, part := range []string{"deliveries", "modified"} {
		members[part] = slices.Collect(maps.Keys(q.hashes[side+part]))
	}
	for part, positions := range members {
		for _, position := range positions {
			if _, there := log[position]; !there {
				q.fault("%s has %s, which is not in the log", side+part, position)
			}
		}
	}
}

func (q *audit) checkDeadNumbers() {
	numbers, log := q.zsets["dead_numbers"], q.logs["dead_log"]
	if len(numbers) != len(log) {
		q.fault("dead_numbers has %d, dead_log %d", len(numbers), len(log))
	}
	for position, e := range log {
		if got := strconv.FormatInt(int64(numbers[position]), 10); got != e.fields["n"] {
			q.fault("dead_numbers has %s for %s, whose number is %s", got, position, e.fields["n"])
		}
	}
}

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

// checkAlarm checks that nothing is due before the alarm: scripts do nothing about time until then. What may be removed
// as unused always has one.
func (q *audit) checkAlarm(first int64) {
	alarm := q.number("alarm_ms")
	if first > 0 && (alarm == 0 || alarm > first) {
		q.fault("alarm_ms is %d, something is due at %d", alarm, first)
	} else if first == 0 && alarm >= noEnd {
		q.fault("alarm_ms is %d, when nothing is due", alarm)
	}
	if q.number("idle_ms") > 0 && alarm == 0 {
		q.fault("no sweeper will find out when it is unused")
	}
}

// more is by how many bytes its changes make a message larger.
func (q *audit) more(side, position string) int64 {
	number, _, _ := strings.Cut(q.hashes[side+"modified"][position], ":")
	n, _ := strconv.ParseInt(number, 10, 64)
	return n
}

// earlier returns the earlier of two instants, of which zero is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
