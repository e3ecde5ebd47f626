package broker

import (
	"context"
	"sync"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker/delivery"
)

// useNoter is the part of a Store that learns what is in use.
type useNoter interface {
	NoteUse(ctx context.Context, uses []semantics.Use) error
}

// uses is the account of queues and subscriptions for which this process has waiting receives or streams. All through
// that time they are in use, however few calls it takes (IDLE-5). Every NoteEvery the Store is told of those that are
// and of those that were since the last time, with the instant at which it ended: so a wait costs nothing and a process
// that crashes stops noting it.
type uses struct {
	store useNoter

	mu     sync.Mutex      // guards what follows
	of     map[string]*use // by folded path
	timer  *time.Timer     // nil: nothing is to be told
	tell   func()          // what it calls
	closed bool
	work   sync.WaitGroup // of the timer's calls
}

type use struct {
	path  string
	count int       // of waits and streams
	ended time.Time // when the last one ended; means nothing while there are some
}

func (u *uses) init(store useNoter) {
	u.store = store
	u.of = map[string]*use{}
}

// begin notes that a wait or stream begins. The caller must call end.
func (u *uses) begin(ctx context.Context, path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	key := semantics.Fold(path)
	if u.of[key] == nil {
		u.of[key] = &use{path: path}
	}
	u.of[key].count++
	if u.timer == nil && !u.closed {
		u.armLocked(context.WithoutCancel(ctx))
	}
}

func (u *uses) end(path string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	one := u.of[semantics.Fold(path)]
	one.count--
	one.ended = time.Now()
}

// armLocked lets the Store be told in NoteEvery.
func (u *uses) armLocked(ctx context.Context) {
	u.work.Add(1)
	u.tell = func() {
		defer u.work.Done()
		u.note(ctx)
		u.mu.Lock()
		defer u.mu.Unlock()
		u.timer = nil
		if len(u.of) > 0 && !u.closed {
			u.armLocked(ctx)
		}
	}
	u.timer = time.AfterFunc(semantics.NoteEvery, u.tell)
}

// note calls NoteUse. What fails is noted the next time.
func (u *uses) note(ctx context.Context) {
	u.mu.Lock()
	now := time.Now()
	var some []semantics.Use
	var over []string
	for key, one := range u.of {
		if one.count > 0 {
			some = append(some, semantics.Use{Path: one.path})
			continue
		}
		some = append(some, semantics.Use{Path: one.path, Ago: now.Sub(one.ended)})
		over = append(over, key)
	}
	u.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, delivery.SettleTimeout)
	defer cancel()
	if len(some) == 0 || u.store.NoteUse(ctx, some) != nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range over {
		if one := u.of[key]; one.count == 0 && !one.ended.After(now) {
			delete(u.of, key)
		}
	}
}

// close notes a last time, if there is something to note.
func (u *uses) close() {
	u.mu.Lock()
	u.closed = true
	tell := u.tell
	isMine := u.timer != nil && u.timer.Stop()
	u.mu.Unlock()
	if isMine {
		tell()
	}
	u.work.Wait()
}
