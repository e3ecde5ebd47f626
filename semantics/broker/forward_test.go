package broker_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// meddled is a Store in which something happens before one of the steps of a transfer.
type meddled struct {
	semantics.Store
	began, arrived, ended int
	before                func(step string) error // nil: nothing
}

func (m *meddled) happens(step string, count *int) error {
	*count++
	if m.before == nil {
		return nil
	}
	return m.before(step)
}

func (m *meddled) BeginTransfer(ctx context.Context, source semantics.Source, to semantics.Destination, limit int) (semantics.Transfer, error) {
	if err := m.happens("begin", &m.began); err != nil {
		return semantics.Transfer{}, err
	}
	return m.Store.BeginTransfer(ctx, source, to, limit)
}

func (m *meddled) Arrive(ctx context.Context, transfer semantics.Transfer, version int64, p []semantics.Publication, isLast bool) ([]semantics.Arrival, error) {
	if err := m.happens("arrive", &m.arrived); err != nil {
		return nil, err
	}
	return m.Store.Arrive(ctx, transfer, version, p, isLast)
}

func (m *meddled) EndTransfer(ctx context.Context, transfer semantics.Transfer, fates []semantics.Fate) error {
	if err := m.happens("end", &m.ended); err != nil {
		return err
	}
	return m.Store.EndTransfer(ctx, transfer, fates)
}

// newForwarding makes a Broker over queues of which "from" forwards to "to".
func newForwarding(t *testing.T) (*broker.Broker, *meddled) {
	t.Helper()
	store := &meddled{Store: memstore.New()}
	b := broker.New(store)
	t.Cleanup(b.Close)
	for _, name := range []string{"to", "else", "from"} {
		options := semantics.Options{}
		if name == "from" {
			options.ForwardTo = "to"
		}
		if _, err := b.CreateEntity(t.Context(), semantics.QueueKind, name, options, []string{"forwardTo"}); err != nil {
			t.Fatal(err)
		}
	}
	return b, store
}

func sendMany(t *testing.T, b *broker.Broker, queue string, n int) {
	t.Helper()
	for i := range n {
		m := &semantics.Message{MessageID: fmt.Sprint(i)}
		if _, err := b.Send(t.Context(), semantics.ToQueue(queue), []*semantics.Message{m}); err != nil {
			t.Fatal(err)
		}
	}
}

func countOf(t *testing.T, b *broker.Broker, queue string) int64 {
	t.Helper()
	r, err := b.Runtime(t.Context(), semantics.QueueKind, queue)
	if err != nil {
		t.Fatal(err)
	}
	return r.Total()
}

func TestFWD_1_ForwardTakesItsTurn(t *testing.T) {
	t.Parallel()
	b, store := newForwarding(t)
	sendMany(t, b, "from", 2050)
	if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); err != nil {
		t.Fatal(err)
	}
	if left := countOf(t, b, "from"); left != 50 || store.began != 20 {
		t.Errorf("%d messages are left after %d transfers, want 50 after 20", left, store.began)
	}
}

// What fails is told, and what was not done is done by the next call.
func TestFWD_1_FailuresAreTold(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"begin", "arrive", "end"} {
		b, store := newForwarding(t)
		sendMany(t, b, "from", 3)
		away := errors.New("away")
		store.before = func(at string) error {
			if at == step {
				return away
			}
			return nil
		}
		if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); !errors.Is(err, away) {
			t.Errorf("%s fails: Forward gives %v", step, err)
		}
		if forwarded, refused := b.Forwarded(); forwarded != 0 || refused != 0 {
			t.Errorf("%s fails: %d and %d are counted", step, forwarded, refused)
		}
		store.before = nil
		if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); err != nil {
			t.Fatal(err)
		}
		if got := countOf(t, b, "to"); got != 3 || countOf(t, b, "from") != 0 {
			t.Errorf("%s fails: %d have arrived, want 3", step, got)
		}
	}
}

// The option changes just before each transfer is begun: nothing goes to where it is not to go any more.
func TestFWD_1_ForwardReadsTheOptionAgain(t *testing.T) {
	t.Parallel()
	b, store := newForwarding(t)
	sendMany(t, b, "from", 3)
	turns := []string{"else", "to", "ELSE"}
	store.before = func(step string) error {
		if step != "begin" || len(turns) == 0 {
			return nil
		}
		options := semantics.Options{ForwardTo: turns[0]}
		turns = turns[1:]
		_, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "from", options, []string{"forwardTo"})
		return err
	}
	if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); err != nil {
		t.Fatal(err)
	}
	if here, there := countOf(t, b, "to"), countOf(t, b, "else"); here != 0 || there != 3 {
		t.Errorf("%d and %d have arrived, want 0 and 3", here, there)
	}
}

// However often it changes, a call comes to an end.
func TestFWD_1_ForwardEnds(t *testing.T) {
	t.Parallel()
	b, store := newForwarding(t)
	sendMany(t, b, "from", 1)
	store.before = func(string) error { return semantics.ErrForwardingChanged }
	if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); err != nil || store.began != 20 {
		t.Errorf("got %v after %d attempts", err, store.began)
	}
}

func TestFWD_1_ForwardOfWhatIsGone(t *testing.T) {
	t.Parallel()
	b, store := newForwarding(t)
	sendMany(t, b, "from", 1)
	store.before = func(string) error { return b.DeleteEntity(t.Context(), semantics.QueueKind, "from") }
	if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); err != nil {
		t.Error(err)
	}
	if err := b.Forward(t.Context(), semantics.Source{Path: "from"}); err != nil || store.began != 1 {
		t.Errorf("got %v after %d attempts", err, store.began)
	}
}

