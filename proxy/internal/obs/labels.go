package obs

import (
	"strings"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// otherEntity is the label of entities beyond the limit. No entity has that name: parentheses are not permitted in
// names.
const otherEntity = "(other)"

// Labels bounds the values of the label "entity" in one process. The first entities that are used get a value of their
// own. It is safe for concurrent use.
type Labels struct {
	limit int

	mu    sync.Mutex
	known map[string]string // by the path as the caller wrote it, so that most look-ups need no folding
	count int               // of different values
}

// NewLabels makes Labels with at most limit values beside otherEntity.
func NewLabels(limit int) *Labels { return &Labels{limit: limit, known: map[string]string{}} }

// spellings is how many spellings of a name are remembered for each value.
const spellings = 4

// Of returns the value for a path: the path in lower case, or otherEntity.
func (l *Labels) Of(path string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if value, ok := l.known[path]; ok {
		return value
	}
	value := semantics.Fold(strings.ReplaceAll(path, `\`, "/"))
	if _, ok := l.known[value]; !ok {
		if l.count >= l.limit {
			return otherEntity
		}
		l.count++
		l.known[value] = value
	}
	if len(l.known) < spellings*l.limit {
		l.known[path] = value
	}
	return value
}
