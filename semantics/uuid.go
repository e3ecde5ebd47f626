package semantics

import (
	"crypto/rand"
	"encoding/hex"
)

// UUID is a UUID of any version.
type UUID [16]byte

// NewRandomUUID makes a random UUID, version 4.
func NewRandomUUID() UUID {
	var random [16]byte
	rand.Read(random[:]) //nolint:errcheck // crypto/rand.Read never fails since Go 1.24
	return UUIDFrom(random)
}

// UUIDFrom makes a UUID of random bytes, version 4.
func UUIDFrom(random [16]byte) UUID {
	u := UUID(random)
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	return u
}

// UUIDTextLength is the length of the canonical form.
const UUIDTextLength = 36

// String returns the canonical lower-case form, 8-4-4-4-12.
func (u UUID) String() string {
	var b [UUIDTextLength]byte
	return string(u.Append(b[:0]))
}

// Append adds the canonical form to b.
func (u UUID) Append(b []byte) []byte {
	b = append(hex.AppendEncode(b, u[0:4]), '-')
	b = append(hex.AppendEncode(b, u[4:6]), '-')
	b = append(hex.AppendEncode(b, u[6:8]), '-')
	b = append(hex.AppendEncode(b, u[8:10]), '-')
	return hex.AppendEncode(b, u[10:16])
}
