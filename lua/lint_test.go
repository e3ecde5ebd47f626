package lua

import (
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mostUnpacked is how many values Lua unpacks at a time safely: near 8,000 it fails, and a script that fails halfway
// has done half its work.
const mostUnpacked = 4096

// unpacked are the calls of unpack by file, each with the most values it can get and why it gets no more. Anything
// that has no such bound goes through lib/base/in_pieces or lib/base/slice.
var unpacked = map[string]map[string]int{
	"lib/base/in_pieces":    {"unpack(list, first, math.min(first + 999, #list))": 1000}, // by construction
	"lib/base/slice":        {"unpack(list, first, last)": 4000},                         // by construction
	"lib/entity/open_queue": {"unpack(keys, 28, 36)": 9},
	"lib/topic/open_copies": {
		"unpack(keys, at, at + counts[level] - 1)": 41,
		"unpack(own, 5, 11)":                       7,
	},
	// The keys of a queue by kind.
	"lib/base/check_key_types": {"unpack(sorted)": 41, "unpack(others)": 41},
	// An entry has at most its times and payload and s, q, e, i, p or n, c, a, r, d.
	"lib/dead_letter/dead_letter_entry":  {"unpack(entry[2])": 12},
	"lib/dead_letter/append_dead_letter": {"unpack(fields)": 22},
	// The options of an entity.
	"lib/entity/write_entity": {"unpack(fields)": 200},
	"update_entity":           {"unpack(fields)": 200},
	// maxScriptMessages positions, or with scores twice as many.
	"lib/lock/lock_messages":       {"unpack(locks)": 500},
	"lib/session/lock_in_session":  {"unpack(locks)": 500},
	"lib/lock/hold_expiry":         {"unpack(positions)": 250, "unpack(turned)": 500},
	"lib/available/take_available": {"unpack(returned)": 250},
	"lib/answer/values_of":         {"unpack(positions)": 250},
	"receive":                      {"unpack(old)": 250, "unpack(shares)": 250},
	"begin_resubmission":           {"unpack(locks)": 500},
	"begin_transfer":               {"unpack(locks)": 500, "unpack(old)": 250},
	// semantics.MaxSettleTokens, MaxRenewTokens, MaxCancelNumbers and MaxDeferredNumbers.
	"lib/lock/settle_locks":  {"unpack(kept)": 1000, "unpack(ended)": 1000},
	"lib/lock/complete_runs": {"unpack(nonces)": 1000, "unpack(over)": 1000},
	"lib/lock/renew_runs":    {"unpack(nonces)": 500},
	"lib/lock/count_locked":  {"unpack(nonces)": 200},
	"lib/lock/lost_lock":     {"unpack(kept)": 500},
	// semantics.MaxTransactionItems.
	"lib/transaction/open_members":  {"unpack(keys, first, first + 40)": 41},
	"lib/transaction/longer_by":     {"unpack(positions)": 250},
	"lib/transaction/refuse_cancel": {"unpack(missing)": 500},
	"transact":                      {"unpack(refused)": 501},
	"complete":                      {"unpack(wanted)": 1000, "unpack(positions)": 1000, "unpack(gone)": 1000},
	"turn":                          {"unpack(rows)": 250},
	"lib/session/turn_plainly":      {"unpack(rows)": 250},
	"complete_in_sessions":          {"unpack(rows)": 250},
	"accept_next_session":           {"unpack(accepted)": 64},
	"close_session":                 {"unpack(closed)": 64},
	"lib/log/delete_own":            {"unpack(ids)": 1000},
	"lib/log/delete_spans":          {"unpack(over)": 1000, "unpack(members)": 1000},
	"abandon":                       {"unpack(results)": 1000},
	"release":                       {"unpack(results)": 1000},
	"defer":                         {"unpack(results)": 1000},
	"dead_letter":                   {"unpack(results)": 1000},
	"renew_locks":                   {"unpack(alone)": 500, "unpack(results)": 500},
	"cancel_scheduled":              {"unpack(missing)": 1000},
	"receive_by_number":             {"unpack(missing)": 250},
	"reactivate":                    {"unpack(missing)": 250},
	"delete_by_number":              {"unpack(results)": 250},
	// A group of bodies, and a chunk: see lib/topic/share_copy and redisstore.mostChunkMessages.
	"lib/topic/store_group":     {"unpack(group.bodies)": 64},
	"lib/log/release_bodies":    {"unpack(numbers)": 32},
	"lib/log/messages_of_chunk": {"unpack(origins)": 32},
	// A transfer has at most maxScriptMessages.
	"arrive": {"unpack(numbers)": 250},
	// Calls that share a script: redisstore.mostSend and mostPublish. A call has one result however many its messages
	// are. The ids that one send forgets.
	"lib/request/forget_answers": {"unpack(ids)": 10},
	"send":                       {"unpack(KEYS, 11, 17)": 7, "unpack(results)": 256},
	"publish":                    {"unpack(KEYS, requests, #KEYS)": 2, "unpack(needs)": 4000, "unpack(results)": 1000},
	// A number and a letter for each subscription of a topic: semantics.MaxSubscriptionsPerTopic.
	"activate":           {"unpack(needs)": 4000},
	"arrive_in_topic":    {"unpack(needs)": 4000},
	"list_subscriptions": {"unpack(names)": 2001},
	"delete_topic":       {"unpack(KEYS, 1, last_key)": 3012},
	// All keys of a queue or subscription and of its transfer dead-letter queue.
	"delete_queue":        {"unpack(KEYS)": 92},
	"delete_subscription": {"unpack(KEYS, 6)": 98},
	"source_runtime":      {"unpack(KEYS, 42, 82)": 41},
	"end_transfer":        {"unpack(KEYS, 42, 82)": 41},
	// Pages.
	"due":           {"unpack(found)": 500},
	"take_alarms":   {"unpack(names)": 16},
	"list_rules":    {`unpack(redis.call("ZRANGE", rules, "[" .. from, "(" .. to, "BYLEX", "LIMIT", 0, limit))`: 101},
	"list_sessions": {"unpack(rows)": 100},
	"resubmit":      {"unpack(KEYS, 1, 41)": 41, "unpack(KEYS, 50, 56)": 7, "unpack(results)": 250},
}

// sources returns the text of every file by its name without its ending.
func sources(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.lua", "guard/*.lua", "lib/*/*.lua"} {
		names, err := fs.Glob(files, pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			text, err := fs.ReadFile(files, name)
			if err != nil {
				t.Fatal(err)
			}
			found[strings.TrimSuffix(name, ".lua")] = string(text)
		}
	}
	return found
}

