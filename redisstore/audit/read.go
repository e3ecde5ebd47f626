package audit

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sidebus/sidebus/semantics"
)

// parts are the keys of entities by type. A queue or subscription has queueParts, a topic topicParts.
type parts map[string][]string

var queueParts = parts{
	"stream": {"log", "dead_log", "scheduled"},
	"zset": {
		"ready", "locks", "waiting", "expiry", "gaps", "delayed", "deferred", "dead_ready", "dead_locks", "dead_waiting",
		"dead_expiry", "dead_gaps", "dead_delayed", "dead_deferred", "dead_numbers", "due", "scheduled_ids", "history_times",
		"by_session", "session_locks", "ready_sessions", "idle_sessions", "states_due", "request_times", "run_locks", "chunks",
		"copies",
	},
	"hash": {
		"entity", "deliveries", "modified", "dead_deliveries", "dead_modified", "history",
		"sessions", "session_tokens", "session_waiting", "session_states", "arrivals", "requests", "runs",
	},
}

var topicParts = parts{
	"stream": {"scheduled"},
	"zset":   {"due", "scheduled_ids", "history_times", "rules", "request_times", "left_copies"},
	"hash":   {"entity", "history", "subscriptions", "arrivals", "requests", "bodies", "body_uses"},
}

type logEntry struct {
	size    int64
	fields  map[string]string
	times   string // the name of the first field
	payload string // its value
}

// tagOf returns what all keys of an entity begin with.
func (a *Auditor) tagOf(path string) string {
	if source, ok := strings.CutSuffix(path, TransfersSuffix); ok {
		return a.tagOf(source) + "transfer:"
	}
	if topic, name, ok := semantics.SplitSubscription(path); ok {
		return a.tagOf(topic) + "subscriptions/" + semantics.Fold(name) + ":"
	}
	return "sb:{" + a.namespace + "/" + semantics.Fold(path) + "}:"
}

// read fetches all keys in one transaction, so that no script runs in between, and the names of those there are, so
// that none is missed.
func (a *Auditor) read(ctx context.Context, path string) (*audit, error) {
	q := &audit{
		tag: a.tagOf(path), keys: map[string]bool{}, logs: map[string]map[string]logEntry{},
		zsets: map[string]map[string]float64{}, hashes: map[string]map[string]string{},
	}
	var names *redis.StringSliceCmd
	streams, zsets := map[string]*redis.Cmd{}, map[string]*redis.ZSliceCmd{}
	hashes := map[string]*redis.MapStringStringCmd{}
	_, err := a.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		if !a.known {
			names = p.Keys(ctx, KeysOf(q.tag))
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
	for _, part := range []string{"ready_sessions", "chunks"} {
		if isStop(zsets[part], hashes["entity"].Val()) {
			err = nil // every other command has its error
		}
	}
	if err != nil {
		return nil, err
	}
	if names != nil {
		for _, key := range names.Val() {
			if part := strings.TrimPrefix(key, q.tag); part != "barred" && !strings.HasPrefix(part, "deleted/") { // they outlive what they are about
				q.keys[part] = true
			}
		}
	}
	q.entity = hashes["entity"].Val()
	q.readKind()
	for part, cmd := range streams {
		items, err := cmd.Slice()
		if err != nil {
			return nil, err
		}
		q.readLog(part, items)
	}
	for part, cmd := range zsets {
		if err := cmd.Err(); err != nil && !isStop(cmd, q.entity) {
			return nil, err
		}
		q.zsets[part] = map[string]float64{}
		for _, z := range cmd.Val() {
			q.zsets[part][fmt.Sprint(z.Member)] = z.Score
		}
	}
	for part, cmd := range hashes {
		if err := cmd.Err(); err != nil {
			return nil, err
		}
		q.hashes[part] = cmd.Val()
	}
	if a.known {
		q.findKeys()
	}
	if a.contents != nil {
		a.contents.show(q)
	}
	return q, nil
}

// readKind checks the kind against the durability that the entity asks for, by which scripts know whether to look at
// it, and makes it the plain one.
func (q *audit) readKind() {
	plain, isFenced := strings.CutPrefix(q.entity["kind"], "fenced_")
	level := q.entity["durability"]
	if asks := level != "" && level != "SIDECAR"; (plain == "queue" || plain == "subscription") && asks != isFenced {
		q.fault("it is a %s with the durability %q", q.entity["kind"], level)
	}
	if isFenced {
		q.entity["kind"] = plain
	}
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
		if part != "touched" && !slices.Contains(all, part) { // docs/decisions/0044
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
		e.times, e.payload = fields[0].(string), fields[1].(string)
		for i := 2; i+1 < len(fields); i += 2 {
			e.fields[fields[i].(string)] = fields[i+1].(string)
		}
		q.logs[part][position] = e
	}
}

// KeysOf returns the pattern of the keys that begin with a text.
func KeysOf(prefix string) string {
	return strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`, "]", `\]`).Replace(prefix) + "*"
}
