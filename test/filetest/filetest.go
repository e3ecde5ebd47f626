// Package filetest writes files of settings for tests.
package filetest

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// LookPause is how long a file that is read again may be known as it was, in the time of the test.
const LookPause = 2 * time.Second // of reread

// Write writes a file that ends with the test, and returns its path.
func Write(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Replace writes another text into a file that is read again, as if at an instant, and waits until its reader looks at
// the file.
func Replace(t testing.TB, path, text string, at time.Time) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, at, at); err != nil {
		t.Fatal(err)
	}
	<-time.After(LookPause)
}
