package reread

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A list is a file that names other files; its value is what they have.
func list(path string) func(string) (string, []string, error) {
	return func(string) (string, []string, error) {
		files := []string{path}
		names, err := os.ReadFile(path)
		value := ""
		for name := range strings.FieldsSeq(string(names)) {
			file := filepath.Join(filepath.Dir(path), name)
			files = append(files, file)
			text, failed := os.ReadFile(file)
			if failed != nil {
				return "", files, failed
			}
			value += string(text)
		}
		return value, files, err
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Now(), time.Now()); err != nil { // the clock of the test
		t.Fatal(err)
	}
}

func TestWhatChangesIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		folder := t.TempDir()
		path := filepath.Join(folder, "list")
		write(t, path, "a")
		write(t, filepath.Join(folder, "a"), "1")
		reads := 0
		current, err := Open("the list", slog.New(slog.NewTextHandler(&log, nil)), func(before string) (string, []string, error) {
			reads++
			return list(path)(before)
		})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what, want string, warnings int) {
			t.Helper()
			<-time.After(pause)
			if got := current(); got != want {
				t.Errorf("%s: got %q, want %q", what, got, want)
			}
			if got := strings.Count(log.String(), "cannot be read again"); got != warnings {
				t.Errorf("%s: %d warnings, want %d:\n%s", what, got, warnings, &log)
			}
		}
		check("at first", "1", 0)
		before := reads
		check("unchanged", "1", 0)
		if reads != before {
			t.Errorf("unchanged files were read %d times", reads-before)
		}
		write(t, path, "a b")
		check("a file that is missing", "1", 1)
		check("still missing", "1", 1)
		write(t, filepath.Join(folder, "b"), "2")
		check("the missing file", "12", 1)
		write(t, filepath.Join(folder, "b"), "3")
		check("a file that is new in the list", "13", 1)
	})
}

// A volume of Kubernetes is a link to a folder, which is replaced by one with other files.
func TestALinkThatIsReplacedIsReadAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		at := time.Now()
		for name, text := range map[string]string{"one": "1", "two": "2"} {
			if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
				t.Fatal(err)
			}
			for _, file := range []string{"list", "a"} {
				content := map[string]string{"list": "a", "a": text}[file]
				write(t, filepath.Join(folder, name, file), content)
				if err := os.Chtimes(filepath.Join(folder, name, file), at, at); err != nil {
					t.Fatal(err)
				}
			}
		}
		link := func(to string) {
			t.Helper()
			if err := os.Symlink(to, filepath.Join(folder, "..data_tmp")); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")); err != nil {
				t.Fatal(err)
			}
		}
		link("one")
		current, err := Open("the list", slog.New(slog.DiscardHandler), list(filepath.Join(folder, "..data", "list")))
		if err != nil {
			t.Fatal(err)
		}
		link("two") // files of the same size and time
		<-time.After(pause)
		if got := current(); got != "2" {
			t.Errorf("got %q, want 2", got)
		}
	})
}

// What changes while it is read is read again, although it looks as it did after that.
func TestAChangeWhileReadingIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "list")
		write(t, path, "old")
		change := func() {}
		current, err := Open("the list", slog.New(slog.DiscardHandler), func(string) (string, []string, error) {
			text, err := os.ReadFile(path)
			change()
			return string(text), []string{path}, err
		})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(pause)
		change = func() { write(t, path, "newest") }
		write(t, path, "new")
		if got := current(); got != "new" {
			t.Errorf("got %q", got)
		}
		change = func() {}
		<-time.After(pause)
		if got := current(); got != "newest" {
			t.Errorf("got %q, want the newest", got)
		}
	})
}
