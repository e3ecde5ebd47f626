package amqp

import (
	"strings"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/semantics"
)

// node is what an address names.
type node struct {
	path         string // of a queue, topic or subscription, unchecked
	sub          semantics.SubQueue
	isManagement bool
	isCBS        bool
}

// Path suffixes, in lower case (DLQ-2).
const (
	managementSuffix = "/$management"
	deadLetterSuffix = "/$deadletterqueue"
	transferSuffix   = "/$transfer"
)

// nodeOf returns the node of an address, which is a path, with or without a slash at its ends, or a URL of one. Names
// of parts of the service have no case.
func nodeOf(address string) node {
	if _, rest, ok := strings.Cut(address, "://"); ok {
		_, address, _ = strings.Cut(rest, "/")
	}
	address = strings.Trim(address, "/")
	if strings.EqualFold(address, "$cbs") {
		return node{isCBS: true}
	}
	var n node
	n.path, n.isManagement = cutSuffix(address, managementSuffix)
	var isDead bool
	if n.path, isDead = cutSuffix(n.path, deadLetterSuffix); isDead {
		n.sub = semantics.DeadLetterQueue
		if path, isTransfer := cutSuffix(n.path, transferSuffix); isTransfer {
			n.path, n.sub = path, semantics.TransferDeadLetterQueue
		}
	}
	return n
}

// cutSuffix cuts a suffix in any case.
func cutSuffix(text, suffix string) (string, bool) {
	at := len(text) - len(suffix)
	if at < 0 || !strings.EqualFold(text[at:], suffix) {
		return text, false
	}
	return text[:at], true
}

// source is what messages of the node are received from.
func (n node) source() semantics.Source { return semantics.Source{Path: n.path, SubQueue: n.sub} }

// right is a right on the node. A token for the node alone, and not for all of its entity, is enough.
func (n node) right(claims access.Claims) access.Right {
	right := access.Right{Claims: claims, Path: n.source().String()}
	if n.isManagement {
		right.Below = managementSuffix[1:]
	}
	return right
}

// key is the node of a request and of its answer, in one form.
func (n node) key() string {
	key := semantics.Fold(n.source().String())
	if n.isManagement {
		key += managementSuffix
	}
	return key
}
