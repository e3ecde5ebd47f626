package sidecartest

import (
	"bytes"
	"encoding/json"
	"sync"
)

// startLog stores the log of a sidecar and finds the line with its addresses.
type startLog struct {
	opened chan struct{} // closed when that line is written

	mu   sync.Mutex
	text bytes.Buffer
	read int // how far text was looked at
	line startLine
}

// startLine is that line.
type startLine struct {
	Message string `json:"msg"`
	HTTP    string `json:"http"`
	GRPC    string `json:"grpc"`
	Admin   string `json:"admin"`
}

// Write writes any part of the log; it never fails.
func (l *startLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	for {
		line, _, ended := bytes.Cut(l.text.Bytes()[l.read:], []byte("\n"))
		if !ended {
			return len(p), nil
		}
		l.read += len(line) + 1
		var found startLine
		if l.line.Message == "" && json.Unmarshal(line, &found) == nil && found.Message == "Sidebus is listening" {
			l.line = found
			close(l.opened)
		}
	}
}

func (l *startLog) start() startLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.line
}

func (l *startLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
