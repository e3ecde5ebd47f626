package semantics

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// What an entity remembers of calls with a request id (IDEM-1).
const (
	RequestsKeptFor = 2 * time.Minute
	MaxRequestsKept = 10_000
)

// Once is what a store needs to carry out a send once, however often it is repeated (IDEM-1).
type Once struct {
	RequestID string
	Digest    string // of number, sizes and ids of the messages as the client sent them: a repeat has the same
	Seed      string // what ids of messages without one are made from, so that a repeat can answer them
}

// IDFrom makes the message id at a place of a call. With a random seed it is as random as any (MSG-1).
func IDFrom(seed string, place int) string {
	place64 := uint64(place) //nolint:gosec // a place is not negative
	sum := sha256.Sum256(binary.BigEndian.AppendUint64([]byte(seed), place64))
	return UUIDFrom([16]byte(sum[:16])).String()
}

// Repetition is how a store answers a send that took effect before.
type Repetition struct {
	Seed string // of the first call
}

// OtherMessages is the refusal of a request id that came before with other messages (IDEM-1).
func OtherMessages(path, requestID string) error {
	return InvalidField(
		"requestId",
		"%q was used within %s for other messages to %q: their number, sizes or ids differ; take a new id for a new send",
		requestID, RequestsKeptFor, path,
	).
		With(DetailEntity, path)
}
