package redisstore

import (
	"slices"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// namespaceKeys are the keys a namespace has of its own.
type namespaceKeys struct {
	names      string // zset of folded entity names
	registered string // hash: folded name -> when it was put on the list
	alarms     string // zset of folded names by when a sweeper is to come
}

func keysOfNamespace(namespace string) namespaceKeys {
	tag := "sb:{" + namespace + "}:"
	return namespaceKeys{names: tag + "names", registered: tag + "registered", alarms: tag + "alarms"}
}

// sideKeys are the keys of one side of a queue: the main queue or its dead-letter queue.
type sideKeys struct {
	log, ready, locks, waiting, deliveries, expiry, gaps, delayed, deferred, modified string
}

func keysOfSide(tag string) sideKeys {
	return sideKeys{
		log: tag + "log", ready: tag + "ready", locks: tag + "locks", waiting: tag + "waiting",
		deliveries: tag + "deliveries", expiry: tag + "expiry", gaps: tag + "gaps", delayed: tag + "delayed",
		deferred: tag + "deferred", modified: tag + "modified",
	}
}

func (k sideKeys) all() []string {
	return []string{
		k.log, k.ready, k.locks, k.waiting, k.deliveries, k.expiry, k.gaps, k.delayed, k.deferred, k.modified,
	}
}

// queueKeys are all keys of one queue or subscription. They share a hash tag, so they live in one slot. Queues and topics share one
// name space (ENT-2), so the tag carries no kind: a clash of names is a clash of keys. A subscription has the tag of its topic.
type queueKeys struct {
	owner                        string // entity whose quota counts: that of a subscription's topic, else its own
	entity                       string
	main, dead                   sideKeys
	deadNumbers                  string
	scheduled, due, scheduledIDs string
	history, historyTimes        string
	sessions                     sessionKeys
	arrivals                     string // of what others forwarded here

	tag string // what all of them begin with
}

// sessionKeys are the keys that a queue has only when it requires sessions.
type sessionKeys struct {
	places, records, locks, tokens, waiting, ready, idle, states, statesDue string
}

func keysOfSessions(tag string) sessionKeys {
	return sessionKeys{
		places: tag + "by_session", records: tag + "sessions", locks: tag + "session_locks", tokens: tag + "session_tokens",
		waiting: tag + "session_waiting", ready: tag + "ready_sessions", idle: tag + "idle_sessions",
		states: tag + "session_states", statesDue: tag + "states_due",
	}
}

func (k sessionKeys) all() []string {
	return []string{k.places, k.records, k.locks, k.tokens, k.waiting, k.ready, k.idle, k.states, k.statesDue}
}

// tagOf gives the tag of an entity, and what the keys of one that is not a subscription begin with.
func tagOf(namespace, path string) string {
	return "sb:{" + namespace + "/" + semantics.Fold(path) + "}:"
}

// transfersSuffix names, behind the path of a queue or subscription, its transfer dead-letter queue, which is a queue of its own.
const transfersSuffix = "/$transfer"

// keptAt gives the path of the queue whose keys a source has.
func keptAt(source semantics.Source) string {
	if source.SubQueue == semantics.TransferDeadLetterQueue {
		return source.Path + transfersSuffix
	}
	return source.Path
}

func keysOfQueue(namespace, path string) queueKeys {
	path, isTransfers := strings.CutSuffix(path, transfersSuffix)
	tag := tagOf(namespace, path)
	owner := tag
	if topic, name, ok := semantics.SplitSubscription(path); ok {
		owner = tagOf(namespace, topic)
		tag = owner + "subscriptions/" + semantics.Fold(name) + ":"
	}
	keys := keysAt(tag, owner)
	if isTransfers {
		return keys.transfers()
	}
	return keys
}

func keysAt(tag, owner string) queueKeys {
	return queueKeys{
		tag: tag, owner: owner + "entity", entity: tag + "entity", main: keysOfSide(tag), dead: keysOfSide(tag + "dead_"), deadNumbers: tag + "dead_numbers",
		scheduled: tag + "scheduled", due: tag + "due", scheduledIDs: tag + "scheduled_ids",
		history: tag + "history", historyTimes: tag + "history_times", sessions: keysOfSessions(tag), arrivals: tag + "arrivals",
	}
}

// transfers gives the keys of the transfer dead-letter queue. What it holds counts for nobody's quota.
func (k queueKeys) transfers() queueKeys { return keysAt(k.tag+"transfer:", k.tag+"transfer:") }

// all gives every key of the queue in the order of lua/lib/open_queue.lua.
func (k queueKeys) all() []string {
	keys := make([]string, 0, 52) // room for a target, see target
	keys = append(keys, k.entity)
	keys = append(keys, k.main.all()...)
	keys = append(keys, k.dead.all()...)
	keys = append(keys, k.deadNumbers, k.scheduled, k.due, k.scheduledIDs, k.history, k.historyTimes)
	return append(keys, k.sessions.all()...)
}

// send gives the keys of send.lua.
func (k queueKeys) send() []string {
	return append([]string{
		k.entity, k.main.log, k.main.expiry, k.main.waiting, k.main.gaps, k.scheduled, k.due, k.scheduledIDs,
		k.history, k.historyTimes,
	}, k.targetSessions()...)
}

// target gives the keys that resubmit.lua needs of the queue it sends to.
func (k queueKeys) target() []string {
	return append(append([]string{
		k.entity, k.main.log, k.main.expiry, k.main.waiting, k.due, k.history, k.historyTimes, k.main.modified,
	}, k.targetSessions()...), k.owner)
}

// owned gives every key of the queue and the entity whose quota counts.
func (k queueKeys) owned() []string { return append(k.all(), k.owner) }

// both gives every key of the queue and of its transfer dead-letter queue.
func (k queueKeys) both() []string { return append(k.all(), k.transfers().all()...) }

// deleted gives every key that goes with the queue, as the scripts that delete it want them: first those of who waits, and its entity, then
// what keeps it in use, and all.
func (k queueKeys) deleted() []string {
	t := k.transfers()
	return slices.Concat(
		[]string{k.main.waiting, k.dead.waiting, t.dead.waiting, k.entity, k.sessions.waiting, k.sessions.locks},
		[]string{k.main.locks, k.dead.locks, t.dead.locks, k.due, k.dead.log, t.dead.log},
		k.both(), []string{k.arrivals},
	)
}

// keepers gives the keys of a subscription by which delete_topic finds out whether its topic is unused.
func (k queueKeys) keepers() []string {
	t := k.transfers().dead
	return []string{k.main.locks, k.dead.locks, t.locks, k.sessions.locks, k.dead.log, t.log}
}

// targetSessions gives the keys of lua/lib/open_target_sessions.lua.
func (k queueKeys) targetSessions() []string {
	s := k.sessions
	return []string{s.places, s.records, s.ready, s.idle, s.waiting, k.main.delayed, s.statesDue}
}

// keyLevel says which keys of a subscription a script gets that stores a copy there: see lua/lib/open_copies.lua.
type keyLevel byte

const (
	levelPlain    keyLevel = 'p'
	levelSessions keyLevel = 's'
	levelWhole    keyLevel = 'w'
)

// copies gives the keys that a level stands for.
func (k queueKeys) copies(level keyLevel) []string {
	plain := []string{k.entity, k.main.log, k.main.expiry, k.main.waiting}
	switch level {
	case levelWhole:
		return k.all()
	case levelSessions:
		return append(plain, k.targetSessions()...)
	default:
		return plain
	}
}

// topicKeys are the keys that a topic has of its own.
type topicKeys struct {
	entity, subscriptions, rules string
	scheduled, due, scheduledIDs string
	history, historyTimes        string
	arrivals                     string
}

func keysOfTopic(namespace, path string) topicKeys {
	tag := tagOf(namespace, path)
	return topicKeys{
		entity: tag + "entity", subscriptions: tag + "subscriptions", rules: tag + "rules",
		scheduled: tag + "scheduled", due: tag + "due", scheduledIDs: tag + "scheduled_ids",
		history: tag + "history", historyTimes: tag + "history_times", arrivals: tag + "arrivals",
	}
}

// own gives every key of the topic but the list of its subscriptions, which outlives it (delete_topic.lua).
func (k topicKeys) own() []string {
	return []string{k.entity, k.due, k.rules, k.scheduled, k.scheduledIDs, k.history, k.historyTimes, k.arrivals}
}

// publish gives the topic's keys of publish.lua.
func (k topicKeys) publish() []string {
	return []string{k.entity, k.scheduled, k.due, k.scheduledIDs, k.history, k.historyTimes}
}

// activate gives the topic's keys of activate.lua.
func (k topicKeys) activate() []string { return []string{k.entity, k.scheduled, k.due, k.scheduledIDs} }

// arrive gives the topic's keys of arrive_in_topic.lua.
func (k topicKeys) arrive() []string {
	return []string{k.entity, k.arrivals, k.history, k.historyTimes}
}

// of gives the keys of the side that a source is.
func (k queueKeys) of(sub semantics.SubQueue) sideKeys {
	if sub.IsDeadLetters() {
		return k.dead
	}
	return k.main
}

// prefixOf gives the prefix of the entity's fields that belong to the source.
func prefixOf(sub semantics.SubQueue) string {
	if sub.IsDeadLetters() {
		return "dead_"
	}
	return ""
}
