package redisstore

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/sidebus/sidebus/lua"
	"github.com/sidebus/sidebus/semantics"
)

// keyNames finds keys by the names under which the headers of the scripts declare them.
type keyNames interface {
	// parts returns the key of that name in two parts, the second one "" for a name it does not know.
	parts(name string) (prefix, rest string)
}

// namespaceKeys are the keys of a namespace itself. The value is their prefix.
type namespaceKeys string

func keysOfNamespace(namespace string) namespaceKeys { return namespaceKeys("sb:{" + namespace + "}:") }

func (k namespaceKeys) parts(name string) (prefix, rest string) {
	switch name {
	case "names", "registered", "alarms", "whole_sweep", "readings":
		return string(k), name
	default:
		return "", ""
	}
}

func (k namespaceKeys) key(name string) string {
	prefix, rest := k.parts(name)
	return prefix + rest
}

// entityKeys are the keys of one queue, topic or subscription. They share a hash tag, so they live in one slot. Queues
// and topics share one name space (ENT-2), so the tag carries no kind: a clash of names is a clash of keys. A
// subscription has the tag of its topic.
type entityKeys struct {
	tag   string // prefix of the keys
	owner string // the tag of the entity whose quota counts: of a subscription its topic, else as tag
	// the tag of the entity that is in use when this one is: of a transfer dead-letter queue its source, else as tag
	parent string
	left   string // the mark of a subscription that is deleted: see leftAs
	side   string // "dead_": keys of a side are those of the dead-letter queue, for scripts that know one side only
}

// keyPlace is where a key lies.
type keyPlace uint8

const (
	unknownPlace keyPlace = iota
	ownPlace              // at the entity
	sidePlace             // at the entity, once for each of the two sides
	topicPlace            // at the topic of a subscription
)

// keyPlaces has every key of an entity by its name, except those with the prefix "transfers_".
var keyPlaces = func() map[string]keyPlace {
	places := map[string]keyPlace{
		"subscriptions": topicPlace, "rules": topicPlace, "bodies": topicPlace, "body_uses": topicPlace,
		"left_copies": topicPlace,
	}
	for _, name := range []string{
		"log", "ready", "locks", "waiting", "deliveries", "expiry", "gaps", "delayed",
		"deferred", "modified",
	} {
		places[name], places["dead_"+name] = sidePlace, ownPlace
	}
	for _, name := range []string{
		"entity", "dead_numbers", "scheduled", "due", "scheduled_ids", "history", "history_times",
		"by_session", "sessions", "session_locks", "session_tokens", "session_waiting", "ready_sessions",
		"idle_sessions",
		"session_states", "states_due", "runs", "run_locks", "chunks",
		"arrivals", "requests", "request_times",
		"suspended", // in place of entity: see lua/suspend.lua
		"barred",    // outlives the entity: see lua/lib/entity/bar_ticket.lua
	} {
		places[name] = ownPlace
	}
	return places
}()

func (k entityKeys) key(name string) string {
	prefix, rest := k.parts(name)
	return prefix + rest
}

func (k entityKeys) parts(name string) (prefix, rest string) {
	switch keyPlaces[name] {
	case ownPlace:
		if name == "chunks" && k.isSubscription() {
			name = "copies" // versions before docs/decisions/0037 look for chunks in vain: see stop
		}
		return k.tag, name
	case sidePlace:
		if k.side != "" {
			name = k.side + name
		}
		return k.tag, name
	case topicPlace:
		return k.owner, name
	default:
		return k.otherParts(name)
	}
}

func (k entityKeys) otherParts(name string) (prefix, rest string) {
	switch name {
	case "topic", "owner":
		return k.owner, "entity"
	case "parent":
		return k.parent, "entity"
	case "stop":
		if k.isSubscription() {
			return k.tag, "chunks"
		}
	case "left_chunks":
		return k.owner, "left_copies/" + k.left
	case "unmatched":
		return k.owner, "subscriptions/" + semantics.UnmatchedSubscription + ":entity"
	}
	if name, ok := strings.CutPrefix(name, "transfers_"); ok {
		return k.transfers().parts(name)
	}
	return "", ""
}

// tagOf returns the tag of an entity, which is also the prefix of its keys unless it is a subscription.
func tagOf(namespace, path string) string {
	return "sb:{" + namespace + "/" + semantics.Fold(path) + "}:"
}

// isSubscription reports whether these are the keys of a subscription.
func (k entityKeys) isSubscription() bool { return k.owner != k.tag }

// transfersSuffix, after the path of a queue or subscription, makes the path of its transfer dead-letter queue, which
// is stored as a queue of its own.
const transfersSuffix = "/$transfer"

