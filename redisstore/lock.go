package redisstore

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// A lock is kept in Redis as "<position>:<nonce>" and handed out as a UUID that also carries the size, so that a settle
// needs only the token: the nonce is that of one script, position and size are the id of the message in the log. All
// three come back from a client, so scripts use them only to find the lock. The nonce is hidden under a digest of the
// other two: a token with any bit altered has a nonce that was never used, so it matches no lock, not even that of
// another message of the same receive. The UUID is of version 8, the one for private layouts:
//
//	42 bits hidden nonce | upper 18 bits of size | version  (60 bits + 4)
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
	sessionDigits = 16 // of a position in the keys of sessions: 2^53 has as many
	versionNibble = 0x8
	variantBits   = 0b10
)

// newNonce returns a random number that distinguishes the locks of one receive from all others.
func newNonce() uint64 { return rand.Uint64N(1 << nonceBits) } //nolint:gosec // fencing, not secrecy

func (l lock) token() semantics.LockToken {
	size, position := uint64(l.size), uint64(l.position) //nolint:gosec // both are positive
	upper := (l.nonce^l.digest())<<sizeHighBits | size>>sizeLowBits
	high := upper>>12<<16 | versionNibble<<12 | upper&0xfff
	low := uint64(variantBits)<<62 | size&(1<<sizeLowBits-1)<<positionBits | position
	var t semantics.LockToken
	binary.BigEndian.PutUint64(t[:8], high)
	binary.BigEndian.PutUint64(t[8:], low)
	return t
}

// lockOf parses a token. ok is false for a UUID that this package did not create.
func lockOf(t semantics.LockToken) (l lock, ok bool) {
	high, low := binary.BigEndian.Uint64(t[:8]), binary.BigEndian.Uint64(t[8:])
	if high>>12&0xf != versionNibble || low>>62 != variantBits {
		return lock{}, false
	}
	upper := high>>16<<12 | high&0xfff
	size := upper&(1<<sizeHighBits-1)<<sizeLowBits | low>>positionBits&(1<<sizeLowBits-1)
	l = lock{
		position: int64(low & (1<<positionBits - 1)), //nolint:gosec // 53 bits
		size:     int64(size),                        //nolint:gosec // 27 bits
	}
	l.nonce = upper>>sizeHighBits ^ l.digest()
	return l, true
}

// digest returns 42 bits into which those of position and size are mixed, by the last steps of MurmurHash3.
func (l lock) digest() uint64 {
	x := uint64(l.position)<<11 ^ uint64(l.size)*0x9e3779b97f4a7c15 //nolint:gosec // both are positive
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return (x ^ x>>33) >> (64 - nonceBits)
}

// text returns the form under which the lock is kept.
func (l lock) text() string {
	return strconv.FormatInt(l.position, 10) + ":" + strconv.FormatUint(l.nonce, 10)
}

// sessionText returns the form under which the lock of a message of a session is kept, behind the session.
func (l lock) sessionText() string {
	position := strconv.FormatInt(l.position, 10)
	return strings.Repeat("0", sessionDigits-len(position)) + position + ":" + strconv.FormatUint(l.nonce, 10)
}

// id returns the id of the message's entry in the log.
func (l lock) id() string {
	return strconv.FormatInt(l.position, 10) + "-" + strconv.FormatInt(l.size, 10)
}

// foreignLock stands for a token that this package did not create. It never matches a lock.
const foreignLock = "0:0"

func lockText(t semantics.LockToken) string {
	if l, ok := lockOf(t); ok {
		return l.text()
	}
	return foreignLock
}
