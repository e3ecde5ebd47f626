package audit

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// ruleMember is the form in which a topic keeps a rule: subscription, rule, what it counts as, when it was made.
var ruleMember = regexp.MustCompile(`(?s)^([^\x00]+)\x00([^\x00]+)\x00([sco])(\d+):.*$`)

// counted are the filters that are counted, by what the entity's field is called.
var counted = map[string]string{"s": "sql_filters", "c": "correlation_filters"}

func (a *Auditor) auditTopic(ctx context.Context, path string, q *audit) error {
	var faults []error
	filters, bodies := q.checkRules(), newBodies(q)
	bytes := q.checkTopicBytes()
	for _, name := range slices.Sorted(maps.Keys(q.hashes["subscriptions"])) {
		subPath := semantics.SubscriptionPath(path, name)
		sub, err := a.read(ctx, subPath)
		if err != nil {
			return err
		}
		bytes += sub.number("bytes") + sub.number("dead_bytes") + sub.number("state_bytes")
		sub.checkSubscription(q.hashes["subscriptions"][name], filters[name], q.number("sequence"))
		faults = append(faults, a.auditQueue(ctx, subPath, sub))
		bodies.add(sub)
		maps.DeleteFunc(q.keys, func(key string, _ bool) bool { return strings.HasPrefix(key, "subscriptions/"+name+":") })
	}
	if most := q.number("most_bytes"); bytes > most {
		q.fault("most_bytes is %d, topic and subscriptions have %d", most, bytes)
	}
	if err := bodies.addLeft(ctx, a.client); err != nil {
		return err
	}
	bodies.check()
	q.checkParts(topicParts)
	first := q.checkScheduled()
	q.checkHistory()
	q.checkRequests()
	q.checkArrivals()
	q.checkAlarm(first)
	return errors.Join(append(faults, a.checkSweeper(ctx, path, q))...)
}

// checkRules checks the rules of a topic and returns for each subscription how many there are of those that are
// counted.
func (q *audit) checkRules() map[string]map[string]int64 {
	filters, seen, total := map[string]map[string]int64{}, map[string]bool{}, map[string]int64{}
	for member, score := range q.zsets["rules"] {
		m := ruleMember.FindStringSubmatch(member)
		if m == nil || score != 0 {
			q.fault("rules has %q at %v", member, score)
			continue
		}
		subscription, rule := m[1], m[2]
		if _, has := q.hashes["subscriptions"][subscription]; !has {
			q.fault("rules has %q of %q, which is not a subscription", rule, subscription)
		}
		if seen[subscription+"\x00"+rule] {
			q.fault("rules has %q of %q twice", rule, subscription)
		}
		seen[subscription+"\x00"+rule] = true
		if filters[subscription] == nil {
			filters[subscription] = map[string]int64{}
		}
		filters[subscription][m[3]]++
		total[m[3]]++
	}
	for letter, field := range counted {
		if got := q.number(field); got != total[letter] {
			q.fault("%s is %d, there are %d", field, got, total[letter])
		}
	}
	return filters
}

// checkTopicBytes returns the bytes of what a topic itself holds, which is scheduled.
func (q *audit) checkTopicBytes() int64 {
	bytes := int64(0)
	for _, e := range q.logs["scheduled"] {
		bytes += e.size
	}
	if got := q.number("bytes"); got != bytes {
		q.fault("bytes is %d, the scheduled messages are %d", got, bytes)
	}
	return bytes
}

// checkSubscription checks what a subscription has and a queue has not: what its topic keeps of it, and copies that are
// numbered in the order in which the topic took them.
func (q *audit) checkSubscription(flags string, filters map[string]int64, sequence int64) {
	want := q.entity["requires_session"] + q.entity["dead_letter_failures"]
	if q.entity["in_partition"] != "" {
		want += ":" + q.entity["incarnation"]
	}
	if q.entity["kind"] != "subscription" || flags != want {
		q.fault("it is a %q, its topic says %q, it says %q", q.entity["kind"], flags, want)
	}
	for letter, field := range counted {
		if got := q.number(field); got != filters[letter] {
			q.fault("%s is %d, there are %d", field, got, filters[letter])
		}
	}
	for _, part := range []string{"scheduled", "due", "scheduled_ids", "history", "history_times"} {
		if q.keys[part] {
			q.fault("%s of a subscription", part)
		}
	}
	for _, side := range []string{"log", "dead_log"} {
		origins := map[int64]int64{} // by number
		for position, e := range q.logs[side] {
			if side == "dead_log" {
				position = e.fields["n"]
			}
			number, _ := strconv.ParseInt(position, 10, 64)
			// else it was sent again from the dead letters
			if origin, err := strconv.ParseInt(e.fields["e"], 10, 64); err == nil {
				origins[number] = origin
			}
		}
		before := int64(0)
		for _, number := range slices.Sorted(maps.Keys(origins)) {
			origin := origins[number]
			if origin < before || origin < 1 || origin > sequence {
				q.fault("%s: %d is the copy of %d, after that of %d; the topic is at %d", side, number, origin, before, sequence)
			}
			before = origin
		}
	}
}
