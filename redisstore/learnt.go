package redisstore

import (
	"maps"
	"slices"
	"sync"
)

// mostLearnt bounds what a Store keeps of one kind of knowledge about entities: about a megabyte.
const mostLearnt = 10_000

// learnt is a cache of what a Store knows about entities, by folded path. It only saves a second call: every script
// checks it. So an entry may be wrong, because the entity or all of Redis has changed, and any entry may be dropped.
// Temporary entities come and go, and no sidecar is notified of those that others delete, so the number of entries is
// bounded.
type learnt[V any] struct {
	mu   sync.Mutex
	of   map[string]V
	most int
}

func newLearnt[V any]() *learnt[V] { return &learnt[V]{of: map[string]V{}, most: mostLearnt} }

func (l *learnt[V]) get(path string) (V, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	v, ok := l.of[path]
	return v, ok
}

// put adds an entry. When there are too many it drops any other: even with more entities in use than entries, most
// calls need no second one.
func (l *learnt[V]) put(path string, v V) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, known := l.of[path]; !known && len(l.of) >= l.most {
		for other := range l.of {
			delete(l.of, other)
			break
		}
	}
	l.of[path] = v
}

func (l *learnt[V]) forget(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.of, path)
}

// values returns all entries.
func (l *learnt[V]) values() []V {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Values(l.of))
}

func (l *learnt[V]) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of)
}
