package compat

import (
	"net/http"
	"net/url"
	"strings"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// nativePrefix begins the paths of the native API. An entity whose name begins with "v1/" cannot be addressed here.
const nativePrefix = "/v1/"

// verb is the operation of a request.
type verb int

const (
	send verb = iota
	receive
	receiveAndDelete
	complete
	unlock
	renew
)

// names are the names of verbs in metrics and logs.
var names = map[verb]string{
	send: "Compat.Send", receive: "Compat.PeekLock", receiveAndDelete: "Compat.ReceiveAndDelete",
	complete: "Compat.Complete", unlock: "Compat.Unlock", renew: "Compat.RenewLock",
}

// rpcs are the corresponding RPCs of the native API.
var rpcs = map[verb]string{
	send: sidebusv1.Messages_Send_FullMethodName, receive: sidebusv1.Messages_Receive_FullMethodName,
	receiveAndDelete: sidebusv1.Messages_Receive_FullMethodName, complete: sidebusv1.Messages_Complete_FullMethodName,
	unlock: sidebusv1.Messages_Abandon_FullMethodName, renew: sidebusv1.Messages_RenewLocks_FullMethodName,
}

// The verbs of each form of path, by HTTP method.
var (
	toMessages = map[string]verb{http.MethodPost: send}
	toHead     = map[string]verb{http.MethodPost: receive, http.MethodDelete: receiveAndDelete}
	toLock     = map[string]verb{http.MethodDelete: complete, http.MethodPut: unlock, http.MethodPost: renew}
)

// route is a parsed path.
type route struct {
	entity string // the path of an entity or a sub-queue, unescaped; not checked
	verbs  map[string]verb
	id     string // toLock: the message's id or sequence number
	token  string // toLock
	below  string // the rest of the path, from "messages" on
}

// routeOf parses the path of a request (REST-1, REST-4 to REST-7). It reports false for paths of other forms. "/" in
// the name of an entity may be escaped; in a message id it must be.
func routeOf(u *url.URL) (route, bool) {
	if strings.HasPrefix(u.Path, nativePrefix) || !strings.HasPrefix(u.Path, "/") {
		return route{}, false
	}
	parts := strings.Split(u.EscapedPath()[1:], "/")
	r, n := route{}, len(parts)
	at := func(i int, word string) bool { return i > 0 && strings.EqualFold(parts[i], word) }
	switch {
	case at(n-1, "messages"):
		r.verbs, n = toMessages, n-1
	case at(n-2, "messages") && at(n-1, "head"):
		r.verbs, n = toHead, n-2
	case at(n-3, "messages"):
		var badID, badToken error
		r.id, badID = url.PathUnescape(parts[n-2])
		r.token, badToken = url.PathUnescape(parts[n-1])
		if badID != nil || badToken != nil || r.id == "" || r.token == "" {
			return route{}, false
		}
		r.verbs, n = toLock, n-3
	default:
		return route{}, false
	}
	entity, err := url.PathUnescape(strings.Join(parts[:n], "/"))
	r.below = strings.Join(parts[n:], "/")
	r.entity = strings.ReplaceAll(entity, `\`, "/") // as ParsePath does, so that authorization checks the real path
	return r, err == nil
}

// Path suffixes of sub-queues, in lower case (DLQ-2).
const (
	deadLetters         = "/$deadletterqueue"
	transferDeadLetters = "/$transfer" + deadLetters
)

// source returns the entity or sub-queue of the route, unchecked.
func (r route) source() semantics.Source {
	source := semantics.Source{Path: r.entity}
	switch folded := semantics.Fold(r.entity); {
	case strings.HasSuffix(folded, transferDeadLetters):
		source.Path = r.entity[:len(r.entity)-len(transferDeadLetters)]
		source.SubQueue = semantics.TransferDeadLetterQueue
	case strings.HasSuffix(folded, deadLetters):
		source.Path, source.SubQueue = r.entity[:len(r.entity)-len(deadLetters)], semantics.DeadLetterQueue
	}
	return source
}
