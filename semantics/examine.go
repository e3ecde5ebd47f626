package semantics

import "context"

// Severity says how bad a Finding is.
type Severity string

// Severities, from the least.
const (
	Fine    Severity = "ok"
	Warning Severity = "warning" // messages can be lost or calls become slow when something else goes wrong
	Problem Severity = "problem" // messages are lost, calls fail, or will soon
)

// Finding is one thing that an Examiner has looked at.
type Finding struct {
	Severity Severity `json:"severity"`
	Where    string   `json:"where"`            // the address of a server, or the path of an entity; empty for the whole store
	Subject  string   `json:"subject"`          // what was looked at, a word or two: "memory"
	Text     string   `json:"text"`             // what was found, a sentence
	Advice   string   `json:"advice,omitempty"` // what to do about it; empty when there is nothing to do
}

// Examination says what an Examiner is to look at beside the store itself.
type Examination struct {
	// Paths are the queues and topics whose structures are checked, whatever they hold. None: all of the namespace that
	// hold no more than can be read without disturbing others.
	Paths []string
	// Progress is called before each entity with its place, from 1, and their number. nil: progress is not wanted.
	Progress func(path string, i, of int)
}

// Examiner is a Store that can be examined by an operator: its settings, its health, and whether what it keeps of
// entities belongs together. It changes nothing.
type Examiner interface {
	// Examine reports each Finding as soon as it is made. It blocks until all is looked at, for seconds if there are
	// many entities, or until ctx ends. It fails with STORE_UNAVAILABLE when the store cannot be reached, and with
	// ENTITY_NOT_FOUND when a path of the examination does not exist.
	Examine(ctx context.Context, what Examination, report func(Finding)) error
}
