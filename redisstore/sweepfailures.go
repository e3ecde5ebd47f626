package redisstore

import (
	"sync"
	"time"
)

const (
	firstRetry = time.Second     // until what failed is tried again; each further time it is twice as long
	mostRetry  = 4 * time.Second // of what may pass at any moment, such as a full destination
	faultRetry = time.Minute     // of what an operator must repair

	mostFailures = 10_000 // remembered
)

// failures has the entities that a sweeper could not process, so that it tries them less and less often and reports
// each cause once. It knows them by name only: a new entity may be left for up to a minute because an earlier one of
// its name failed.
type failures struct {
	mu sync.Mutex
	of map[string]failure
}

type failure struct {
	cause string
	pause time.Duration
	until time.Time // is not tried before
}

// add notes a failure. It returns how long not to process the entity, and reports whether the cause differs from the
// one before.
func (f *failures) add(name string, err error) (pause time.Duration, isNew bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.of == nil || len(f.of) >= mostFailures {
		f.of = map[string]failure{}
	}
	before, cause := f.of[name], err.Error()
	most := mostRetry
	if isFault(err) {
		most = faultRetry
	}
	pause = min(max(2*before.pause, firstRetry), most)
	f.of[name] = failure{cause: cause, pause: pause, until: time.Now().Add(pause)}
	return pause, before.cause != cause
}

// pause returns how long an entity that failed is not tried yet.
func (f *failures) pause(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Until(f.of[name].until)
}

// end removes an entity.
func (f *failures) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, name)
}
