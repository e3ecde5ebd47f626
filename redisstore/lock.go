package redisstore

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// A lock is kept in Redis as "<position>:<nonce>" and handed out as a UUID that also carries the size, so that a settle
// needs nothing but the token: the nonce makes each delivery's token its own, position and size are the id of the
// message in the log. A token with a wrong size names an entry that is not there. The UUID is of version 8, the one
// for private layouts:
//
//	42 bits nonce | upper 18 bits of size | version  (60 bits + 4)
//	variant | lower 9 bits of size | 53 bits position (2 bits + 62)
type lock struct {
	position int64  // place in the source's log, below 2^53
	size     int64  // bytes the message counts for, below 2^27
	nonce    uint64 // below 2^42
}

const (
	nonceBits     = 42
	sizeLowBits   = 9
	sizeHighBits  = 18
	positionBits  = 53
	versionNibble = 0x8
	variantBits   = 0b10
)

// newNonce makes the number that keeps the locks of one receive apart from all others.
func newNonce() uint64 { return rand.Uint64N(1 << nonceBits) } //nolint:gosec // fencing, not secrecy

func (l lock) token() semantics.LockToken {
	size, position := uint64(l.size), uint64(l.position) //nolint:gosec // both are positive
	upper := l.nonce<<sizeHighBits | size>>sizeLowBits
	high := upper>>12<<16 | versionNibble<<12 | upper&0xfff
	low := uint64(variantBits)<<62 | size&(1<<sizeLowBits-1)<<positionBits | position
	var t semantics.LockToken
	binary.BigEndian.PutUint64(t[:8], high)
	binary.BigEndian.PutUint64(t[8:], low)
	return t
}

// lockOf takes a token apart. ok is false for a UUID that this package did not make.
func lockOf(t semantics.LockToken) (l lock, ok bool) {
	high, low := binary.BigEndian.Uint64(t[:8]), binary.BigEndian.Uint64(t[8:])
	if high>>12&0xf != versionNibble || low>>62 != variantBits {
		return lock{}, false
	}
	upper := high>>16<<12 | high&0xfff
	size := upper&(1<<sizeHighBits-1)<<sizeLowBits | low>>positionBits&(1<<sizeLowBits-1)
	return lock{
		position: int64(low & (1<<positionBits - 1)), //nolint:gosec // 53 bits
		size:     int64(size),                        //nolint:gosec // 27 bits
		nonce:    upper >> sizeHighBits,
	}, true
}

// text gives the form under which the lock is kept.
func (l lock) text() string {
	return strconv.FormatInt(l.position, 10) + ":" + strconv.FormatUint(l.nonce, 10)
}

// id gives the id of the message's entry in the log.
func (l lock) id() string {
	return strconv.FormatInt(l.position, 10) + "-" + strconv.FormatInt(l.size, 10)
}

// foreignLock stands for a token that this package did not make. No lock is ever kept under it.
const foreignLock = "0:0"

func lockText(t semantics.LockToken) string {
	if l, ok := lockOf(t); ok {
		return l.text()
	}
	return foreignLock
}
