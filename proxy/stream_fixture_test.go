package proxy_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// streamPatience bounds the life of a stream in a test.
const streamPatience = 2 * patience

// publisher is the client of a Publish stream.
type publisher struct {
	sidebusv1.Messages_PublishClient

	t     *testing.T
	leave context.CancelFunc
}

func (s *sidecar) publish(t *testing.T) *publisher {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), streamPatience)
	t.Cleanup(leave)
	stream, err := s.messages.Publish(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &publisher{stream, t, leave}
}

// publication is a request for one message of each text, whose id is the first.
func publication(target string, contents ...string) *sidebusv1.PublishRequest {
	request := &sidebusv1.PublishRequest{RequestId: contents[0], Target: target}
	for _, c := range contents {
		id, _, isOfSession := strings.Cut(c, "/")
		m := text(c)
		if isOfSession {
			m.SessionId = &id
		}
		request.Messages = append(request.Messages, m)
	}
	return request
}

func (p *publisher) send(requests ...*sidebusv1.PublishRequest) {
	p.t.Helper()
	for _, r := range requests {
		if err := p.Send(r); err != nil {
			p.t.Fatal(err)
		}
	}
}

// answers reads so many answers and shows them by the ids of their requests, with the reasons of those that failed.
func (p *publisher) answers(n int) string {
	p.t.Helper()
	shown := make([]string, n)
	for i := range shown {
		r, err := p.Recv()
		if err != nil {
			p.t.Fatalf("after %d answers: %v", i, err)
		}
		shown[i] = r.GetRequestId()
		if r.GetFailure() != nil {
			shown[i] += ":" + r.GetFailure().GetReason()
		}
	}
	return strings.Join(shown, " ")
}

// ends reads the end of the stream, "OK" or the reason.
func (p *publisher) ends() string {
	p.t.Helper()
	r, err := p.Recv()
	return p.end(r, err)
}

func (p *publisher) end(r proto.Message, err error) string {
	p.t.Helper()
	if err == nil {
		p.t.Fatalf("the stream goes on with %v", r)
	}
	return endOf(p.t, err)
}

func endOf(t *testing.T, err error) string {
	t.Helper()
	if errors.Is(err, io.EOF) {
		return "OK"
	}
	if len(status.Convert(err).Details()) == 0 {
		t.Fatalf("the stream ends without a reason: %v", err)
	}
	return infoOf(t, err).GetReason()
}

// subscriber is the client of a Subscribe stream. It records its unsettled messages.
type subscriber struct {
	stream sidebusv1.Messages_SubscribeClient
	t      *testing.T
	leave  context.CancelFunc
	asked  int
	early  []*sidebusv1.SubscribeResponse // events that came before an answer
	hand   map[string]string              // lock tokens by text
	held   map[string]string              // lock tokens of sessions by id
}

// dialStream begins a Subscribe stream.
func (s *sidecar) dialStream(t *testing.T) *subscriber {
	t.Helper()
	ctx, leave := context.WithTimeout(t.Context(), streamPatience)
	t.Cleanup(leave)
	stream, err := s.messages.Subscribe(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return &subscriber{stream: stream, t: t, leave: leave, hand: map[string]string{}, held: map[string]string{}}
}

// subscribe opens a Subscribe stream.
func (s *sidecar) subscribe(t *testing.T, open *sidebusv1.SubscribeOpen) *subscriber {
	t.Helper()
	c := s.dialStream(t)
	opened := c.ask(&sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Open{Open: open}})
	if opened.GetOpened() == nil {
		t.Fatalf("got %v", opened)
	}
	return c
}

// ordersOpen asks for messages of "orders".
func ordersOpen(credits int32) *sidebusv1.SubscribeOpen {
	return &sidebusv1.SubscribeOpen{Source: orders, Credits: &credits}
}

