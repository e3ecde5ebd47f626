package amqp

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/semantics"
)

// requestCredit is how many requests of a link may wait.
const requestCredit = 100

// replyLink is a link on which a client receives the answers of a node.
type replyLink struct {
	link     *engine.Link
	node     string
	patience time.Duration

	mu sync.Mutex // one answer is sent after the other
}

// answerPatience is how long an answer waits for credit. SDKs grant it in advance.
const answerPatience = time.Minute

// send sends an answer when there is credit for it, and reports whether it was sent. A client that does not
// take it loses the link.
func (r *replyLink) send(payload []byte) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	tooLong := time.AfterFunc(r.patience, func() {
		r.link.Close(&frame.Error{Condition: limitExceeded, Description: "an answer waited for credit for too long"})
	})
	defer tooLong.Stop()
	for {
		want, ok := r.link.Wanted()
		switch {
		case !ok:
			return false
		case want.Credit > 0 && r.link.Send(engine.Delivery{Tag: []byte("answer"), Payload: payload, IsSettled: true}):
			return true
		case want.IsDraining:
			r.link.Drained()
		}
	}
}

// attachReplies accepts a link for the answers of a node.
func (c *connection) attachReplies(l *engine.Link, at string) {
	r := &replyLink{link: l, node: at, patience: cmp.Or(c.server.AnswerPatience, answerPatience)}
	c.mu.Lock()
	c.replies = append(c.replies, r)
	c.mu.Unlock()
	l.Accept(engine.Accepted{})
	<-l.Context().Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replies = slices.DeleteFunc(c.replies, func(other *replyLink) bool { return other == r })
}

// replyTo finds the link for an answer among those of the session of the request, by its address or its name, which the
// client repeats in its requests.
func (c *connection) replyTo(session any, at, address string) *replyLink {
	c.mu.Lock()
	defer c.mu.Unlock()
	var found, only *replyLink
	count := 0
	for _, r := range c.replies {
		if r.node != at || r.link.Session() != session {
			continue
		}
		only = r
		count++
		target := r.link.Request.Target
		switch {
		case target != nil && target.Address != "" && target.Address == address:
			return r
		case r.link.Request.Name == address:
			found = r
		}
	}
	if found == nil && count == 1 {
		return only
	}
	return found
}

// answer is the answer to a request.
type answer struct {
	application codec.Map
	body        any
	ended       func(isDelivered bool) // called when the answer was written, or could not be; nil: nothing is
}

// smallAnswer is the size up to which an answer counts for no memory: an error would be as large.
const smallAnswer = 4 << 10

// deliver sends an answer, which counts for the memory of answers as long as it waits. It reports whether the client's
// connection has it. Without memory the client gets an error instead.
func (c *connection) deliver(reply *replyLink, id any, a answer) bool {
	payload, memory := convert.Response(id, a.application, a.body), c.server.Admission.NewAnswers()
	if size := int64(len(payload)); size > smallAnswer {
		if err := memory.Take(size, false); err != nil {
			refusal := failure(err)
			reply.send(convert.Response(id, refusal.application, refusal.body))
			return false
		}
		defer memory.Free()
	}
	return reply.send(payload) && reply.link.Flushed()
}

// serve answers the requests of a link, of at most limit bytes, with handle.
func (c *connection) serve(l *engine.Link, at string, limit int64, handle func(convert.Request) answer) {
	requests := &worker[*engine.Message]{begin: c.begin}
	requests.run = func(messages []*engine.Message) {
		for _, m := range messages {
			if err := refusalOf(m, "request", limit); err != nil {
				m.Settle(frame.Rejected{Error: linkError(err)})
				continue
			}
			request, err := convert.ParseRequest(m.Payload)
			if _, isIn := m.State.(frame.Transactional); isIn && err == nil {
				err = semantics.Errorf(semantics.InvalidOperation, "a request to a node cannot be in a transaction")
			}
			if err != nil {
				m.Settle(frame.Rejected{Error: linkError(err)})
				continue
			}
			reply := c.replyTo(l.Session(), at, request.ReplyTo)
			if reply == nil {
				m.Settle(frame.Rejected{Error: &frame.Error{
					Condition: notFound, Description: "the session has no link for the answer that reply-to names",
				}})
				continue
			}
			a := handle(request)
			m.Settle(frame.Accepted{})
			if isDelivered := c.deliver(reply, request.ID, a); a.ended != nil {
				a.ended(isDelivered)
			}
		}
	}
	l.Accept(engine.Accepted{
		MaxMessageSize: uint64(limit), MaxTransfer: uint64(limit), Credit: requestCredit,
		OnMessage: requests.add,
	})
}
