package redisstore

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// unwell knows which servers did not answer the sweeper. Until such a server answers it gets one call at a time, and
// none for unwellPause after one that failed; the others fail at once. So the entities of a server that hangs, and
// those that forward to it, do not hold all places of the sweeper. Any number of callers may use it at the same time.
type unwell struct {
	mu      sync.Mutex
	servers map[*redis.Client]*attendance // those that have calls under way, or did not answer
}

// unwellPause is how long a server that did not answer is left alone.
const unwellPause = time.Second

// attendance is what the sweeper does with one server.
type attendance struct {
	calls int       // under way
	outAt time.Time // when it did not answer the call that ended last; zero: it did
}

func newUnwell() *unwell { return &unwell{servers: map[*redis.Client]*attendance{}} }

// unwellKey is the key under which a context has the unwell of its calls.
type unwellKey struct{}

// sparing returns a context whose calls do not wait for servers that are unwell.
func (u *unwell) sparing(ctx context.Context) context.Context {
	return context.WithValue(ctx, unwellKey{}, u)
}

// errUnwell means that a server did not answer lately.
var errUnwell = errors.New("the server did not answer the call before")

// visit is a call of the sweeper to a server. The zero visit is any other call.
type visit struct {
	unwell *unwell
	server *redis.Client
}

// visit begins a call to the server of a key, which the caller ends. It fails if the context spares servers that are
// unwell, and this one is.
func (s *Store) visit(ctx context.Context, key string) (visit, error) {
	u, _ := ctx.Value(unwellKey{}).(*unwell)
	if u == nil {
		return visit{}, nil
	}
	server, err := s.servers.of(ctx, key)
	if err != nil {
		return visit{}, nil //nolint:nilerr // the call itself fails in the same way
	}
	if !u.begin(server) {
		return visit{}, &unsent{errUnwell, causeUnreachable}
	}
	return visit{u, server}, nil
}

// end ends a call with its error.
func (v visit) end(ctx context.Context, err error) {
	if v.unwell == nil {
		return
	}
	hasAnswered := err == nil || errorText(err) != "" || ctx.Err() != nil
	v.unwell.end(v.server, hasAnswered)
}

func (u *unwell) begin(server *redis.Client) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.servers[server]
	if a == nil {
		a = &attendance{}
		u.servers[server] = a
	}
	if !a.outAt.IsZero() && (a.calls > 0 || time.Since(a.outAt) < unwellPause) {
		return false
	}
	a.calls++
	return true
}

func (u *unwell) end(server *redis.Client, hasAnswered bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.servers[server]
	a.calls--
	if a.outAt = (time.Time{}); !hasAnswered {
		a.outAt = time.Now()
	}
	if a.calls == 0 && hasAnswered {
		delete(u.servers, server)
	}
}
