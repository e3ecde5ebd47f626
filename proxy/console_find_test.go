package proxy_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy"
)

// foundMessages is what a test reads of an answer of find.
type foundMessages struct {
	Messages []struct{ SequenceNumber, Text string }
	Looked   int
	Next     string
	Failed   int
	Failure  string
	Reason   string // of a refusal
}

func (s *sidecar) find(request string) (found foundMessages) {
	s.t.Helper()
	text := s.ui(http.MethodPost, "/ui/find", request).Text
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		s.t.Fatalf("%s: %v", text, err)
	}
	return found
}

// The filter is that of rules, and the read-only console has it too, because it changes nothing.
func TestConsoleFindsMessages(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleReadOnly)
	s.post(t, "send", `{"messages":[
		{"text":"Red shoes","properties":{"total":120,"region":"eu"}},{"text":"blue shoes","properties":{"total":5,"region":"us"}},
		{"text":"a hat","subject":"Shoes or not","properties":{"total":0}}]}`)
	for request, want := range map[string][]string{
		`{"entity":"orders","filter":"total > 100 AND region = 'eu'"}`: {"Red shoes"},
		`{"entity":"Orders","filter":"NOT EXISTS(region)"}`:            {"a hat"},
		`{"entity":"orders","words":"shoes"}`:                          {"Red shoes", "blue shoes", "a hat"},
		`{"entity":"orders","words":"shoes 120"}`:                      {"Red shoes"},
		`{"entity":"orders","words":"region=us"}`:                      {"blue shoes"},
		`{"entity":"orders","words":"shoes","filter":"total < 100"}`:   {"blue shoes", "a hat"},
		`{"entity":"orders","from":"2"}`:                               {"blue shoes", "a hat"},
		`{"entity":"orders","state":"DEFERRED"}`:                       nil,
		`{"entity":"orders","subQueue":"DEAD_LETTER"}`:                 nil,
		`{"entity":"orders","filter":"100 / total > 1"}`:               {"blue shoes"},
	} {
		found := s.find(request)
		var texts []string
		for _, m := range found.Messages {
			texts = append(texts, m.Text)
		}
		if !slices.Equal(texts, want) {
			t.Errorf("%s: found %v of %d", request, texts, found.Looked)
		}
		if isPartial := strings.Contains(request, "/"); isPartial != (found.Failed == 1 && found.Failure != "") {
			t.Errorf("%s: failed for %d: %s", request, found.Failed, found.Failure)
		}
	}
	for request, want := range map[string]string{
		`{"entity":"orders","filter":"total >"}`: "FILTER_INVALID", `{"entity":"none"}`: "ENTITY_NOT_FOUND", `{`: "INVALID_ARGUMENT",
	} {
		if found := s.find(request); found.Reason != want {
			t.Errorf("%s: %+v", request, found)
		}
	}
}

// One call looks at a bounded number of messages, and the next goes on behind them.
func TestConsoleFindIsBounded(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	hundred := strings.Repeat(`{"text":"a"},`, 99) + `{"text":"a"}`
	for range 26 {
		s.post(t, "send", `{"messages":[`+hundred+`]}`)
	}
	s.send(t, "the last")
	first := s.find(`{"entity":"orders","words":"last"}`)
	if first.Looked != 2500 || first.Next != "2501" || len(first.Messages) != 0 {
		t.Errorf("got %+v", first)
	}
	rest := s.find(fmt.Sprintf(`{"entity":"orders","words":"last","from":%q}`, first.Next))
	if rest.Looked != 101 || rest.Next != "" || len(rest.Messages) != 1 {
		t.Errorf("got %+v", rest)
	}
	if page := s.find(`{"entity":"orders"}`); page.Looked != 50 || len(page.Messages) != 50 || page.Next != "51" {
		t.Errorf("got %d messages, %d looked at, next %s", len(page.Messages), page.Looked, page.Next)
	}
}

// An entity is there, and gone, as soon as it was created or deleted: not when all are listed the next time.
func TestConsoleShowsAnEntityAtOnce(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleOn)
	all := s.events("/ui/live")
	for !all().Listed { // the next list is ten seconds later
	}
	began := time.Now()
	has := func(e liveEvent, path string) bool {
		for _, row := range e.Rows {
			if row.Path == path {
				return true
			}
		}
		return false
	}
	mustPut(t, s, "/v1/queues/later", `{}`)
	if first := s.events("/ui/live?entity=later")(); !has(first, "later") {
		t.Errorf("the page of a queue that is not listed yet gets %+v", first)
	}
	for _, path := range []string{"/v1/topics/press", "/v1/topics/press/subscriptions/all"} {
		if got := s.ui(http.MethodPut, "/ui/api"+path, `{}`); got.StatusCode != http.StatusOK {
			t.Fatal(got.Status)
		}
	}
	for !has(all(), "press/subscriptions/all") {
	}
	if got := s.ui(http.MethodDelete, "/ui/api/v1/topics/press", ""); got.StatusCode != http.StatusOK {
		t.Fatal(got.Status)
	}
	var gone []string
	for len(gone) < 2 {
		gone = append(gone, all().Gone...)
	}
	slices.Sort(gone)
	if !slices.Equal(gone, []string{"press", "press/subscriptions/all"}) {
		t.Errorf("gone are %v", gone)
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %s, so the list has shown it", took)
	}
}
