package console

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/wireerror"
	"github.com/sidebus/sidebus/semantics"
)

// endless is a broker whose queues have messages without end.
type endless struct{ Broker }

func (endless) Peek(
	_ context.Context, _ semantics.Source, from int64, limit int, _ semantics.Show,
) ([]*semantics.Received, error) {
	page := make([]*semantics.Received, limit)
	for i := range page {
		page[i] = &semantics.Received{SequenceNumber: from + int64(i), DeadLetterReason: "Late"}
		page[i].SetDeadLetter(semantics.DeadLetterTexts{Reason: &page[i].DeadLetterReason}, time.Unix(100, 0))
	}
	return page, nil
}

// Dead letters without end are counted up to a bound, which the answer has.
func TestDeadLettersAreCountedUpToABound(t *testing.T) {
	t.Parallel()
	c := &Console{config: Config{Broker: endless{}}}
	answer, deadAt, err := c.groups(t.Context(), semantics.Source{Path: "q", SubQueue: semantics.DeadLetterQueue}, &wanted{})
	if err != nil || !answer.More || answer.Looked != lettersAtMost || answer.Matched != lettersAtMost {
		t.Errorf("got %+v, %v", answer, err)
	}
	key := groupKey{Reason: "Late"}
	if len(answer.Groups) != 1 || answer.Groups[0].groupKey != key || len(deadAt[key]) != lettersAtMost || answer.Groups[0].Oldest != 100_000 {
		t.Errorf("groups are %+v", answer.Groups)
	}
}

// many is a broker whose queues have messages without end, each of which has its own reason and a large body.
type many struct{ Broker }

func (many) Peek(
	_ context.Context, _ semantics.Source, from int64, limit int, _ semantics.Show,
) ([]*semantics.Received, error) {
	page := make([]*semantics.Received, min(limit, 3))
	for i := range page {
		number := from + int64(i)
		reason := fmt.Sprintf("line %d", number)
		page[i] = &semantics.Received{SequenceNumber: number, DeadLetterReason: reason}
		page[i].Body = make([]byte, 1<<20)
		page[i].SetDeadLetter(semantics.DeadLetterTexts{Reason: &reason}, time.Unix(100, 0))
	}
	return page, nil
}

// An answer has few large messages, and where to go on, however many match.
func TestAnswersAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	c := &Console{config: Config{Broker: many{}}}
	for _, words := range []string{"", "line"} {
		answer, err := c.search(t.Context(), semantics.Source{Path: "q"}, &wanted{Words: words})
		if err != nil || len(answer.Messages) != 3 || answer.Next != "3" {
			t.Errorf("words %q: %d messages, next %q, %v", words, len(answer.Messages), answer.Next, err)
		}
	}
}

// A search for very many words is refused: each is searched in each message.
func TestWordsAreBounded(t *testing.T) {
	t.Parallel()
	c := &Console{config: Config{Broker: endless{}}}
	_, err := c.search(t.Context(), semantics.Source{Path: "q"}, &wanted{Words: strings.Repeat("a ", maxWords)})
	if semantics.CodeOf(err) != semantics.InvalidArgument {
		t.Errorf("got %v", err)
	}
}

// If each dead letter has its own reason, few reasons are held, and the rest is counted together.
func TestReasonsAreBounded(t *testing.T) {
	t.Parallel()
	c := &Console{config: Config{Broker: reasons{}}}
	answer, deadAt, err := c.groups(t.Context(), semantics.Source{Path: "q", SubQueue: semantics.DeadLetterQueue}, &wanted{})
	if err != nil || len(deadAt) != groupsHeld || len(answer.Groups) != groupsAtMost ||
		answer.Matched != lettersAtMost || answer.Others != lettersAtMost-groupsAtMost {
		t.Errorf("%d reasons are held, %d groups, %d others of %d, %v",
			len(deadAt), len(answer.Groups), answer.Others, answer.Matched, err)
	}
}

// reasons is as many, without bodies.
type reasons struct{ many }

func (r reasons) Peek(
	_ context.Context, _ semantics.Source, from int64, limit int, _ semantics.Show,
) (page []*semantics.Received, err error) {
	for i := range limit {
		reason := fmt.Sprintf("line %d", from+int64(i))
		m := &semantics.Received{SequenceNumber: from + int64(i)}
		m.SetDeadLetter(semantics.DeadLetterTexts{Reason: &reason}, time.Unix(100, 0))
		page = append(page, m)
	}
	return page, nil
}

// slow is a client of which is known until when an answer may take.
type slow struct {
	*httptest.ResponseRecorder

	limit, limited time.Time // now, and while the answer was written
}

func (s *slow) SetWriteDeadline(at time.Time) error { s.limit = at; return nil }

func (s *slow) Write(p []byte) (int, error) {
	s.limited = s.limit
	return s.ResponseRecorder.Write(p)
}

// A client that does not read its answer does not keep the place of others.
func TestAnswersHaveALimitOfTime(t *testing.T) {
	t.Parallel()
	w := &slow{ResponseRecorder: httptest.NewRecorder()}
	writeJSON(w, http.StatusOK, "x")
	if left := time.Until(w.limited); left <= 0 || left > writeTimeout || !w.limit.IsZero() {
		t.Errorf("the limit was in %v, and is %v afterwards", left, w.limit)
	}
}

// More calls than the bound wait; one whose client leaves does not look.
func TestFewCallsLookAtOnce(t *testing.T) {
	t.Parallel()
	c := &Console{finds: make(chan struct{}, findsAtOnce)}
	for range findsAtOnce {
		if err := c.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.enter(ctx); wireerror.Of(err).Code != semantics.Cancelled {
		t.Errorf("got %v", err)
	}
	c.leave()
	if err := c.enter(t.Context()); err != nil {
		t.Error(err)
	}
}
