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

// Dead letters are grouped by the reason that filters see, so that a filter can resubmit a group.
func TestConsoleGroupsDeadLetters(t *testing.T) {
	t.Parallel()
	s := consoled(t, proxy.ConsoleReadOnly)
	for _, reason := range []string{"Late", "Late", "it's lost", ""} {
		s.send(t, "about "+reason)
		token := s.receive(t)[0].GetLockToken()
		s.post(t, "deadLetter", fmt.Sprintf(`{"lockTokens":[%q],"reason":%q,"description":"by a test"}`, token, reason))
	}
	var letters struct {
		Groups []struct {
			Reason, Description string
			Count               int
			Oldest, Newest      int64
			Counts              []int
		}
		Matched, Looked int
		At              []int64
		Reason          string
	}
	group := func(request string) string {
		letters.Groups, letters.At = nil, nil
		text := s.ui(http.MethodPost, "/ui/letters", request).Text
		if err := json.Unmarshal([]byte(text), &letters); err != nil {
			t.Fatal(err)
		}
		return text
	}
	text := group(`{"entity":"orders","subQueue":"DEAD_LETTER"}`)
	if g := letters.Groups; len(g) != 3 || g[0].Reason != "Late" || g[0].Count != 2 || g[0].Description != "by a test" || g[0].Oldest > g[0].Newest ||
		letters.Matched != 4 || len(letters.At) == 0 || len(g[0].Counts) != len(letters.At) || g[0].Counts[len(g[0].Counts)-1] != 2 {
		t.Errorf("got %s", text)
	}
	if text := group(`{"entity":"orders","subQueue":"DEAD_LETTER","filter":"DeadLetterReason = 'it''s lost'"}`); len(letters.Groups) != 1 ||
		letters.Matched != 1 || letters.Looked != 4 || letters.At != nil {
		t.Errorf("with a filter: %s", text)
	}
	if group(`{"entity":"orders"}`); letters.Reason != "INVALID_ARGUMENT" {
		t.Errorf("of the queue itself: %s", letters.Reason)
	}
	found := s.find(`{"entity":"orders","subQueue":"DEAD_LETTER","group":{"reason":"Late"}}`)
	if len(found.Messages) != 2 || found.Messages[0].Text != "about Late" {
		t.Errorf("of a group: %+v", found)
	}
}
