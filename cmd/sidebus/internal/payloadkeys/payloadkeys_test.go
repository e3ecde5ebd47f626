package payloadkeys

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/sealed"
	"github.com/sidebus/sidebus/test/filetest"
)

const (
	zeros = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" // 32 bytes
	ones  = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	short = "c2VjcmV0LXRoYXQtaXMtMzEtYnl0ZXMtbG9uZy4uLg==" // 31 bytes
)

// sealedWith returns a text that is sealed with a key of one byte again and again.
func sealedWith(t *testing.T, name string, fill byte) []byte {
	t.Helper()
	key, err := sealed.NewKey(name, bytes.Repeat([]byte{fill}, sealed.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	keys, err := sealed.NewKeys(name, key)
	if err != nil {
		t.Fatal(err)
	}
	return keys.Seal(nil, []byte("text"), nil)
}

// opens reports whether keys open what is sealed with a key.
func opens(t *testing.T, keys *sealed.Keys, name string, fill byte) bool {
	t.Helper()
	got, err := keys.Open(nil, sealedWith(t, name, fill), nil)
	return err == nil && string(got) == "text"
}

// A key that the file declares lost is not missing: what needs it does not wait for it.
func TestCRYPT_4_LostKeysFromAFile(t *testing.T) {
	t.Parallel()
	keys, err := Read(filetest.Write(t, "sealWith: a\nkeys: {a: "+zeros+"}\nlost: [b, \"2026\"]\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"b", "2026"} {
		if _, err := keys.Open(nil, sealedWith(t, name, 2), nil); !errors.Is(err, sealed.ErrLost) {
			t.Errorf("%s: %v, want ErrLost", name, err)
		}
	}
	if _, err := keys.Open(nil, sealedWith(t, "c", 2), nil); semantics.CodeOf(err) != semantics.PayloadKeyMissing {
		t.Errorf("c: %v, want PAYLOAD_KEY_MISSING", err)
	}
}

func TestCRYPT_3_KeysFromAFile(t *testing.T) {
	t.Parallel()
	for text, seals := range map[string]bool{
		"sealWith: \"2026-11\"\nkeys:\n  2026-05: " + zeros + "\n  2026-11: " + ones + "\n": true,
		"keys: {2026-05: " + zeros + ", 2026-11: " + ones + "}\nsealWith: 2026-11\n":        true,
		"sealWith: none\nkeys: {2026-05: " + zeros + ", 2026-11: " + ones + "}\n":           false,
	} {
		keys, err := Read(filetest.Write(t, text))
		if err != nil || !opens(t, keys, "2026-05", 0) || !opens(t, keys, "2026-11", 1) || opens(t, keys, "2026-11", 2) || keys.Seals() != seals {
			t.Errorf("%q: %+v, %v", text, keys, err)
			continue
		}
		if seals && !strings.Contains(string(keys.Seal(nil, nil, nil)), "2026-11") {
			t.Errorf("%q: another key seals", text)
		}
	}
}

// A file that is not right is an error that names its place, and never a key.
func TestCRYPT_7_BadFilesAreErrorsThatNameTheirPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                       "has no keys",
		"- a\n":                                  ":1: must be a mapping of sealWith, keys and lost",
		"keys: {a: " + zeros + "}\n":             "must have sealWith",
		"sealWith: a\n":                          `:1: sealWith is "a", which is not one of the keys`,
		"sealWith: b\nkeys: {a: " + zeros + "}":  `:1: sealWith is "b", which is not one of the keys`,
		"sealWith: [a]\nkeys: {}\n":              ":1: sealWith must have one plain value",
		"seal: a\n":                              `:1: unknown key "seal"; keys are sealWith, keys, lost`,
		"keys:\n  a: " + short + "\n":            ":2: keys.a has 31 bytes, must have 32",
		"keys:\n  a: s3cret!\n":                  ":2: keys.a is not base64; create a key with: openssl rand -base64 32",
		"keys:\n  a: [s3cret]\n":                 ":2: keys.a must have one plain value",
		"keys:\n  none: " + zeros + "\n":         ":2: keys.none cannot be the name of a key",
		"keys:\n  a b: " + zeros + "\n":          ":2: keys.a b must have a name of 1 to 64 letters",
		"keys: {a: " + zeros + ", a: " + zeros:   "line 1",
		"keys:\n  a: " + zeros + "\n  a: x\n":    `:3: key "keys.a" stands already at`,
		"sealWith: a\nkeys: [" + zeros + "]\n":   ":2: keys must be a mapping of keys by their names",
		"sealWith: a\nsealWith: a\nkeys: s3cret": ":2:",
		"sealWith: none\nlost: a\n":              ":2: lost must be a list of names of keys",
		"sealWith: none\nlost: [[a]]\n":          ":2: lost[0] must have one plain value",
		"sealWith: a\nkeys: {a: " + zeros + "}\nlost: [a, b: c]\n": ":3: lost[1] must have one plain value",
	} {
		_, err := Read(filetest.Write(t, text))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") || strings.Contains(err.Error(), zeros) {
			t.Errorf("%q: got %v, want %q and no key", text, err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.Contains(err.Error(), "--payload-keys-file") {
		t.Errorf("no file: got %v", err)
	}
	if keys, err := Open("", nil); keys != nil || err != nil {
		t.Errorf("without the flag: got %v", err)
	}
}

func TestCRYPT_7_AFileThatOthersCanReadIsWarnedOf(t *testing.T) {
	t.Parallel()
	for mode, warns := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true} {
		var log bytes.Buffer
		path := filetest.Write(t, "sealWith: a\nkeys: {a: "+zeros+"}\n")
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(path, slog.New(slog.NewTextHandler(&log, nil))); err != nil {
			t.Fatal(err)
		}
		if got := strings.Count(log.String(), "every user of this machine can read the payload keys") == 1; got != warns || strings.Contains(log.String(), zeros) {
			t.Errorf("%#o: %s", mode, &log)
		}
	}
}

// A key that is added to the file is soon there; a file that is broken meanwhile takes none away.
func TestCRYPT_3_TheFileIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := filetest.Write(t, "sealWith: a\nkeys: {a: "+zeros+"}\n")
		current, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		replace := func(text string, at time.Time) { t.Helper(); filetest.Replace(t, path, text, at) }
		replace("sealWith: b\nkeys: {a: "+zeros+", b: "+ones+"}\n", time.Unix(1, 0))
		if keys := current(); !opens(t, keys, "a", 0) || !opens(t, keys, "b", 1) {
			t.Errorf("after a change: %+v", keys)
		}
		replace("sealWith: b\nkeys: {a: "+zeros+"}\n", time.Unix(2, 0))
		if keys := current(); !opens(t, keys, "b", 1) || !keys.Seals() {
			t.Errorf("with a broken file: %+v", keys)
		}
		replace("sealWith: none\nkeys: {a: "+zeros+"}\n", time.Unix(3, 0))
		if keys := current(); !opens(t, keys, "a", 0) || keys.Seals() {
			t.Errorf("with sealWith none: %+v", keys)
		}
		for _, line := range []string{
			`in Redis" key=a`, `in Redis" key=b`, "the file of payload keys cannot be read again", "are not encrypted in Redis any more",
		} {
			if strings.Count(log.String(), line) != 1 || strings.Contains(log.String(), zeros) {
				t.Errorf("log: %s; want %s once", &log, line)
			}
		}
	})
}
