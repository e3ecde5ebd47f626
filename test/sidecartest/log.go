package sidecartest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
)

// logFile is the log of a sidecar. It is a file and not a pipe, so that a line can be read as soon as the sidecar has
// written it: a test that has seen the effect also sees the line before it.
type logFile struct{ file *os.File }

// addresses are those of a line of the log that says where a process listens.
type addresses struct {
	Message string `json:"msg"`
	HTTP    string `json:"http"`
	GRPC    string `json:"grpc"`
	Admin   string `json:"admin"`
	AMQP    string `json:"amqp"`
	Addr    string `json:"addr"`
	Probes  string `json:"probes"`
}

func newLogFile(t testing.TB) logFile {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return logFile{file}
}

// addresses returns what the line with a message has, and reports whether there is one.
func (l logFile) addresses(message string) (addresses, bool) {
	for line := range bytes.Lines(l.text()) {
		var found addresses
		if json.Unmarshal(line, &found) == nil && found.Message == message {
			return found, true
		}
	}
	return addresses{}, false
}

// text returns what is written; nothing if the file is gone with the test.
func (l logFile) text() []byte {
	text, _ := os.ReadFile(l.file.Name())
	return text
}
