package broker

import (
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// Whatever is received, settled, renewed and closed: the index by session has the locks of sessions and no others, so it
// is never larger than what is held.
func TestHeldIndexHasTheLocksOfSessions(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	h := &held{}
	h.init()
	sources := []semantics.Source{{Path: "orders"}}
	for range 3 {
		sources = append(sources, semantics.Source{Path: "tales", SessionLock: semantics.NewLockToken()})
	}
	var tokens []semantics.LockToken
	for step := range 2000 {
		source := sources[random.IntN(len(sources))]
		until := time.Now().Add(time.Duration(random.IntN(3)-1) * time.Hour)
		some := tokens[:min(len(tokens), random.IntN(4))]
		switch random.IntN(7) {
		case 0, 1, 2:
			token := semantics.NewLockToken()
			tokens = append(tokens, token)
			h.add(source, []*semantics.Received{{LockToken: token, LockedUntil: until}}, nil)
		case 3:
			h.remove(some)
			tokens = tokens[len(some):]
		case 4:
			codes := []semantics.Code{"", semantics.MessageLockLost, semantics.SessionLockLost, semantics.Throttled}
			random.Shuffle(len(codes), func(i, j int) { codes[i], codes[j] = codes[j], codes[i] })
			h.ended(source, some, codes)
		case 5:
			if !source.SessionLock.IsZero() {
				h.addSession(source, until)
				h.renewSession(source, until)
				for token, lock := range h.locks {
					if lock.source == source && lock.until != until {
						t.Fatalf("step %d: %s was not renewed with its session", step, token)
					}
				}
			}
		default:
			if random.IntN(20) == 0 && !source.SessionLock.IsZero() {
				h.removeSession(source)
			}
		}
		want := map[semantics.LockToken]tokenSet{}
		for token, lock := range h.locks {
			if session := lock.source.SessionLock; !session.IsZero() {
				if want[session] == nil {
					want[session] = tokenSet{}
				}
				want[session][token] = struct{}{}
			}
		}
		if !maps.EqualFunc(h.bySession, want, maps.Equal) {
			t.Fatalf("step %d: the index is %v, want %v", step, h.bySession, want)
		}
	}
}
