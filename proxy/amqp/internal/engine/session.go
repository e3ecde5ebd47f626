package engine

import (
	"cmp"
	"slices"

	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// session is a session of a connection. The mutex of the connection guards it.
type session struct {
	conn    *Conn
	channel uint16 // of this side
	remote  uint16 // of the client

	links   map[uint32]*Link // by the handle of the client
	handles map[uint32]bool  // of this side that are in use
	most    uint32           // handle of this side that the client allows

	nextIncoming   uint32 // id of the next transfer of the client
	incomingWindow uint32 // transfers that the client may send
	nextOutgoing   uint32 // id of the next transfer of this side
	remoteWindow   uint32 // transfers that this side may send

	nextDelivery uint32
	unsettled    map[uint32]*outgoing // by delivery id
	isOver       bool
}

// outgoing is a delivery that the client has not settled.
type outgoing struct {
	link *Link
	ref  any
}

// begin begins a session.
func (c *Conn) begin(remote uint16, begin *frame.Begin) error {
	if begin.RemoteChannel != nil {
		return violation(notAllowed, "this side begins no sessions")
	}
	if c.sessions[remote] != nil {
		return violation(framingError, "channel %d has a session already", remote)
	}
	if remote > channelMax {
		return violation(framingError, "channel %d is above channel-max", remote)
	}
	s := &session{
		conn: c, remote: remote, links: map[uint32]*Link{}, handles: map[uint32]bool{}, most: 1<<32 - 1,
		nextIncoming: begin.NextOutgoingID, incomingWindow: incomingWindow, remoteWindow: begin.IncomingWindow,
		unsettled: map[uint32]*outgoing{},
	}
	for c.channels[s.channel] {
		s.channel++
	}
	if begin.HandleMax != nil {
		s.most = *begin.HandleMax
	}
	c.sessions[remote], c.channels[s.channel] = s, true
	most := uint32(handleMax)
	c.send(frame.Frame{Channel: s.channel, Body: &frame.Begin{
		RemoteChannel: &remote, NextOutgoingID: s.nextOutgoing, IncomingWindow: incomingWindow,
		OutgoingWindow: outgoingWindow, HandleMax: &most,
	}})
	return nil
}

// ended ends the session and its links.
func (s *session) ended() {
	for _, l := range s.links {
		l.over()
	}
	s.isOver = true
	delete(s.conn.sessions, s.remote)
	delete(s.conn.channels, s.channel)
}

func (s *session) send(body frame.Performative) {
	if !s.isOver {
		s.conn.send(frame.Frame{Channel: s.channel, Body: body})
	}
}

// flow takes over what the client says of its window and of the credit of a link.
func (s *session) flow(f *frame.Flow) error {
	var known uint32 // id of the next transfer as the client knows it
	if f.NextIncomingID != nil {
		known = *f.NextIncomingID
	}
	window := known + f.IncomingWindow - s.nextOutgoing
	if onWay := s.nextOutgoing - known; f.IncomingWindow < onWay {
		window = 0
	}
	s.remoteWindow = window
	if window > 0 {
		for _, l := range s.links {
			l.changed.fire()
		}
	}
	if f.Handle == nil {
		if f.Echo {
			s.sendFlow(nil)
		}
		return nil
	}
	l, err := s.link(*f.Handle)
	if err != nil {
		return err
	}
	l.flow(f)
	return nil
}

// sendFlow announces the window, and the credit of a link unless it is nil.
func (s *session) sendFlow(l *Link) {
	next := s.nextIncoming
	f := &frame.Flow{
		NextIncomingID: &next, IncomingWindow: s.incomingWindow, NextOutgoingID: s.nextOutgoing,
		OutgoingWindow: outgoingWindow,
	}
	if l != nil {
		handle, count, credit := l.handle, l.deliveryCount, l.credit
		f.Handle, f.DeliveryCount, f.LinkCredit = &handle, &count, &credit
		if l.IsToClient {
			available := uint32(0)
			f.Available, f.Drain = &available, l.isDraining
		}
	}
	s.send(f)
}

// arrived counts a transfer, and opens the window again when half of it is used.
func (s *session) arrived() error {
	if s.incomingWindow == 0 {
		return violation(windowViolation, "the incoming window is used up")
	}
	s.nextIncoming++
	s.incomingWindow--
	if s.incomingWindow < incomingWindow/2 {
		s.incomingWindow = incomingWindow
		s.sendFlow(nil)
	}
	return nil
}

// link returns the link of a handle of the client. One that this side has closed is there until the client knows.
func (s *session) link(handle uint32) (*Link, error) {
	l := s.links[handle]
	if l == nil {
		return nil, violation(unattachedHandle, "handle %d is not attached", handle)
	}
	return l, nil
}

// Settlement is a delivery that the client wants to settle.
type Settlement struct {
	ID  uint32
	Ref any // what the Service has sent it with

	held int // bytes that count for the connection, until Release
}

// disposition returns a function that reports to the Service which deliveries the client settles. Its bytes count until
// the Service has run it: the state may be as large as the frame.
func (s *session) disposition(d *frame.Disposition, size int) (after func()) {
	if !d.IsReceiver || !settles(d) {
		return nil // of what the client has sent, this side has settled all
	}
	var calls []func()
	known := 0
	for _, run := range s.settled(d.First, d.Last) {
		known += len(run.all)
		if accepted := run.link.accepted; accepted != nil && accepted.OnSettled != nil {
			run.all[0].held = size
			s.conn.queued += size
			calls = append(calls, func() { accepted.OnSettled(run.all, d.State, !d.Settled) })
		}
	}
	if uint64(known) <= uint64(d.Last-d.First) {
		s.conn.dropped(d.State)
	}
	if d.First == d.Last && len(calls) == 0 && !d.Settled && d.First-s.nextDelivery >= 1<<31 {
		s.send(&frame.Disposition{First: d.First, Last: d.First, Settled: true, State: lost})
	}
	return func() {
		for _, call := range calls {
			call()
		}
	}
}

// lost answers a settlement of what this side does not know any more.
var lost = frame.Rejected{Error: &frame.Error{
	Condition: "com.microsoft:message-lock-lost", Description: "the delivery is settled already, or too old",
}}

// settles reports whether a disposition settles anything.
func settles(d *frame.Disposition) bool {
	if d.State == nil {
		return d.Settled
	}
	_, isProgress := d.State.(frame.Received)
	return !isProgress || d.Settled
}

// run are deliveries of one link in their order.
type run struct {
	link *Link
	all  []Settlement
}

// settled takes the deliveries of a range of ids out of the unsettled ones.
func (s *session) settled(first, last uint32) (runs []run) {
	for _, id := range s.within(first, last) {
		o := s.unsettled[id]
		delete(s.unsettled, id)
		o.link.unsettled--
		o.link.changed.fire()
		if n := len(runs); n == 0 || runs[n-1].link != o.link {
			runs = append(runs, run{link: o.link})
		}
		at := &runs[len(runs)-1]
		at.all = append(at.all, Settlement{ID: id, Ref: o.ref})
	}
	return runs
}

// within returns the ids of a range that are not settled, in their order. It takes no longer than there are such ids,
// however large the range is.
func (s *session) within(first, last uint32) (ids []uint32) {
	switch length := last - first; {
	case length > maxUnsettled*handleMax: // no client has so many
	case length <= uint32(len(s.unsettled)):
		for n := range length + 1 {
			if s.unsettled[first+n] != nil {
				ids = append(ids, first+n)
			}
		}
	default:
		for id := range s.unsettled {
			if id-first <= length {
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(a, b uint32) int { return cmp.Compare(a-first, b-first) })
	}
	return ids
}
