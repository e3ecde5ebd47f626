package history

import (
	"sync"
	"time"
)

// outcome is what a client knows of a call.
type outcome string

const (
	done    outcome = ""
	lost    outcome = "SESSION_LOCK_LOST"
	refused outcome = "SESSION_CANNOT_BE_LOCKED"
	unknown outcome = "unknown" // it may have taken effect, or may yet
	nothing outcome = "nothing" // it has certainly done nothing, for another reason
	open    outcome = "open"    // of a close: it was not tried
)

// call is one call about one session. Times are those of the machine, which Redis shares.
type call struct {
	what         string // accept, renew, close, set state; all else needs the lock and leaves it alone
	session      string // "": the next one, and none was given
	token        string
	via          *process
	began, ended time.Time
	outcome      outcome
	until        time.Time     // end of the lock, of accept and renew; of a loss, the end of the mark
	state        string        // that was found or set: "" for none, else "=" and the bytes
	shift        time.Duration // by which locks last longer from now on, as a clock was set
	excused      bool          // of a refused accept: a client may hold the session without knowing it
}

// wait is one accept of the next session, whatever it gave.
type wait struct {
	began, ended time.Time
	sidecar      *process
	outcome      outcome
	gave         string // the session
}

// hold is one lock of a session, as its holder knows it.
type hold struct {
	session, token  string
	accepted, until time.Time  // by Redis' clock
	sidecar         *process   // that accepted it, which gives it back when it drains
	elsewhere       []*process // through which it was used too, which give back what they handed out when they drain
	closed          outcome
	closedAt        time.Time
}

// handout is one hand-out of one message.
type handout struct {
	hold             *hold
	text, token      string
	number, sequence int64
	count            int
	deferred         bool // it was asked for by number
	began, ended     time.Time
	enqueued         time.Time

	verb                 string // how it was settled, "" when it was not
	outcome              outcome
	settleBegan, settled time.Time
}

// sent is one message whose sending was acknowledged.
type sent struct {
	session, text string
	number        int64
}

// record is the history of a run.
type record struct {
	mu         sync.Mutex
	calls      []*call
	waits      []*wait
	holds      []*hold
	deliveries []*handout
	sent       [][]sent // by sender
	blind      []*call  // receives and accepts that may have taken something without a client that saw it
}

func (r *record) add(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}
