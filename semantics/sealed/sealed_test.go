package sealed_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/sealed"
)

func keysOf(t testing.TB, seals string, all map[string]byte) *sealed.Keys {
	t.Helper()
	var keys []*sealed.Key
	for name, fill := range all {
		key, err := sealed.NewKey(name, bytes.Repeat([]byte{fill}, sealed.KeySize))
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	made, err := sealed.NewKeys(seals, keys...)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// The test vectors of https://c2sp.org/XAES-256-GCM.
func TestCRYPT_2_TestVectorsOfXAES(t *testing.T) {
	t.Parallel()
	for _, v := range []struct {
		fill          byte
		context, want string
	}{
		{1, "", "ce546ef63c9cc60765923609b33a9a1974e96e52daf2fcf7075e2271"},
		{3, "c2sp.org/XAES-256-GCM", "986ec1832593df5443a179437fd083bf3fdb41abd740a21f71eb769d"},
	} {
		keys := keysOf(t, "k", map[string]byte{"k": v.fill})
		text, err := sealed.SealWith(keys, []byte("ABCDEFGHIJKLMNOPQRSTUVWX"), []byte("XAES-256-GCM"), []byte(v.context))
		if got := hex.EncodeToString(text); err != nil || got != v.want {
			t.Errorf("key %d: %s, %v; want %s", v.fill, got, err, v.want)
		}
	}
}

// A text comes back as it was; one byte changed anywhere, in it or in its context, and nothing does.
func TestCRYPT_2_WhatWasChangedIsNotOpened(t *testing.T) {
	t.Parallel()
	keys := keysOf(t, "new", map[string]byte{"old": 1, "new": 2})
	rapid.Check(t, func(rt *rapid.T) {
		text, context := rapid.SliceOf(rapid.Byte()).Draw(rt, "text"), rapid.SliceOf(rapid.Byte()).Draw(rt, "context")
		stored := keys.Seal([]byte("before"), text, context)[len("before"):]
		if len(stored) != len(text)+keys.Overhead() {
			rt.Fatalf("%d bytes became %d", len(text), len(stored))
		}
		if name, length, err := sealed.NameOf(stored); name != "new" || length != len(text) || err != nil {
			rt.Fatalf("NameOf = %q, %d, %v", name, length, err)
		}
		got, err := keys.Open([]byte("before"), stored, context)
		if err != nil || string(got) != "before"+string(text) {
			rt.Fatalf("got %q, %v; want %q", got, err, text)
		}
		both := append(bytes.Clone(context), stored...)
		both[rapid.IntRange(0, len(both)-1).Draw(rt, "at")] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		got, err = keys.Open(nil, both[len(context):], both[:len(context)])
		if got != nil || !errors.Is(err, sealed.ErrChanged) && semantics.CodeOf(err) != semantics.PayloadKeyMissing {
			rt.Fatalf("changed: %q, %v", got, err)
		}
		if got, err = keys.Open(nil, stored[:rapid.IntRange(0, len(stored)-1).Draw(rt, "length")], context); got != nil || err == nil {
			rt.Fatalf("cut: %q, %v", got, err)
		}
	})
}

func TestCRYPT_2_TheSameTextIsNeverSealedTheSame(t *testing.T) {
	t.Parallel()
	keys, seen := keysOf(t, "k", map[string]byte{"k": 1}), map[string]bool{}
	for range 1000 {
		seen[string(keys.Seal(nil, []byte("body"), nil))] = true
	}
	if len(seen) != 1000 {
		t.Errorf("1000 times the same text became %d", len(seen))
	}
}

// Whatever key seals, a sidecar that has it under its name opens; one that does not names it.
func TestCRYPT_3_AnyOfTheKeysOpens(t *testing.T) {
	t.Parallel()
	stored := keysOf(t, "old", map[string]byte{"old": 1}).Seal(nil, []byte("body"), nil)
	for name, c := range map[string]struct {
		keys *sealed.Keys
		want string // of the error
	}{
		"only opens":     {keysOf(t, "", map[string]byte{"old": 1}), ""},
		"rotated":        {keysOf(t, "new", map[string]byte{"old": 1, "new": 2}), ""},
		"no keys":        {nil, `"old"; this sidecar has no payload keys`},
		"another key":    {keysOf(t, "new", map[string]byte{"new": 2}), `"old"; this sidecar does not have it`},
		"renamed":        {keysOf(t, "new", map[string]byte{"old": 2, "older": 1, "new": 3}), ""},
		"another secret": {keysOf(t, "old", map[string]byte{"old": 2}), `"old"; the key that has this name here is another one`},
	} {
		got, err := c.keys.Open(nil, stored, nil)
		switch {
		case c.want == "" && (err != nil || string(got) != "body"):
			t.Errorf("%s: %q, %v", name, got, err)
		case c.want != "" && (semantics.CodeOf(err) != semantics.PayloadKeyMissing || !strings.Contains(err.Error(), c.want) ||
			semantics.AsError(err).Details[semantics.DetailKey] != "old"):
			t.Errorf("%s: %q, %v; want %s", name, got, err, c.want)
		}
		if c.keys.Lacks(stored) != (c.want != "") {
			t.Errorf("%s: Lacks is %t", name, c.want == "")
		}
	}
	if keysOf(t, "", map[string]byte{"old": 1}).Seals() || (*sealed.Keys)(nil).Seals() {
		t.Error("keys that only open seal")
	}
}

// What needs a lost key is damaged; a key that is there is not lost, whatever the file says.
func TestCRYPT_4_ALostKeyIsNotMissing(t *testing.T) {
	t.Parallel()
	stored := keysOf(t, "old", map[string]byte{"old": 1}).Seal(nil, []byte("body"), nil)
	keys := keysOf(t, "new", map[string]byte{"new": 2, "old": 3}).Losing("old")
	if got, err := keys.Open(nil, stored, nil); !errors.Is(err, sealed.ErrLost) || semantics.CodeOf(err) == semantics.PayloadKeyMissing || keys.Lacks(stored) {
		t.Errorf("%q, %v; want ErrLost", got, err)
	}
	if keys.Lacks([]byte("damaged")) {
		t.Error("what is damaged lacks a key")
	}
	if got, err := keysOf(t, "old", map[string]byte{"old": 1}).Losing("old").Open(nil, stored, nil); err != nil || string(got) != "body" {
		t.Errorf("a key that is there: %q, %v", got, err)
	}
}

func TestCRYPT_7_BadKeys(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"": 32, "-a": 32, "a b": 32, strings.Repeat("a", 65): 32, "short": 31, "long": 33, "none-at-all": 0} {
		if key, err := sealed.NewKey(name, make([]byte, size)); err == nil {
			t.Errorf("%q with %d bytes is %v", name, size, key)
		}
	}
	key, err := sealed.NewKey("a", make([]byte, sealed.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sealed.NewKeys("b", key); err == nil {
		t.Error("a key that is not there seals")
	}
	if _, err := sealed.NewKeys("a", key, key); err == nil {
		t.Error("two keys have one name")
	}
}

func FuzzOpen(f *testing.F) {
	keys := keysOf(f, "k", map[string]byte{"k": 1})
	f.Add(keys.Seal(nil, []byte("body"), nil))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, stored []byte) {
		if got, err := keys.Open(nil, stored, []byte("context")); err == nil {
			t.Errorf("%x opens as %q", stored, got)
		}
	})
}
