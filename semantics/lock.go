package semantics

import (
	"encoding/hex"
	"time"
)

// LockToken names one delivery of one message (LOCK-2). It is a UUID and a fencing token: stores check it inside every
// settle and renew, so a late holder can never act. Tokens compare with ==.
type LockToken UUID

// tokenVersion and tokenVariant are those of the UUID of every token: the version is the one for private layouts. See
// LockToken.Partition.
const tokenVersion, tokenVariant = 0x8, 0b10

// NewLockToken makes a random token.
func NewLockToken() LockToken {
	token := LockToken(NewRandomUUID())
	token[6] = token[6]&0x0f | tokenVersion<<4
	return token
}

// String returns the canonical form of the UUID.
func (t LockToken) String() string { return UUID(t).String() }

// Append adds the canonical form of the UUID to b.
func (t LockToken) Append(b []byte) []byte { return UUID(t).Append(b) }

// IsZero reports whether t is the zero token, which no delivery ever has.
func (t LockToken) IsZero() bool { return t == LockToken{} }

// ParseLockToken reads the canonical form, in any case. The empty text is INVALID_OPERATION, because that is what a
// peeked or receive-and-delete message has for a token (SETTLE-13, RECV-3); anything else that is not a UUID is
// INVALID_ARGUMENT (LOCK-2).
func ParseLockToken(s string) (LockToken, error) {
	var t LockToken
	if s == "" {
		return t, FieldError(
			InvalidOperation, "lockToken",
			"is empty; a message that was peeked or received in RECEIVE_AND_DELETE mode cannot be settled or renewed",
		)
	}
	if len(s) == 36 && s[8] == '-' && s[13] == '-' && s[18] == '-' && s[23] == '-' {
		digits := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
		if _, err := hex.Decode(t[:], []byte(digits)); err == nil {
			return t, nil
		}
	}
	return LockToken{}, InvalidField("lockToken", "must be a UUID in the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx")
}

// Renewal is the outcome of one lock renewal (LOCK-3, LOCK-5).
type Renewal struct {
	Code          Code      // empty when the lock was extended
	LockedUntil   time.Time // the new end of the lock, by the store's clock
	ExpiredInHand bool      // the message is past its ExpiresAt while held (TTL-10)
}
