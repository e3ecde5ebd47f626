package saskeys

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/test/filetest"
)

const someKeys = `
RootManageSharedAccessKey:
  primaryKey: c2VjcmV0
  secondaryKey: b3RoZXI=
  claims: [Send, Listen, Manage]
news-reader:
  primaryKey: "12345"
  claims: [Listen]
  entity: a/news
`

func TestAUTH_5_KeysFromAFile(t *testing.T) {
	t.Parallel()
	got, err := read(filetest.Write(t, someKeys))
	want := access.Keys{
		"RootManageSharedAccessKey": {Primary: "c2VjcmV0", Secondary: "b3RoZXI=", Claims: access.Send | access.Listen | access.Manage},
		"news-reader":               {Primary: "12345", Claims: access.Listen, Entity: "a/news"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
}

func TestAUTH_5_BadKeysAreErrorsThatNameTheirPlace(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                 "has no rules",
		"- a\n":                            ":1: must be a mapping of rules",
		"a: b\n":                           ":1: a must be a mapping",
		"a:\n  primary: s3cret\n":          `:2: unknown key "a.primary"; keys are primaryKey`,
		"a:\n  primaryKey: [s3cret]\n":     ":2: a.primaryKey must have one plain value",
		"a:\n  claims: [Send]\n":           ":1: a must have a primary key",
		"a:\n  primaryKey: s3cret\n":       ":1: a must have at least one of the claims",
		"a:\n  claims: Send\n":             ":2: a.claims must be a list",
		"a:\n  claims: [Send,\n   Sent]\n": `:3: a.claims[1] is "Sent", must be Send`,
		"a:\n  claims: [[Send]]\n":         ":2: a.claims[0] must have one plain value",
		"a:\n  {primaryKey: s3cret, claims: [Manage]}\n":           ":1: a has the claim Manage",
		"a:\n  {primaryKey: s3cret, claims: [Send], entity: x*}\n": ":1: a has an invalid entity",
		"a: {}\na: {}\n": `:2: key "a" stands already at`,
		"a: {\n":         ": line 1",
	} {
		if _, err := read(filetest.Write(t, text)); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if _, err := Open(filepath.Join(t.TempDir(), "none"), nil); err == nil || !strings.Contains(err.Error(), "--sas-keys-file") {
		t.Errorf("no file: got %v", err)
	}
	if keys, err := Open("", nil); keys != nil || err != nil {
		t.Errorf("without the flag: got %v", err)
	}
}

// A key that is replaced in the file voids its tokens soon; a file that is broken meanwhile changes nothing.
func TestAUTH_5_TheFileIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := filetest.Write(t, someKeys)
		current, err := Open(path, slog.New(slog.NewTextHandler(&log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		replace := func(text string, at time.Time) { t.Helper(); filetest.Replace(t, path, text, at) }
		if len(current()) != 2 {
			t.Errorf("got %v", current())
		}
		replace("new: {primaryKey: x, claims: [Send]}\n", time.Unix(1, 0))
		if got := current(); len(got) != 1 || got["new"].Primary != "x" {
			t.Errorf("after a change: got %v", got)
		}
		replace("new: {primaryKey: y, claims: [Send]}\n", time.Unix(2, 0)) // of the same size
		if got := current(); got["new"].Primary != "y" {
			t.Errorf("after another change: got %v", got)
		}
		replace("broken", time.Unix(3, 0))
		for range 3 {
			if got := current(); got["new"].Primary != "y" {
				t.Errorf("with a broken file: got %v", got)
			}
			<-time.After(filetest.LookPause)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		<-time.After(filetest.LookPause)
		if got := current(); got["new"].Primary != "y" {
			t.Errorf("without a file: got %v", got)
		}
		if n := strings.Count(log.String(), "was read again"); n != 2 {
			t.Errorf("%d readings are logged:\n%s", n, &log)
		}
		if n := strings.Count(log.String(), "cannot be read"); n != 2 {
			t.Errorf("%d failures are logged:\n%s", n, &log)
		}
	})
}