// talesOpen asks for so many sessions of "tales", with so many messages in flight in each.
func talesOpen(most, inFlight int32) *sidebusv1.SubscribeOpen {
	return &sidebusv1.SubscribeOpen{
		Source: tales, Credits: proto.Int32(most * inFlight), MaxConcurrentSessions: &most, SessionInFlight: &inFlight,
	}
}

func (c *subscriber) send(r *sidebusv1.SubscribeRequest) {
	c.t.Helper()
	if err := c.stream.Send(r); err != nil && !errors.Is(err, io.EOF) { // the stream has ended: Recv has the reason
		c.t.Fatal(err)
	}
}

// ask makes a request and waits for its answer.
func (c *subscriber) ask(r *sidebusv1.SubscribeRequest) *sidebusv1.SubscribeResponse {
	c.t.Helper()
	if r.GetRequestId() == "" {
		c.asked++
		r.RequestId = fmt.Sprint("request ", c.asked)
	}
	c.send(r)
	return c.answer(r.GetRequestId())
}

// answer waits for an answer and keeps what comes before.
func (c *subscriber) answer(id string) *sidebusv1.SubscribeResponse {
	c.t.Helper()
	for {
		response, err := c.stream.Recv()
		if err != nil {
			c.t.Fatalf("instead of the answer %q: %v", id, err)
		}
		if response.GetRequestId() == id {
			return response
		}
		c.early = append(c.early, response)
	}
}

// settling is a request to settle unsettled messages.
func (c *subscriber) settling(settle *sidebusv1.SubscribeSettle, contents ...string) *sidebusv1.SubscribeRequest {
	c.t.Helper()
	for _, text := range contents {
		token, ok := c.hand[text]
		if !ok {
			c.t.Fatalf("%q is not in hand", text)
		}
		settle.LockTokens = append(settle.LockTokens, token)
	}
	return &sidebusv1.SubscribeRequest{Request: &sidebusv1.SubscribeRequest_Settle{Settle: settle}}
}

func completion() *sidebusv1.SubscribeSettle {
	return &sidebusv1.SubscribeSettle{Verb: &sidebusv1.SubscribeSettle_Complete{Complete: &sidebusv1.CompleteRequest{}}}
}

// settle settles unsettled messages and fails the test if that fails for one.
func (c *subscriber) settle(settle *sidebusv1.SubscribeSettle, contents ...string) {
	c.t.Helper()
	response := c.ask(c.settling(settle, contents...))
	if len(response.GetSettled().GetResults()) != len(contents) {
		c.t.Fatalf("got %v", response)
	}
	for _, row := range response.GetSettled().GetResults() {
		if row.Reason != nil {
			c.t.Fatalf("got %v", response)
		}
	}
}

func (c *subscriber) complete(contents ...string) {
	c.t.Helper()
	c.settle(completion(), contents...)
}

// next returns the next event.
func (c *subscriber) next() *sidebusv1.SubscribeResponse {
	c.t.Helper()
	if len(c.early) > 0 {
		first := c.early[0]
		c.early = c.early[1:]
		return first
	}
	response, err := c.stream.Recv()
	if err != nil {
		c.t.Fatal(err)
	}
	return response
}

// wants reads events until it has as many words as wanted, and compares; between sessions there is no order.
func (c *subscriber) wants(want string) {
	c.t.Helper()
	words := strings.Fields(want)
	got := map[string]bool{}
	order := map[string]int{}
	for at, word := range words {
		order[word] = at
	}
	last := map[string]int{} // by session
	for len(got) < len(words) {
		for _, word := range c.shown(c.next()) {
			at, ok := order[word]
			session := sessionOf(word)
			if !ok || got[word] || at < last[session] {
				c.t.Fatalf("%q is not what comes next of %q", word, want)
			}
			got[word], last[session] = true, at
		}
	}
}

// sessionOf returns the session that a word such as "+a", "a/1" or "-a:IDLE" is about, "" for "1".
func sessionOf(word string) string {
	id, _, _ := strings.Cut(strings.TrimLeft(word, "+-"), ":")
	id, _, isMessage := strings.Cut(id, "/")
	if !isMessage && !strings.ContainsAny(word[:1], "+-") {
		return ""
	}
	return id
}

