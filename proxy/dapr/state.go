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

// maxState is the most bytes of a file of what was said at the start.
const maxState = 4 << 20

// stateFile keeps the metadata of Component resources beside the socket, so that a Sidebus that is restarted under a
// running runtime knows it.
type stateFile struct {
	path string

	mu    sync.Mutex
	known map[string]map[string]string // nil: not read yet
}

func newStateFile(socket string) *stateFile {
	name := strings.TrimSuffix(filepath.Base(socket), filepath.Ext(socket)) + ".json"
	return &stateFile{path: filepath.Join(filepath.Dir(socket), privateFolder, name)}
}

// find gives the metadata of an instance, nil when nothing is known.
func (f *stateFile) find(instance string) map[string]string {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.read() // what cannot be read is not known
	return f.known[instance]
}

// keep writes the metadata of an instance, unless it is known already.
func (f *stateFile) keep(instance string, properties map[string]string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	_ = f.read() // what cannot be read is written anew
	if before, ok := f.known[instance]; ok && maps.Equal(before, properties) {
		return nil
	}
	f.known[instance] = properties
	text, err := json.Marshal(f.known)
	if err != nil {
		return err
	}
	if len(text) > maxState {
		return fmt.Errorf("%s would have %d bytes, at most %d are kept", f.path, len(text), maxState)
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
		return fmt.Errorf("%s has %d bytes", f.path, info.Size())
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

// replace writes the file in one step, so that a crash leaves the one or the other.
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
