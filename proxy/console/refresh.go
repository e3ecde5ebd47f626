package console

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// refresh takes over whether one entity exists, and its options, without waiting for the next list: a page was opened
// that names it, or a page has created, changed or deleted it. get reads it.
func (w *watch) refresh(
	ctx context.Context, path string,
	get func(ctx context.Context, kind semantics.Kind, path string) (semantics.Entity, error),
) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	possible := []semantics.Kind{semantics.QueueKind, semantics.TopicKind}
	if _, _, ok := semantics.SplitSubscription(path); ok {
		possible = []semantics.Kind{semantics.SubscriptionKind}
	}
	for _, kind := range possible {
		found, err := get(ctx, kind, path)
		if err == nil {
			w.place(found, map[string]bool{})
			w.wake()
			return
		}
		if semantics.CodeOf(err) != semantics.EntityNotFound {
			return // the next list shows it
		}
	}
	w.drop(semantics.Fold(path))
}

// knows reports whether an entity is listed.
func (w *watch) knows(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.entities[key] != nil
}

// drop removes an entity, and the subscriptions of a topic.
func (w *watch) drop(key string) {
	w.mu.Lock()
	gone := 0
	for other, e := range w.entities {
		if topic, _, ok := semantics.SplitSubscription(other); other == key || ok && topic == key {
			delete(w.entities, other)
			w.removed = append(w.removed, removal{w.version + 1, e.Path})
			gone++
		}
	}
	w.mu.Unlock()
	if gone > 0 {
		w.publish()
	}
}

// changedBy returns the entity that a call of the API creates, changes or deletes; false if it does not, or if only the
// body names it, as for a creation.
func changedBy(r *http.Request) (path string, changes bool) {
	if r.Method != http.MethodPut && r.Method != http.MethodPatch && r.Method != http.MethodDelete {
		return "", false
	}
	var names []string
	for _, segment := range strings.Split(strings.TrimPrefix(r.URL.EscapedPath(), "/v1/"), "/") {
		name, err := url.PathUnescape(segment)
		if err != nil {
			return "", false
		}
		names = append(names, name)
	}
	switch {
	case len(names) == 2: // queues/NAME, topics/NAME
		return names[1], true
	case len(names) == 4 && names[2] == "subscriptions":
		return semantics.SubscriptionPath(names[1], names[3]), true
	default:
		return "", false
	}
}
