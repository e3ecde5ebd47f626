package redisstore

import "sync"

// mostLearnt bounds what a Store keeps of one kind of knowledge about entities: about a megabyte.
const mostLearnt = 10_000

// learnt is what a Store has learnt about entities by their folded paths. It only saves a second try: every script
// finds out by itself whether it holds. So it may be wrong, because the entity or all of Redis has changed, and it may
// forget any of it. Temporary entities come and go, and no sidecar hears of those that others delete, so it keeps a
// bounded number.
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

// put keeps one more. When there are too many, any other one goes: with more entities in use than are kept, most tries
// still are the first.
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

func (l *learnt[V]) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.of)
}
