package powerloss

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// What was synced is there after a cut, what was only written is not.
func TestDiskForgetsWhatWasNotSynced(t *testing.T) {
	t.Parallel()
	d := mount(t, 0)
	d.append(t, "aof/kept", "synced", (*os.File).Sync)
	d.append(t, "aof/kept", ", not synced", nil)
	d.append(t, "new", "not synced", nil)
	d.has(t, "aof/kept", "synced, not synced")
	d.cutPower()
	d.restorePower(t)
	d.has(t, "aof/kept", "synced")
	if _, err := os.Stat(filepath.Join(d.at, "new")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file whose name was not synced is there: %v", err)
	}
}

// A name is durable after any sync; what is in the file only after its own.
func TestDiskForgetsNames(t *testing.T) {
	t.Parallel()
	d := mount(t, 0)
	replace := func() {
		d.append(t, "new", "second", nil)
		if err := os.Rename(filepath.Join(d.at, "new"), filepath.Join(d.at, "a")); err != nil {
			t.Fatal(err)
		}
		d.has(t, "a", "second")
	}
	d.append(t, "a", "first", nil)
	d.syncAll()
	replace()
	d.cutPower()
	d.restorePower(t)
	d.has(t, "a", "first")

	replace()
	d.sync(t, "")
	d.cutPower()
	d.restorePower(t)
	d.has(t, "a", "")
}

// What was cut off and written over is as it was synced.
func TestDiskForgetsTruncation(t *testing.T) {
	t.Parallel()
	d := mount(t, 0)
	change := func(f *os.File) error {
		_, err := f.WriteAt([]byte("x"), 1)
		return errors.Join(err, f.Truncate(4))
	}
	d.append(t, "a", "0123456789", (*os.File).Sync)
	d.append(t, "a", "", change)
	d.has(t, "a", "0x23")
	d.cutPower()
	d.restorePower(t)
	d.has(t, "a", "0123456789")
	d.append(t, "a", "", change)
	d.sync(t, "a")
	d.cutPower()
	d.restorePower(t)
	d.has(t, "a", "0x23")
}

// A sync that is under way when the power is cut fails, and makes nothing durable.
func TestDiskForgetsWhatIsBeingSynced(t *testing.T) {
	t.Parallel()
	d := mount(t, time.Hour)
	failed := make(chan error, 1)
	d.append(t, "a", "not synced", nil)
	f, err := os.Open(filepath.Join(d.at, "a"))
	if err != nil {
		t.Fatal(err)
	}
	go func() { failed <- f.Sync() }()
	d.cutPower()
	if err := <-failed; !errors.Is(err, syscall.EIO) {
		t.Errorf("the sync returned %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	d.restorePower(t)
	if _, err := os.Stat(filepath.Join(d.at, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file whose sync failed is there: %v", err)
	}
}

// append opens a file, writes at its end, and does something with it.
func (d *disk) append(t *testing.T, name, text string, then func(*os.File) error) {
	t.Helper()
	at := filepath.Join(d.at, name)
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(at, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Seek(0, 2)
	if text != "" {
		_, failed := f.WriteString(text)
		err = errors.Join(err, failed)
	}
	if then != nil {
		err = errors.Join(err, then(f))
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// sync syncs a file or folder.
func (d *disk) sync(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(filepath.Join(d.at, name))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		t.Fatal(err)
	}
}

func (d *disk) has(t *testing.T, name, want string) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(d.at, name))
	if err != nil || string(got) != want {
		t.Errorf("%s has %q, want %q (%v)", name, got, want, err)
	}
}
