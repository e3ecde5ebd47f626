package redisstore

import "github.com/sidebus/sidebus/semantics"

// namespaceKeys are the keys a namespace has of its own.
type namespaceKeys struct {
	names      string // zset of folded entity names
	registered string // hash: folded name -> when it was put on the list
}

func keysOfNamespace(namespace string) namespaceKeys {
	tag := "sb:{" + namespace + "}:"
	return namespaceKeys{names: tag + "names", registered: tag + "registered"}
}

// queueKeys are all keys of one queue. They share a hash tag, so they live in one slot. Queues and topics share one
// name space (ENT-2), so the tag carries no kind: a clash of names is a clash of keys.
type queueKeys struct {
	entity                                     string
	log, ready, locks, waiting                 string // main queue
	deliveries, expiry, lockedExpiry, gaps     string // main queue only
	deadLog, deadReady, deadLocks, deadWaiting string // dead-letter queue
	deadNumbers                                string // dead-letter queue only
}

func keysOfQueue(namespace, path string) queueKeys {
	tag := "sb:{" + namespace + "/" + semantics.Fold(path) + "}:"
	return queueKeys{
		entity: tag + "entity", log: tag + "log", ready: tag + "ready", locks: tag + "locks", waiting: tag + "waiting",
		deliveries: tag + "deliveries", expiry: tag + "expiry", lockedExpiry: tag + "locked_expiry", gaps: tag + "gaps",
		deadLog: tag + "dead_log", deadReady: tag + "dead_ready", deadLocks: tag + "dead_locks",
		deadWaiting: tag + "dead_waiting", deadNumbers: tag + "dead_numbers",
	}
}

// of gives the keys of one source in the order every script on a source declares them: entity, log, ready, locks,
// waiting, deliveries, expiry, locked_expiry, gaps, dead_log, dead_numbers, dead_waiting.
func (k queueKeys) of(sub semantics.SubQueue) []string {
	log, ready, locks, waiting := k.log, k.ready, k.locks, k.waiting
	if sub == semantics.DeadLetterQueue {
		log, ready, locks, waiting = k.deadLog, k.deadReady, k.deadLocks, k.deadWaiting
	}
	return []string{
		k.entity, log, ready, locks, waiting, k.deliveries, k.expiry, k.lockedExpiry, k.gaps,
		k.deadLog, k.deadNumbers, k.deadWaiting,
	}
}

// all gives every key of the queue, those that delete_queue names first.
func (k queueKeys) all() []string {
	return []string{
		k.entity, k.waiting, k.deadWaiting, k.log, k.ready, k.locks, k.deliveries, k.expiry, k.lockedExpiry, k.gaps,
		k.deadLog, k.deadReady, k.deadLocks, k.deadNumbers,
	}
}

// prefixOf gives the prefix of the entity's fields that belong to the source.
func prefixOf(sub semantics.SubQueue) string {
	if sub == semantics.DeadLetterQueue {
		return "dead_"
	}
	return ""
}