// shown formats an event, and records the unsettled messages.
func (c *subscriber) shown(r *sidebusv1.SubscribeResponse) (all []string) {
	c.t.Helper()
	switch {
	case r.GetDeliveries() != nil:
		for _, d := range r.GetDeliveries().GetDeliveries() {
			for _, m := range d.GetMessages() {
				if id, isHeld := m.GetSessionId(), c.held[m.GetSessionId()]; id != "" && isHeld != d.GetSessionLockToken() {
					c.t.Errorf("a message of session %s came with the token %q", id, d.GetSessionLockToken())
				}
				c.hand[m.GetText()] = m.GetLockToken()
				all = append(all, m.GetText())
			}
		}
	case r.GetSessionOpened() != nil:
		c.held[r.GetSessionOpened().GetSessionId()] = r.GetSessionOpened().GetLockToken()
		all = append(all, "+"+r.GetSessionOpened().GetSessionId())
	case r.GetSessionClosed() != nil:
		closed := r.GetSessionClosed()
		if c.held[closed.GetSessionId()] == closed.GetSessionLockToken() {
			delete(c.held, closed.GetSessionId())
		}
		all = append(all, "-"+closed.GetSessionId()+":"+closed.GetWhy().String())
	case r.GetLocksLost() != nil:
		for _, token := range r.GetLocksLost().GetLockTokens() {
			for text, known := range c.hand {
				if known == token {
					all = append(all, "lost:"+text)
				}
			}
		}
	case r.GetFailure() != nil:
		all = append(all, "failure:"+r.GetFailure().GetReason())
	default:
		c.t.Fatalf("got %v", r)
	}
	return all
}

// ends reads on until the end of the stream and gives it, "OK" or the reason.
func (c *subscriber) ends() string {
	c.t.Helper()
	for {
		if _, err := c.stream.Recv(); err != nil {
			return endOf(c.t, err)
		}
	}
}

// closes closes the client's side and waits for the end of the stream.
func (c *subscriber) closes() string {
	c.t.Helper()
	if err := c.stream.CloseSend(); err != nil {
		c.t.Fatal(err)
	}
	return c.ends()
}

// sendBig stores n messages of 200 KiB in "orders".
func (s *sidecar) sendBig(t *testing.T, n int) {
	t.Helper()
	for range n {
		s.send(t, strings.Repeat("x", 200<<10))
	}
}

// countsOf shows how many messages a queue has in which state.
func (s *sidecar) countsOf(t *testing.T, queue string) string {
	t.Helper()
	counts, err := s.admin.GetQueueRuntime(t.Context(), &sidebusv1.GetQueueRuntimeRequest{Name: queue})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("available %d locked %d dead %d", counts.GetAvailableCount(), counts.GetLockedCount(), counts.GetDeadLetterMessageCount())
}

// counted waits until a queue has so many messages in which state.
func (s *sidecar) counted(t *testing.T, queue, want string) {
	t.Helper()
	eventually(t, queue+": "+want, func() bool { return s.countsOf(t, queue) == want })
}

// peeked shows the messages of a queue with their delivery counts.
func (s *sidecar) peeked(t *testing.T, queue string) string {
	t.Helper()
	seen, err := s.messages.Peek(t.Context(), &sidebusv1.PeekRequest{Source: queue, MaxMessages: proto.Int32(250)})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range seen.GetMessages() {
		all = append(all, fmt.Sprintf("%s:%d", m.GetText(), m.GetDeliveryCount()))
	}
	return strings.Join(all, " ")
}

func (s *sidecar) wantPeeked(t *testing.T, queue, want string) {
	t.Helper()
	if got := s.peeked(t, queue); got != want {
		t.Errorf("%s has %q, want %q", queue, got, want)
	}
}
