package stream_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/broker/stream"
)

// client is the client of a subscription. It records its unsettled messages.
type client struct {
	*stream.Subscription

	t         *testing.T
	stand     *stand
	unsettled map[string]semantics.LockToken // by text
	opened    map[string]semantics.LockToken // sessions, by id
	texts     map[semantics.LockToken]string // of all messages that were ever delivered

	carried []stream.Event // that are on their way to the client
}

// subscribe opens a subscription; options begin with the defaults.
func (s *stand) subscribe(queue string, change func(o *stream.Options)) *client {
	s.t.Helper()
	options := stream.DefaultOptions()
	if change != nil {
		change(&options)
	}
	sub, err := s.Subscribe(s.t.Context(), semantics.Source{Path: queue}, options)
	s.ok(err)
	p := &client{
		Subscription: sub, t: s.t, stand: s, unsettled: map[string]semantics.LockToken{}, opened: map[string]semantics.LockToken{},
		texts: map[semantics.LockToken]string{},
	}
	s.t.Cleanup(func() {
		for _, e := range p.carried {
			p.Undelivered(context.Background(), e)
		}
		p.Close(context.Background())
	})
	return p
}

// credits subscribes with so many credits.
func credits(n int) func(o *stream.Options) {
	return func(o *stream.Options) { o.Credits = n }
}

// event gives what there is for the client now. The caller says what became of it, or the end of the test does.
func (p *client) event() (stream.Event, error) {
	// which does not pass while something is going on
	ctx, cancel := context.WithTimeout(p.t.Context(), time.Nanosecond)
	defer cancel()
	e, err := p.Next(ctx)
	p.carried = append(p.carried, e)
	return e, err
}

func (p *client) delivered(e stream.Event) {
	p.carried = slices.DeleteFunc(p.carried, func(other stream.Event) bool { return other.Delivery == e.Delivery })
	p.Delivered(p.t.Context(), e)
}

// takes reads all there is for the client now and shows it in one line. Session tokens are shown by their ids.
func (p *client) takes() string {
	p.t.Helper()
	var all []string
	for {
		e, err := p.event()
		if semantics.CodeOf(err) == semantics.Cancelled {
			return strings.Join(all, " ")
		}
		if err != nil {
			return strings.Join(append(all, "end:"+string(codeOrEOF(err))), " ")
		}
		all = append(all, p.note(e)...)
		p.delivered(e)
	}
}

func codeOrEOF(err error) semantics.Code {
	if err.Error() == "EOF" {
		return "EOF"
	}
	return semantics.CodeOf(err)
}

// note takes an event down and shows it.
func (p *client) note(e stream.Event) (all []string) {
	switch {
	case e.Delivery != nil:
		for _, m := range e.Delivery.Messages {
			all = append(all, string(m.Body))
			p.unsettled[string(m.Body)], p.texts[m.LockToken] = m.LockToken, string(m.Body)
		}
	case e.SessionOpened != nil:
		p.opened[e.SessionOpened.ID] = e.SessionOpened.Lock
		all = append(all, "+"+e.SessionOpened.ID)
	case e.SessionClosed != nil:
		delete(p.opened, e.SessionClosed.ID)
		all = append(all, fmt.Sprintf("-%s(%s)", e.SessionClosed.ID, ends[e.SessionClosed.Why]))
	case e.LocksLost != nil:
		for _, lost := range e.LocksLost {
			all = append(all, "lost:"+p.texts[lost])
		}
	default:
		all = append(all, "failure:"+string(e.Failure.Code))
	}
	return all
}

var ends = map[stream.SessionEnd]string{
	stream.SessionIdle: "idle", stream.SessionYielded: "yielded", stream.SessionClosed: "closed",
	stream.SessionLost: "lost", stream.SessionDrained: "drained", stream.SessionPaused: "paused",
}

// wants fails the test unless that is what there is for the client now. Between sessions there is no order.
func (p *client) wants(want string) {
	p.t.Helper()
	if got := p.takes(); !maps.EqualFunc(bySession(got), bySession(want), slices.Equal) {
		p.t.Fatalf("got %q, want %q", got, want)
	}
}

// bySession takes apart what takes has shown.
func bySession(shown string) map[string][]string {
	apart := map[string][]string{}
	for _, word := range strings.Fields(shown) {
		id, _, isOfSession := strings.Cut(strings.ReplaceAll(word, "(", "/"), "/")
		if !isOfSession && word[0] != '+' {
			id = ""
		}
		id = strings.Trim(id, "+-")
		apart[id] = append(apart[id], word)
	}
	return apart
}

// settle settles unsettled messages and returns the codes.
func (p *client) settle(verb semantics.Settlement, texts ...string) string {
	p.t.Helper()
	codes, err := p.Settle(p.t.Context(), p.tokensOf(texts), verb)
	p.stand.ok(err)
	return asText(codes)
}

func (p *client) tokensOf(texts []string) []semantics.LockToken {
	tokens := make([]semantics.LockToken, len(texts))
	for i, text := range texts {
		tokens[i] = p.unsettled[text]
	}
	return tokens
}

func asText(codes []semantics.Code) string {
	return strings.Join(strings.Fields(strings.Trim(fmt.Sprint(codes), "[]")), " ")
}

func (p *client) complete(texts ...string) {
	p.t.Helper()
	codes, err := p.Complete(p.t.Context(), p.tokensOf(texts))
	p.stand.ok(err)
	if codes := asText(codes); codes != "" {
		p.t.Fatalf("complete %v: %s", texts, codes)
	}
}

func (p *client) abandon(texts ...string) {
	p.t.Helper()
	if codes := p.settle(p.stand.abandonment, texts...); codes != "" {
		p.t.Fatalf("abandon %v: %s", texts, codes)
	}
}

func (s *stand) abandonment(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Abandon(ctx, source, tokens, semantics.AbandonOptions{})
}

func (s *stand) deadLettering(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.DeadLetter(ctx, source, tokens, broker.DeadLetterOptions{})
}

func (s *stand) deferral(ctx context.Context, source semantics.Source, tokens []semantics.LockToken) ([]semantics.Code, error) {
	return s.Defer(ctx, source, tokens, nil)
}