func TestFWD_1_ForwardEndsWithItsContext(t *testing.T) {
	t.Parallel()
	b, store := newForwarding(t)
	sendMany(t, b, "from", 250)
	ctx, cancel := context.WithCancel(t.Context())
	store.before = func(string) error {
		if store.ended == 1 {
			cancel()
		}
		return nil
	}
	err := b.Forward(ctx, semantics.Source{Path: "from"})
	if semantics.CodeOf(err) != semantics.Cancelled || countOf(t, b, "from") == 0 {
		t.Errorf("got %v", err)
	}
}

func TestDLQ_13_DescriptionIsCut(t *testing.T) {
	t.Parallel()
	b, _ := newForwarding(t)
	names := []string{"forwardTo", "forwardDeadLetteredMessagesTo"}
	options := semantics.Options{ForwardDeadLetteredMessagesTo: "to"}
	if _, err := b.UpdateEntity(t.Context(), semantics.QueueKind, "from", options, names); err != nil {
		t.Fatal(err)
	}
	sendMany(t, b, "from", 1)
	source := semantics.Source{Path: "from"}
	delivery, err := b.Receive(t.Context(), source, broker.ReceiveOptions{MaxMessages: 1})
	if err != nil {
		t.Fatal(err)
	}
	reason, description := "why", strings.Repeat("ü", semantics.MaxDeadLetterText)
	texts := broker.DeadLetterOptions{Reason: &reason, Description: &description}
	if _, err := b.DeadLetter(t.Context(), source, []semantics.LockToken{delivery.Messages[0].LockToken}, texts); err != nil {
		t.Fatal(err)
	}
	if err := b.DeleteEntity(t.Context(), semantics.QueueKind, "to"); err != nil {
		t.Fatal(err)
	}
	source.SubQueue = semantics.DeadLetterQueue
	if err := b.Forward(t.Context(), source); err != nil {
		t.Fatal(err)
	}
	source.SubQueue = semantics.TransferDeadLetterQueue
	rows, err := b.Peek(t.Context(), source, 0, 1, semantics.ShowAll)
	if err != nil || len(rows) != 1 {
		t.Fatalf("got %v, %v", rows, err)
	}
	got := []rune(rows[0].DeadLetterErrorDescription)
	if len(got) != semantics.MaxDeadLetterText || got[len(got)-1] != 'ü' {
		t.Errorf("the description has %d characters and ends with %q", len(got), string(got[len(got)-9:]))
	}
}

func TestMSG_17_ForgetForwarding(t *testing.T) {
	t.Parallel()
	text := "x"
	properties := map[string]semantics.Value{
		"p": semantics.Null(), semantics.PropertyDeadLetterReason: semantics.String(text), semantics.PropertyDeadLetterDescription: semantics.String(text),
	}
	for name, c := range map[string]struct {
		from *semantics.Forwarded
		want []string
	}{
		"was not forwarded":  {nil, []string{"DeadLetterErrorDescription", "DeadLetterReason", "p"}},
		"was no dead letter": {&semantics.Forwarded{Hops: 1}, []string{"DeadLetterErrorDescription", "DeadLetterReason", "p"}},
		"had a reason": {
			&semantics.Forwarded{DeadLetterTexts: semantics.DeadLetterTexts{Reason: &text}}, []string{"DeadLetterErrorDescription", "p"},
		},
		"was changed": {
			&semantics.Forwarded{DeadLetterTexts: semantics.DeadLetterTexts{Reason: new(string), Description: &text}}, []string{"DeadLetterReason", "p"},
		},
		"had both": {&semantics.Forwarded{DeadLetterTexts: semantics.DeadLetterTexts{Reason: &text, Description: &text}}, []string{"p"}},
	} {
		m := semantics.Message{Properties: properties, Forwarded: c.from}
		m.ForgetForwarding()
		var got []string
		for name := range m.Properties {
			got = append(got, name)
		}
		slices.Sort(got)
		if m.Forwarded != nil || !slices.Equal(got, c.want) || len(properties) != 3 {
			t.Errorf("%s: it has %q, want %q", name, got, c.want)
		}
	}
}

func TestFWD_4_SetForwarded(t *testing.T) {
	t.Parallel()
	reason, description := "why", "how"
	from := &semantics.Forwarded{
		Hops: 2, EnqueuedSequenceNumber: 7, DeadLetterSource: "q",
		DeadLetterTexts: semantics.DeadLetterTexts{Reason: &reason, Description: &description},
	}
	told := func(r semantics.Received) []any {
		r.SetForwarded()
		return []any{r.EnqueuedSequenceNumber, r.DeadLetterSource, r.DeadLetterReason, r.DeadLetterErrorDescription}
	}
	for name, c := range map[string]struct {
		of   semantics.Received
		want []any
	}{
		"not forwarded": {semantics.Received{EnqueuedSequenceNumber: 3, DeadLetterReason: "own"}, []any{int64(3), "", "own", ""}},
		"forwarded": {
			semantics.Received{EnqueuedSequenceNumber: 3, Message: semantics.Message{Forwarded: from}}, []any{int64(7), "q", "why", "how"},
		},
		"a dead letter": {
			semantics.Received{DeadLetteredAt: time.Unix(1, 0), DeadLetterReason: "own", Message: semantics.Message{Forwarded: from}},
			[]any{int64(7), "q", "own", ""},
		},
	} {
		if got := told(c.of); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
