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

// String returns the canonical lower-case form, 8-4-4-4-12.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	hex.Encode(b[9:13], u[4:6])
	hex.Encode(b[14:18], u[6:8])
	hex.Encode(b[19:23], u[8:10])
	hex.Encode(b[24:36], u[10:16])
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}
