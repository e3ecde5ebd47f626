package console

import (
	"context"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// failing is that no entity could be counted, although the store answers.
type failing struct {
	Since  int64  `json:"since"`            // ms since 1970
	Reason string `json:"reason,omitempty"` // only for those who may see all: it may name an entity
}

// failed notes that the entities could not be counted.
func (w *watch) failed(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the console stops
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failing.Since == 0 {
		w.failing.Since = time.Now().UnixMilli()
	}
	w.failing.Reason = semantics.AsError(err).Message
}

func (w *watch) recovered() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failing = failing{}
}

// read counts entities. Queues and subscriptions are counted some in a call, if the store can do that. It fails if the
// store cannot be read, or if none of them can be counted. One that alone cannot be counted has a warning, and does not
// keep the others from it.
func (w *watch) read(ctx context.Context, chosen []*entity) error {
	var sources, others []*entity
	for _, e := range chosen {
		if _, isCounter := w.store.(semantics.Counter); isCounter && kinds[e.Kind] != semantics.TopicKind {
			sources = append(sources, e)
		} else {
			others = append(others, e)
		}
	}
	for some := range slices.Chunk(sources, countedInCall) {
		switch err := w.readSome(ctx, some); {
		case err == nil:
		case isOfStore(err):
			return err
		default:
			others = append(others, some...) // one of them is not right
		}
	}
	var failure error
	failures := 0
	for _, e := range others {
		err := w.readOne(ctx, e)
		if err == nil {
			continue
		}
		if isOfStore(err) {
			return err
		}
		w.doubt(e, time.Now())
		failure = err
		failures++
	}
	if failures == len(chosen) && failures > 0 {
		return failure
	}
	return ctx.Err() //nolint:wrapcheck // the console stops
}

// readSome counts queues and subscriptions in one call.
func (w *watch) readSome(ctx context.Context, some []*entity) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	keys := make([]string, len(some))
	for i, e := range some {
		keys[i] = e.key
	}
	counts, err := w.store.(semantics.Counter).Runtimes(ctx, keys)
	if err != nil {
		return err //nolint:wrapcheck // it is one of the API
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for i, e := range some {
		w.take(e, counts[i], now)
	}
	return nil
}

func (w *watch) readOne(ctx context.Context, e *entity) error {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	n, err := w.store.Runtime(ctx, kinds[e.Kind], e.key)
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.take(e, &n, time.Now())
	case semantics.CodeOf(err) == semantics.EntityNotFound:
		w.take(e, nil, time.Now())
	default:
		return err //nolint:wrapcheck // it is one of the API
	}
	return nil
}

// isOfStore reports whether an error is of the store and not of one entity.
func isOfStore(err error) bool {
	switch semantics.CodeOf(err) {
	case semantics.StoreUnavailable, semantics.ServiceTimeout, semantics.Cancelled, semantics.Throttled:
		return true
	default:
		return false
	}
}

// doubt notes that an entity could not be counted, so that what is known of it is old.
func (w *watch) doubt(e *entity, now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e.readAt = now
	if !slices.Contains(e.Warnings, notCounted) {
		e.Warnings = append(slices.Clone(e.Warnings), notCounted)
		e.version = w.version + 1
	}
}
