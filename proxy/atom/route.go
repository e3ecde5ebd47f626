package atom

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// nativePrefix begins the paths of the native API.
const nativePrefix = "/v1/"

// target is what the path of a request names.
type target int

const (
	aQueueOrTopic target = iota
	aSubscription
	aRule
	theQueues
	theTopics
	theSubscriptions
	theRules
	theNamespace
)

// route is a parsed path.
type route struct {
	target target
	path   string // of the entity, of a rule that of its subscription; not checked, empty for the namespace
	rule   string // the name of a rule, not checked
	below  string // the rest of the path, which a token may be for
}

// routeOf parses the path of a request, and reports whether it is one of this API: all SDKs name its version, and "$"
// begins no other paths.
func routeOf(u *url.URL) (route, bool) {
	isOurs := strings.HasPrefix(u.Path, "/$") || u.Query().Has("api-version") && !strings.HasPrefix(u.Path, nativePrefix)
	path := strings.ReplaceAll(strings.Trim(u.Path, "/"), `\`, "/") // as ParsePath does
	if !isOurs || path == "" {
		return route{}, false
	}
	switch semantics.Fold(path) {
	case "$namespaceinfo":
		return route{target: theNamespace, below: path}, true
	case "$resources/queues":
		return route{target: theQueues, below: path}, true
	case "$resources/topics":
		return route{target: theTopics, below: path}, true
	}
	above, last := cutLast(path)
	if strings.EqualFold(last, "Subscriptions") && above != "" {
		return route{target: theSubscriptions, path: above, below: last}, true
	}
	if _, _, is := semantics.SplitSubscription(path); is {
		return route{target: aSubscription, path: path}, true
	}
	if _, _, is := semantics.SplitSubscription(above); is && strings.EqualFold(last, "Rules") {
		return route{target: theRules, path: above, below: last}, true
	}
	subscription, rules := cutLast(above)
	if _, _, is := semantics.SplitSubscription(subscription); is && strings.EqualFold(rules, "Rules") {
		return route{target: aRule, path: subscription, rule: last, below: rules + "/" + last}, true
	}
	return route{target: aQueueOrTopic, path: path}, true
}

// cutLast cuts the last segment of a path.
func cutLast(path string) (above, last string) {
	at := strings.LastIndexByte(path, '/')
	return path[:max(at, 0)], path[at+1:]
}

// call is what a request asks for.
type call struct {
	name  string // in metrics and logs, after "Atom."
	rpc   string // the corresponding RPC, whose claims it needs
	claim string // what Service Bus calls the claim, in the text of an error
	run   func(x *exchange, ctx context.Context) (status int, body []byte, err error)
}

// calls returns what a route is good for, by HTTP method.
func (r route) calls() map[string]call { return calls[r.target] }

// claims in the texts of errors.
const (
	toRead   = "EntityRead"
	toWrite  = "EntityWrite"
	toDelete = "EntityDelete"
)

var calls map[target]map[string]call

func init() { //nolint:gochecknoinits // the functions use the table
	get := func(name, rpc string, run func(*exchange, context.Context) (int, []byte, error)) map[string]call {
		return map[string]call{http.MethodGet: {name, rpc, toRead, run}}
	}
	calls = map[target]map[string]call{
		aQueueOrTopic: {
			http.MethodGet:    {"GetEntity", sidebusv1.Admin_GetQueue_FullMethodName, toRead, (*exchange).getEntity},
			http.MethodPut:    {"PutEntity", sidebusv1.Admin_CreateQueue_FullMethodName, toWrite, (*exchange).putEntity},
			http.MethodDelete: {"DeleteEntity", sidebusv1.Admin_DeleteQueue_FullMethodName, toDelete, (*exchange).deleteEntity},
		},
		aSubscription: {
			http.MethodGet: {
				"GetSubscription", sidebusv1.Admin_GetSubscription_FullMethodName, toRead, (*exchange).getEntity,
			},
			http.MethodPut: {
				"PutSubscription", sidebusv1.Admin_CreateSubscription_FullMethodName, toWrite, (*exchange).putEntity,
			},
			http.MethodDelete: {
				"DeleteSubscription", sidebusv1.Admin_DeleteSubscription_FullMethodName, toDelete, (*exchange).deleteEntity,
			},
		},
		aRule: {
			http.MethodGet:    {"GetRule", sidebusv1.Admin_GetRule_FullMethodName, toRead, (*exchange).getRule},
			http.MethodPut:    {"PutRule", sidebusv1.Admin_CreateRule_FullMethodName, toWrite, (*exchange).putRule},
			http.MethodDelete: {"DeleteRule", sidebusv1.Admin_DeleteRule_FullMethodName, toDelete, (*exchange).deleteRule},
		},
		theQueues:        get("ListQueues", sidebusv1.Admin_ListQueues_FullMethodName, (*exchange).listQueues),
		theTopics:        get("ListTopics", sidebusv1.Admin_ListTopics_FullMethodName, (*exchange).listTopics),
		theSubscriptions: get("ListSubscriptions", sidebusv1.Admin_ListSubscriptions_FullMethodName, (*exchange).listSubscriptions),
		theRules:         get("ListRules", sidebusv1.Admin_ListRules_FullMethodName, (*exchange).listRules),
		theNamespace:     get("GetNamespace", sidebusv1.Admin_ListQueues_FullMethodName, (*exchange).getNamespace),
	}
}
