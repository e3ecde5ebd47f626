package redisstore

import (
	"sync"

	"github.com/redis/go-redis/v9"
)

// unwell knows which servers did not answer the sweeper. Such a server gets one entity at a time until it answers, so
// that the entities of a server that hangs do not hold all places of the sweeper. Any number of callers may use it at
// the same time.
type unwell struct {
	mu      sync.Mutex
	servers map[*redis.Client]*attendance // those that have entities at work, or did not answer
}

// attendance is what the sweeper does with one server.
type attendance struct {
	atWork int  // entities
	isOut  bool // it did not answer the entity that ended last
}

func newUnwell() *unwell { return &unwell{servers: map[*redis.Client]*attendance{}} }

// begin reports whether work on an entity of a server may begin, which end must end then. A server that is not known,
// nil, is always well.
func (u *unwell) begin(server *redis.Client) bool {
	if server == nil {
		return true
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.servers[server]
	if a == nil {
		a = &attendance{}
		u.servers[server] = a
	}
	if a.isOut && a.atWork > 0 {
		return false
	}
	a.atWork++
	return true
}

// end notes that work on an entity of a server ended, and whether the server did not answer.
func (u *unwell) end(server *redis.Client, isOut bool) {
	if server == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	a := u.servers[server]
	a.atWork--
	a.isOut = isOut
	if a.atWork == 0 && !isOut {
		delete(u.servers, server)
	}
}
