package obs

import (
	"strings"
	"sync"

	"github.com/sidebus/sidebus/semantics"
)

// otherEntity is the label of entities over the limit. No entity has this name, because parentheses are not permitted.
const otherEntity = "(other)"

// Labels limits the values of the label "entity" in one process. The first entities that are used get a value of their
// own. It is safe for concurrent use.
type Labels struct {
	limit int

	mu    sync.Mutex
	known map[string]string // by the path as written, so that most lookups need no folding
	count int               // of different values
}

// NewLabels returns Labels with at most limit values, plus otherEntity.
func NewLabels(limit int) *Labels { return &Labels{limit: limit, known: map[string]string{}} }

// spellings is how many spellings of a name are cached for each value.
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
