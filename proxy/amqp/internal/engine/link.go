package engine

import (
	"context"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// Link is a link that the client attaches. Its methods may be called by any goroutine.
type Link struct {
	// Request is what the client asks for. It must not be changed.
	Request *frame.Attach
	// IsToClient: the client receives. Otherwise it sends.
	IsToClient bool

	session *session
	handle  uint32          // of this side
	size    int             // of the request in bytes
	ctx     context.Context //nolint:containedctx // of the link: it ends with it
	end     context.CancelFunc

	// guarded by the mutex of the connection:

	accepted *Accepted // nil: the Service has not decided, or has refused it
	isClosed bool      // by this side; frames of the client mean nothing
	isOver   bool

	deliveryCount uint32
	credit        uint32
	changed       signal // of the credit, the window or the unsettled deliveries

	// of a link to the client:
	isDraining bool
	withdrawn  signal // the client wants less than before, or drains
	unsettled  int

	// of a link from the client:
	partial *Message
	open    uint32 // messages that the Service has not settled
}

// Accepted is how the Service accepts a link.
type Accepted struct {
	// Source replaces that of the client in the answer; nil: it stays.
	Source *frame.Source
	// Properties are those of the link.
	Properties codec.Map

	// MaxMessageSize is announced, and MaxTransfer is refused beyond, of a link from the client. Credit is how many
	// messages the client may have sent that are not settled.
	MaxMessageSize, MaxTransfer uint64
	Credit                      uint32
	// OnMessage gets each message of the client. It must not block, and settles each message.
	OnMessage func(*Message)

	// IsOver reports whether a delivery with this Ref cannot be settled any more. If the client has too many that it
	// has not settled, such ones are forgotten. It must not block. Nil: none is over before the link.
	IsOver func(ref any) bool
	// OnSettled gets what the client settles, with its state, which may be nil. isAsked: the client expects an
	// Acknowledge. It must not block.
	OnSettled func(all []Settlement, state frame.State, isAsked bool)
}

// Context ends with the link.
func (l *Link) Context() context.Context { return l.ctx }

// Session identifies the session of the link among those of its connection.
func (l *Link) Session() any { return l.session }

// attach begins a link. after passes it to the Service.
func (s *session) attach(request *frame.Attach, size int) (after func(), err error) {
	switch {
	case request.Handle > handleMax:
		return nil, violation(framingError, "handle %d is above handle-max", request.Handle)
	case s.conn.links >= maxLinks:
		return nil, violation(limitExceeded, "a connection may have %d links", maxLinks)
	case s.conn.attached+size > maxAttached:
		return nil, violation(limitExceeded, "the links of a connection may take %d bytes of attach frames", maxAttached)
	case s.links[request.Handle] != nil:
		return nil, violation(handleInUse, "handle %d is attached already", request.Handle)
	}
	l := &Link{Request: request, IsToClient: request.IsReceiver, session: s, size: size}
	for s.handles[l.handle] {
		l.handle++
	}
	if l.handle > s.most {
		return nil, violation(limitExceeded, "the client allows only %d links in a session", uint64(s.most)+1)
	}
	if !l.IsToClient && request.InitialDeliveryCount != nil {
		l.deliveryCount = *request.InitialDeliveryCount
	}
	l.ctx, l.end = context.WithCancel(s.conn.ctx)
	s.links[request.Handle], s.handles[l.handle] = l, true
	s.conn.links++
	s.conn.attached += size
	return func() { s.conn.service.Attach(l) }, nil
}

// Accept answers the attach. It reports false if the link is over.
func (l *Link) Accept(a Accepted) bool {
	l.session.conn.mu.Lock()
	defer l.session.conn.mu.Unlock()
	if l.isOver || l.isClosed {
		return false
	}
	l.accepted = &a
	answer := l.answer()
	if answer.Source, answer.Target = l.Request.Source, l.Request.Target; a.Source != nil {
		answer.Source = a.Source
	}
	answer.Properties = a.Properties
	if !l.IsToClient {
		answer.MaxMessageSize = a.MaxMessageSize
	}
	l.session.send(answer)
	if !l.IsToClient {
		l.topUp()
	}
	return true
}

// answer returns an attach of this side without source and target.
func (l *Link) answer() *frame.Attach {
	answer := &frame.Attach{
		Name: l.Request.Name, Handle: l.handle, IsReceiver: !l.IsToClient,
		SenderSettleMode: l.Request.SenderSettleMode, ReceiverSettle: l.Request.ReceiverSettle,
	}
	if l.IsToClient {
		answer.InitialDeliveryCount = new(uint32)
	}
	return answer
}

// Close detaches the link with an error. A link that was not accepted is refused with it. It does nothing if the link
// is over.
func (l *Link) Close(why *frame.Error) {
	l.session.conn.mu.Lock()
	defer l.session.conn.mu.Unlock()
	l.close(why)
}

func (l *Link) close(why *frame.Error) {
	if l.isOver || l.isClosed {
		return
	}
	if l.accepted == nil {
		l.session.send(l.answer())
	}
	l.session.send(&frame.Detach{Handle: l.handle, Closed: true, Error: why})
	l.isClosed = true
	l.forget()
}

// detach ends a link at the wish of the client, or because this side has closed it.
func (s *session) detach(d *frame.Detach) error {
	l, err := s.link(d.Handle)
	if err != nil {
		return err
	}
	l.close(nil)
	l.over()
	return nil
}

// over removes the link from its session.
func (l *Link) over() {
	l.isOver = true
	l.forget()
	delete(l.session.links, l.Request.Handle)
	delete(l.session.handles, l.handle)
	l.session.conn.links--
	l.session.conn.attached -= l.size
}

// forget frees what the link holds, and ends its context.
func (l *Link) forget() {
	if l.partial != nil {
		l.partial.discard()
		l.session.conn.partial -= l.partial.held
		l.session.conn.dropped(l.partial.State)
		l.partial = nil
	}
	if l.unsettled > 0 {
		for id, o := range l.session.unsettled {
			if o.link == l {
				delete(l.session.unsettled, id)
			}
		}
		l.unsettled = 0
	}
	l.end()
	l.changed.fire()
	l.withdrawn.fire()
}

// flow takes over the credit that the client grants, or answers its question.
func (l *Link) flow(f *frame.Flow) {
	if l.isClosed {
		return
	}
	if l.IsToClient && f.LinkCredit != nil {
		known := uint32(0) // the delivery count as the client knows it
		if f.DeliveryCount != nil {
			known = *f.DeliveryCount
		}
		credit := known + *f.LinkCredit - l.deliveryCount
		if onWay := l.deliveryCount - known; *f.LinkCredit < onWay {
			credit = 0
		}
		if credit < l.credit || f.Drain {
			l.withdrawn.fire()
		}
		l.credit, l.isDraining = credit, f.Drain
		l.changed.fire()
	}
	if f.Echo && !l.isDraining && l.accepted != nil {
		l.session.sendFlow(l)
	}
}
