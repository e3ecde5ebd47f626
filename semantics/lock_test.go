package semantics_test

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

func TestLOCK_2_ParseLockToken(t *testing.T) {
	t.Parallel()
	const canonical = "0123abcd-4567-89ab-cdef-0123456789ab"
	for _, text := range []string{canonical, "0123ABCD-4567-89AB-CDEF-0123456789AB"} {
		token, err := semantics.ParseLockToken(text)
		if err != nil || token.String() != canonical {
			t.Errorf("ParseLockToken(%q) = %s, %v", text, token, err)
		}
	}
	bad := []string{
		"x", canonical[1:], canonical + "0", "0123abcd+4567-89ab-cdef-0123456789ab", "0123abcg-4567-89ab-cdef-0123456789ab",
		"{" + canonical + "}", "0123abcd45-67-89ab-cdef-0123456789ab", " 123abcd-4567-89ab-cdef-0123456789ab",
		"0123abcd456789abcdef0123456789ab", "----------------------------------------"[:36],
	}
	for _, text := range bad {
		_, err := semantics.ParseLockToken(text)
		wantCode(t, text, err, semantics.InvalidArgument)
	}
}

func TestSETTLE_13_EmptyTokenIsInvalidOperation(t *testing.T) {
	t.Parallel()
	_, err := semantics.ParseLockToken("")
	wantCode(t, "empty token", err, semantics.InvalidOperation)
}

func TestNewLockToken(t *testing.T) {
	t.Parallel()
	seen := map[semantics.LockToken]bool{{}: true}
	for range 1000 {
		u := semantics.NewLockToken()
		if u.IsZero() || seen[u] || u[6]>>4 != 8 || u[8]>>6 != 2 {
			t.Fatalf("%s is zero, repeated, or no version 8 UUID", u)
		}
		seen[u] = true
		if parsed, err := semantics.ParseLockToken(u.String()); err != nil || parsed != u {
			t.Fatalf("%s parses as %s, %v", u, parsed, err)
		}
	}
}
