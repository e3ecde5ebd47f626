package dapr

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// maxState is the maximum size of the file in bytes.
const maxState = 4 << 20

// stateFile saves the metadata of Component resources next to the socket, so that a Sidebus that restarts alone knows
// them.
type stateFile struct {
	path string

	mu    sync.Mutex
	known map[string]map[string]string // nil: not read yet
}

func newStateFile(socket string) *stateFile {
	name := strings.TrimSuffix(filepath.Base(socket), filepath.Ext(socket)) + ".json"
	return &stateFile{path: filepath.Join(filepath.Dir(socket), privateFolder, name)}
}

// find returns the metadata of an instance, or nil if it is unknown.
func (f *stateFile) find(instance string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.read() // an unreadable file counts as empty
	return f.known[instance]
}

// keep saves the metadata of an instance if it has changed.
func (f *stateFile) keep(instance string, properties map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.read() // an unreadable file is replaced
	if before, ok := f.known[instance]; ok && maps.Equal(before, properties) {
		return nil
	}
	f.known[instance] = properties
	text, err := json.Marshal(f.known)
	if err != nil {
		return err
	}
	if len(text) > maxState {
		return fmt.Errorf("%s would have %d bytes, at most %d are allowed", f.path, len(text), maxState)
	}
	return f.replace(text)
}

func (f *stateFile) read() error {
	if f.known != nil {
		return nil
	}
	f.known = map[string]map[string]string{}
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Size() > maxState {
		return fmt.Errorf("%s has %d bytes, at most %d are allowed", f.path, info.Size(), maxState)
	}
	text, err := os.ReadFile(f.path)
	if err != nil {
		return err
	}
	var known map[string]map[string]string
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}
	maps.Copy(f.known, known)
	return nil
}

// replace writes the file atomically.
func (f *stateFile) replace(text []byte) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o755); err != nil { //nolint:gosec // the sockets in it are for others
		return err
	}
	temporary := f.path + ".new"
	if err := os.WriteFile(temporary, text, 0o600); err != nil {
		return err
	}
	return os.Rename(temporary, f.path)
}
