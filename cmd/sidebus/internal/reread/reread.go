// Package reread keeps what was read from files, and reads it again when one of them changes.
package reread

import (
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"
)

// pause is how often the files are looked at, so that a change has an effect within a few seconds.
const pause = 2 * time.Second

// Open reads a value and returns a function that returns the value as the files have it now. read gets the value of
// before, and returns the files that it has tried to read, also with an error. Files that cannot be read any more leave
// the value as it was, with a warning that names it as what. The function may be called concurrently; it looks at the
// files at most every few seconds.
func Open[T any](
	what string, logger *slog.Logger, read func(before T) (value T, files []string, err error),
) (current func() T, err error) {
	r := &reader[T]{what: what, logger: logger, read: read, looked: time.Now()}
	if r.value, err = r.load(); err != nil {
		return nil, err
	}
	return r.current, nil
}

// reader has a value and the files from which it was read.
type reader[T any] struct {
	what   string
	logger *slog.Logger
	read   func(before T) (value T, files []string, err error)

	mu     sync.Mutex
	value  T
	files  []string
	looked time.Time
	seen   []os.FileInfo // of the files before they were read last; nil for one that is missing
}

// maxLoads is how often the files are read in one go because the list of files has changed.
const maxLoads = 3

// load reads the value, and notes how the files were before it read them: what changes meanwhile is noticed later.
func (r *reader[T]) load() (value T, err error) {
	for range maxLoads {
		seen, files := look(r.files), r.files
		if value, r.files, err = r.read(r.value); slices.Equal(files, r.files) {
			r.seen = seen
			return value, err
		}
	}
	r.seen = nil
	return value, err
}

func (r *reader[T]) current() T {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) < pause {
		return r.value
	}
	r.looked = time.Now()
	if areSame(look(r.files), r.seen) {
		return r.value
	}
	value, err := r.load()
	if err != nil {
		r.logger.Warn(r.what+" cannot be read again; what was read before remains valid", "error", err)
		return r.value
	}
	r.value = value
	r.logger.Info(r.what + " was read again")
	return r.value
}

func look(files []string) []os.FileInfo {
	seen := make([]os.FileInfo, len(files))
	for i, file := range files {
		if info, err := os.Stat(file); err == nil {
			seen[i] = info
		}
	}
	return seen
}

func areSame(now, before []os.FileInfo) bool {
	return slices.EqualFunc(now, before, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == nil && b == nil
		}
		return a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size() && os.SameFile(a, b)
	})
}
