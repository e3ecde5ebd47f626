package console

import (
	"context"
	"reflect"

	"github.com/sidebus/sidebus/semantics"
)

// receivers is who receives from the entity that a page shows alone (CNT-6). What is zero is left out.
type receivers struct {
	Sidecar   string           `json:"sidecar"` // this process
	Here      here             `json:"here"`
	Waiting   []waitingSidecar `json:"waiting,omitempty"`
	FirstLock int64            `json:"firstLock,omitempty"` // ms since 1970, as all times
	LastLock  int64            `json:"lastLock,omitempty"`
	Held      []heldSession    `json:"held,omitempty"`
	Ready     []readySession   `json:"ready,omitempty"`
}

type here struct {
	Waiting int `json:"waiting,omitempty"`
	Held    int `json:"held,omitempty"`
}

type waitingSidecar struct {
	Sidecar string `json:"sidecar"`
	Since   int64  `json:"since"`
}

type heldSession struct {
	ID        string `json:"id"`
	Holder    string `json:"holder"`
	Until     int64  `json:"until"`
	Available int64  `json:"available,omitempty"`
}

type readySession struct {
	ID        string `json:"id"`
	Since     int64  `json:"since"`
	Available int64  `json:"available,omitempty"`
}

func newReceivers(who semantics.Receivers, sidecar string) *receivers {
	r := &receivers{Sidecar: sidecar, FirstLock: millis(who.FirstLock), LastLock: millis(who.LastLock)}
	for _, w := range who.Waiting {
		r.Waiting = append(r.Waiting, waitingSidecar{w.Sidecar, millis(w.Since)})
	}
	for _, s := range who.Held {
		r.Held = append(r.Held, heldSession{s.ID, s.Holder, millis(s.LockedUntil), s.Available})
	}
	for _, s := range who.Ready {
		r.Ready = append(r.Ready, readySession{s.ID, millis(s.Since), s.Available})
	}
	return r
}

// readReceivers reads who receives from the entities that pages show alone.
func (w *watch) readReceivers(ctx context.Context) {
	store, knows := w.store.(semantics.Observed)
	if !knows {
		return
	}
	for _, e := range w.shownAlone() {
		one, cancel := context.WithTimeout(ctx, readTimeout)
		who, err := store.Receivers(one, e.key, semantics.MaxReceivers)
		cancel()
		if err != nil {
			continue // it is gone, or the next look reads it
		}
		now := newReceivers(who, store.Sidecar())
		now.Here.Waiting, now.Here.Held = w.broker.Receiving(e.key)
		w.mu.Lock()
		if !reflect.DeepEqual(e.receivers, now) {
			e.receivers, e.receiversVersion = now, w.version+1
		}
		w.mu.Unlock()
	}
}

// shownAlone returns the queues and subscriptions that pages show alone.
func (w *watch) shownAlone() (all []*entity) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.shown {
		if e := w.entities[key]; e != nil && kinds[e.Kind] != semantics.TopicKind {
			all = append(all, e)
		}
	}
	return all
}
