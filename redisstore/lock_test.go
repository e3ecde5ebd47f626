package redisstore

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
)

// A token carries the lock's three numbers through any values they can have, and is a UUID of version 8.
func TestLOCK_2_TokenCarriesItsLock(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := lock{
			position: rapid.Int64Range(1, 1<<positionBits-1).Draw(t, "position"),
			size:     rapid.Int64Range(0, semantics.MaxMessageSize+semantics.MaxHeaderSize).Draw(t, "size"),
			nonce:    rapid.Uint64Range(0, 1<<nonceBits-1).Draw(t, "nonce"),
		}
		token := want.token()
		got, ok := lockOf(token)
		if !ok || got != want {
			t.Fatalf("got %+v %v, want %+v", got, ok, want)
		}
		if token[6]>>4 != 8 || token[8]>>6 != 2 {
			t.Fatalf("%s is no version 8 UUID", token)
		}
		parsed, err := semantics.ParseLockToken(token.String())
		if err != nil || parsed != token {
			t.Fatalf("parsed %s, %v", parsed, err)
		}
	})
}

// A UUID that Sidebus did not make never finds a lock, whatever its bits.
func TestLOCK_2_ForeignTokenFindsNoLock(t *testing.T) {
	t.Parallel()
	for range 1000 {
		token := semantics.LockToken(semantics.NewRandomUUID()) // version 4
		if got := lockText(token); got != foreignLock {
			t.Fatalf("%s became lock %s", token, got)
		}
	}
}
