package redisstore

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// A lock is kept in Redis as "<position>:<size>:<nonce>" and handed out as a UUID that carries the same three numbers, so
// that a settle needs nothing but the token: the position finds the message, the size frees its bytes, the nonce
// makes each delivery's token its own. The UUID is of version 8, the one for private layouts:
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

// lockText gives the form under which the lock behind a token is kept. A UUID that this package did not make gives a
// text under which no lock is ever kept.
func lockText(t semantics.LockToken) string {
	high, low := binary.BigEndian.Uint64(t[:8]), binary.BigEndian.Uint64(t[8:])
	if high>>12&0xf != versionNibble || low>>62 != variantBits {
		return "foreign"
	}
	upper := high>>16<<12 | high&0xfff
	size := upper&(1<<sizeHighBits-1)<<sizeLowBits | low>>positionBits&(1<<sizeLowBits-1)
	var b strings.Builder
	b.WriteString(strconv.FormatUint(low&(1<<positionBits-1), 10))
	b.WriteByte(':')
	b.WriteString(strconv.FormatUint(size, 10))
	b.WriteByte(':')
	b.WriteString(strconv.FormatUint(upper>>sizeHighBits, 10))
	return b.String()
}
