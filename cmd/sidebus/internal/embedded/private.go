//go:build unix

package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

const (
	lockName  = "sidecar.lock"
	filesName = "appendonlydir" // of the server's append-only files
	forOthers = fs.FileMode(0o077)
)

// closeDir makes a directory that only this user can read, or closes one that is there, with the server's files in it.
// One that holds something else as well may be meant for others: it is refused if they can read it.
func closeDir(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if info.Mode()&forOthers != 0 {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return err
		}
		isOwn := func(e fs.DirEntry) bool { return e.Name() == lockName || e.Name() == filesName }
		isOurs := len(entries) == 0 || slices.ContainsFunc(entries, isOwn)
		if isOurs {
			err = os.Chmod(dir, info.Mode().Perm()&^forOthers)
		}
		if !isOurs || err != nil {
			return errors.Join(fmt.Errorf("%s is open to other users (mode %04o) and cannot be closed to them here; "+
				"set its mode to 0700, or name a directory below it, which Sidebus creates", dir, info.Mode().Perm()), err)
		}
	}
	return closeFiles(filepath.Join(dir, filesName))
}

// closeFiles takes the rights of others from the server's files, which versions before left open.
func closeFiles(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { _ = root.Close() }()
	return fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || info.Mode()&fs.ModeSymlink != 0 || info.Mode()&forOthers == 0 {
			return ignoreMissing(err)
		}
		return ignoreMissing(root.Chmod(path, info.Mode().Perm()&^forOthers))
	})
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// starting keeps starts apart, since the umask is the whole process's.
var starting sync.Mutex

// privately runs a start with a umask that a child inherits: what the child makes is for this user alone.
func privately(start func() error) error {
	starting.Lock()
	defer starting.Unlock()
	before := syscall.Umask(int(forOthers))
	defer syscall.Umask(before)
	return start()
}
