package storetest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
)

var number = regexp.MustCompile(`\d+`)

// Refusal is all that a client learns of an error, which is to be the same from every store. It is empty for nil. An
// entity is spelled as it was created or as the call spells it (ENT-4), and versions are what the store likes.
func Refusal(err error) string {
	if err == nil {
		return ""
	}
	e := semantics.AsError(err)
	text := strings.ToLower(fmt.Sprintf("%s %v", e.Message, e.Details))
	if e.Code == semantics.PreconditionFailed {
		text = number.ReplaceAllString(text, "<version>")
	}
	return string(e.Code) + ": " + text
}

// refusals are what a test was refused with. It is safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	seen  map[string]bool
	races bool
}

func (r *refusals) add(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]bool{}
	}
	r.seen[Refusal(err)] = true
}

func (r *refusals) sorted() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for refusal := range r.seen {
		all = append(all, refusal)
	}
	slices.Sort(all)
	return all
}

// races says that what the test is refused with depends on which call comes first.
func (h *fixture) races() { h.refusals.races = true }

// wantRefusalsOf fails the test if it was refused with other texts than the same test of the reference.
func (h *fixture) wantRefusalsOf(t *testing.T, reference *fixture) {
	t.Helper()
	if h.refusals.races {
		return
	}
	if diff := gocmp.Diff(reference.refusals.sorted(), h.refusals.sorted()); diff != "" {
		t.Errorf("refusals differ (-reference +store):\n%s", diff)
	}
}
