// Package audit reads what Redis keeps of entities and says what does not belong together.
package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

// scheduledID writes an id as scheduled_ids has it.
var scheduledID = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")

// Auditor walks the raw keys of entities and says what does not belong together: a message in two states or in none, an
// index entry without its message, a sum that is wrong. What it knows is lua/README.md and not the scripts. It only
// reads and is safe for concurrent use, but an entity that changes meanwhile looks broken.
type Auditor struct {
	client    redis.UniversalClient
	namespace string
	witness   Witness
	contents  *Contents
	known     bool // no keys are looked for besides those that an entity has
}

// New makes an Auditor of a namespace. On a cluster it looks for no keys besides those that an entity has.
func New(client redis.UniversalClient, namespace string) *Auditor {
	_, isCluster := client.(*redis.ClusterClient)
	return &Auditor{client: client, namespace: namespace, known: isCluster}
}

// With makes an Auditor that also compares what is locked with what a Witness says was handed out.
func (a *Auditor) With(witness Witness) *Auditor {
	with := *a
	with.witness = witness
	return &with
}

// HoldRequests keeps Redis from forgetting the request ids of an entity two minutes after they were used by its own
// clock, for tests that have another one. It blocks for a round trip.
func (a *Auditor) HoldRequests(ctx context.Context, path string) error {
	_, err := a.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		p.Persist(ctx, a.tagOf(path)+"requests")
		p.Persist(ctx, a.tagOf(path)+"request_times")
		return nil
	})
	return err
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
	q.readChunks(a.known)
	q.checkRuns()
	q.readSessions()
	first := q.checkSide("") // the earliest instant at which something is due
	first = earlier(first, q.checkSide("dead_"))
	a.checkHeld(path, "", q)
	a.checkHeld(path, "dead_", q)
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
	alarm, registry, err := a.alarm(ctx, path)
	want := q.number("alarm_ms")
	if strings.HasPrefix(q.entity["kind"], recordKindPrefix) { // whose partitions may have been used later
		if q.number("idle_ms") >= 0 && err != nil {
			q.fault("no sweeper comes to see whether it is idle: %v", err)
		}
		return errors.Join(q.faults...)
	}
	isLate := want > 0 && err == nil && int64(alarm) > want && int64(alarm)-a.ahead(ctx, registry, path) > want
	if want > 0 && err != nil || isLate {
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

	groups []string     // of the bodies of each log entry of a subscription that has them elsewhere
	shared []sharedCopy // copies in these entries

	sessions map[string]*sessionKept // nil for a queue without sessions
	places   map[string][]place      // of the messages in by_session, by position and by number of scheduled ones
}

func (q *audit) fault(format string, args ...any) {
	q.faults = append(q.faults, fmt.Errorf(q.tag+" "+format, args...))
}

func (q *audit) number(field string) int64 {
	n, _ := strconv.ParseInt(q.entity[field], 10, 64)
	return n
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

// earlier returns the earlier of two instants, of which zero is none.
func earlier(a, b int64) int64 {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
