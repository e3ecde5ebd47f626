package broker

import (
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// Receiving returns how many receives of this process wait on a queue or subscription, its sessions and sub-queues
// included, and how many of its messages and sessions the clients of this process hold.
func (b *Broker) Receiving(path string) (waiting, held int) {
	return b.waitingLists.on(path) + b.streams.Waiting(path), b.held.of(path)
}

// on returns how many receives wait on a queue or subscription.
func (lists *waitingLists) on(path string) (n int) {
	path = semantics.Fold(path)
	lists.mu.Lock()
	defer lists.mu.Unlock()
	for source, list := range lists.open {
		if source.Path == path {
			n += list.waiting()
		}
	}
	return n
}

// of returns how many messages and sessions of a queue or subscription are held.
func (h *held) of(path string) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sweepLocked()
	for _, lock := range h.locks {
		if strings.EqualFold(lock.source.Path, path) {
			n++
		}
	}
	return n
}
