package redisstore

import (
	"sync"
	"time"
)

const (
	firstRetry = time.Second     // until what failed is tried again; each further time it is twice as long
	mostRetry  = 4 * time.Second // of what may be in order any moment, as a destination that is full
	faultRetry = time.Minute     // of what somebody has to mend

	mostFailures = 10_000 // remembered
)

// failures remembers which entities a sweeper could not see to, so that they take ever less of its time and each cause
// is told once. It is by name only: an entity of that name which Redis has now may rest for up to a minute because of
// one that it has forgotten.
type failures struct {
	mu sync.Mutex
	of map[string]failure
}

type failure struct {
	cause string
	pause time.Duration
	until time.Time // not to be tried before
}

// add notes a failure. It gives how long to leave the entity alone, and reports whether the cause is another one than
// before.
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

// resting gives how long an entity that failed is not to be tried yet.
func (f *failures) resting(name string) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Until(f.of[name].until)
}

// end forgets the failures of an entity.
func (f *failures) end(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.of, name)
}
