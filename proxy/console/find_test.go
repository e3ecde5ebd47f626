package console

import (
	"context"
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