// callAt returns a call with its arguments, from where its name begins to the bracket that closes it.
func callAt(text string) string {
	depth, inText := 0, false
	for i, c := range text {
		switch {
		case c == '"':
			inText = !inText
		case inText:
		case c == '(':
			depth++
		case c == ')':
			if depth--; depth == 0 {
				return text[:i+1]
			}
		}
	}
	return text
}

var unpackCall = regexp.MustCompile(`\bunpack\(`)

// Every list that is unpacked has a bound.
func TestUnpackIsBounded(t *testing.T) {
	t.Parallel()
	for name, source := range sources(t) {
		known := maps.Clone(unpacked[name])
		for line := range strings.Lines(source) {
			code, _, _ := strings.Cut(line, "--")
			for _, at := range unpackCall.FindAllStringIndex(code, -1) {
				call := callAt(code[at[0]:])
				if most, ok := unpacked[name][call]; !ok || most > mostUnpacked {
					t.Errorf("%s: %s can get %d values: use lib/base/in_pieces or lib/base/slice, or say here why it gets no more than %d",
						name, call, most, mostUnpacked)
				}
				delete(known, call)
			}
		}
		for _, call := range slices.Sorted(maps.Keys(known)) {
			t.Errorf("%s has no %s any more", name, call)
		}
	}
}