// keptAt returns the path of the queue under whose keys a source is stored.
func keptAt(source semantics.Source) string {
	if source.SubQueue == semantics.TransferDeadLetterQueue {
		return source.Path + transfersSuffix
	}
	return source.Path
}

func keysOfEntity(namespace, path string) entityKeys {
	path, isTransfers := strings.CutSuffix(path, transfersSuffix)
	tag := tagOf(namespace, path)
	owner := tag
	if topic, name, ok := semantics.SplitSubscription(path); ok {
		owner = tagOf(namespace, topic)
		tag = owner + "subscriptions/" + semantics.Fold(name) + ":"
	}
	keys := entityKeys{tag: tag, owner: owner, parent: tag}
	if isTransfers {
		return keys.transfers()
	}
	return keys
}

// transfers returns the keys of the transfer dead-letter queue. Its messages count for no quota.
func (k entityKeys) transfers() entityKeys {
	tag := k.tag + "transfer:"
	return entityKeys{tag: tag, owner: tag, parent: k.tag}
}

// leftAs returns the keys with that of the chunks of a subscription that was deleted under a mark, until their bodies
// are released: see lua/release_left.lua.
func (k entityKeys) leftAs(mark string) entityKeys {
	k.left = mark
	return k
}

// leftBehind is leftAs for a member of left_copies, which has the mark behind the incarnation of the topic.
func (k entityKeys) leftBehind(member string) entityKeys {
	_, mark, _ := strings.Cut(member, ":")
	return k.leftAs(mark)
}

// of returns the keys for scripts that know only the side that a source is.
func (k entityKeys) of(sub semantics.SubQueue) entityKeys {
	k.side = prefixOf(sub)
	return k
}

// keyGroups has the names of the keys that scripts take as a list, by the name of the list (lua.Script.Groups).
var keyGroups = sync.OnceValues(func() (map[string][]string, error) {
	scripts, err := lua.Scripts()
	groups := map[string][]string{}
	for _, s := range scripts {
		maps.Copy(groups, s.Groups)
	}
	return groups, err
})

// group returns the keys of a list, in its order.
func (k entityKeys) group(name string) []string {
	groups, _ := keyGroups() // Open has checked that the scripts load
	keys := make([]string, 0, len(groups[name]))
	for _, name := range groups[name] {
		keys = append(keys, k.key(name))
	}
	return keys
}

// all returns the keys of a queue in the order of the group queue.
func (k entityKeys) all() []string { return k.group("queue") }

// deleted returns every key that goes with a queue or subscription.
func (k entityKeys) deleted() []string {
	keys := append(k.all(), k.transfers().all()...)
	keys = append(keys, k.key("arrivals"), k.key("requests"), k.key("request_times"), k.key("stop"))
	keys = append(keys, k.key("suspended"), k.key("transfers_suspended"))
	return slices.DeleteFunc(keys, func(key string) bool {
		return key == "" || key == k.key("bodies") || key == k.key("body_uses") // those are of the topic
	})
}

// deletedTopic returns every key that goes with a topic: all except the list of its subscriptions, which outlives it.
func (k entityKeys) deletedTopic() []string {
	var keys []string
	for _, name := range []string{
		"rules", "scheduled", "scheduled_ids", "history", "history_times", "arrivals",
		"requests", "request_times", "bodies", "body_uses", "left_copies",
	} {
		keys = append(keys, k.key(name))
	}
	return keys
}

// keyLevel is the letter for the keys of a subscription that a script needs to store a copy: see
// lua/lib/topic/open_copies.lua.
type keyLevel byte

const (
	levelPlain    keyLevel = 'p'
	levelSessions keyLevel = 's'
	levelWhole    keyLevel = 'w'
)

// copies returns the keys that a level stands for.
func (k entityKeys) copies(level keyLevel) []string {
	switch level {
	case levelWhole:
		return k.all()
	case levelSessions:
		return append(k.group("plain"), k.group("sessions")...)
	default:
		return append(k.group("plain"), k.group("shared")...)
	}
}

// resubmitKeys are those of resubmit.lua: of the source, and with "target_" before their names of the target.
type resubmitKeys struct{ source, target entityKeys }

func (k resubmitKeys) parts(name string) (prefix, rest string) {
	if name, ok := strings.CutPrefix(name, "target_"); ok {
		return k.target.parts(name)
	}
	return k.source.parts(name)
}

// moreKeys are keys followed by others, for the last parameter of a script, which repeats.
type moreKeys struct {
	keyNames
	more []string
}

// with returns keys followed by others.
func with(keys keyNames, more ...string) moreKeys { return moreKeys{keys, more} }

// prefixOf returns the prefix of the entity's fields that belong to the source.
func prefixOf(sub semantics.SubQueue) string {
	if sub.IsDeadLetters() {
		return "dead_"
	}
	return ""
}
