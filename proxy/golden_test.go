package proxy_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics/memstore"
)

var rewrite = flag.Bool("rewrite", false, "write testdata/api.txt anew; commit only what you understand")

const apiStory = "testdata/api.txt"

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[48][0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// The story in testdata/api.txt has every route of the JSON API with its exact answer. Lines with ">" are requests, in
// order, lines with "<" their answers, "! forwards q" has done what a sweeper would do for the queue q, others are
// comments. The clock of the store stands still; what is random is shown as <uuid 1>, <uuid 2> in the order it appeared
// and can be used in later requests.
func TestJSONOfEveryRoute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(apiStory)
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)
	s := launch(t, memstore.New(memstore.WithClock(func() time.Time { return at })))
	wait(t, "start", s.proxy.Started())

	known := map[string]string{} // random to shown and back
	hide := func(id string) string {
		if known[id] == "" {
			shown := fmt.Sprintf("<uuid %d>", len(known)/2+1)
			known[id], known[shown] = shown, id
		}
		return known[id]
	}
	show := regexp.MustCompile(`<uuid \d+>`)

	var got strings.Builder
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, "<") {
			continue
		}
		fmt.Fprintln(&got, line)
		if queue, isUpkeep := strings.CutPrefix(line, "! forwards "); isUpkeep {
			s.forward(t, fromMain(queue), fromLetters(queue))
		}
		if !strings.HasPrefix(line, "> ") {
			continue
		}
		method, path, _ := strings.Cut(line[2:], " ")
		body := ""
		if i+1 < len(lines) && strings.HasPrefix(lines[i+1], "> {") {
			i++
			fmt.Fprintln(&got, lines[i])
			body = lines[i][2:]
		}
		a := s.call(t, method, path, show.ReplaceAllStringFunc(body, func(shown string) string { return known[shown] }))
		fmt.Fprintf(&got, "< %d %s\n", a.status, http.StatusText(a.status))
		if allow := a.header.Get("Allow"); allow != "" {
			fmt.Fprintf(&got, "< Allow: %s\n", allow)
		}
		if kind := a.header.Get("Content-Type"); kind != "application/json" {
			t.Errorf("%s: Content-Type is %q", line, kind)
		}
		fmt.Fprintf(&got, "< %s\n", uuid.ReplaceAllStringFunc(a.body, hide))
	}
	if *rewrite {
		if err := os.WriteFile(apiStory, []byte(got.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(text), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
