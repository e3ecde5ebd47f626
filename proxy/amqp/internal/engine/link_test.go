package engine_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// receive attaches a link on which the client sends. The messages are in the channel.
func (p *peer) receive(accepted engine.Accepted) (*engine.Link, chan *engine.Message) {
	p.Helper()
	messages := make(chan *engine.Message, 100)
	accepted.OnMessage = func(m *engine.Message) { messages <- m }
	l := p.attach(0, false, accepted)
	if f := expect[*frame.Flow](p); *f.LinkCredit != accepted.Credit {
		p.Errorf("credit is %d, want %d", *f.LinkCredit, accepted.Credit)
	}
	return l, messages
}

func TestMessagesInSeveralFrames(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	_, messages := p.receive(engine.Accepted{MaxTransfer: 6, Credit: 2})
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(7)), MessageFormat: pointer(uint32(5)), More: true}, "ab")
	p.send(0, &frame.Transfer{More: true}, "cd")
	p.send(0, &frame.Transfer{}, "ef")
	m := <-messages
	if string(m.Payload) != "abcdef" || m.Format != 5 || m.IsTooLarge {
		t.Errorf("got %+v", m)
	}
	m.Settle(frame.Rejected{Error: &frame.Error{Condition: "no"}})
	d := expect[*frame.Disposition](p)
	if d.First != 7 || d.Last != 7 || !d.Settled || !d.IsReceiver || d.State.(frame.Rejected).Error.Condition != "no" {
		t.Errorf("settled with %+v", d)
	}

	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(8)), More: true}, "ab")
	p.send(0, &frame.Transfer{Aborted: true}) // as if it had not been sent, so its credit comes back
	for range 2 {
		if f := expect[*frame.Flow](p); *f.LinkCredit != 2 {
			t.Errorf("credit is %d", *f.LinkCredit)
		}
		if len(messages) > 0 {
			t.Fatal("an aborted message has arrived")
		}
		p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(9)), More: true}, "abc")
		p.send(0, &frame.Transfer{}, "defg")
		m = <-messages
		if !m.IsTooLarge || len(m.Payload) > 0 {
			t.Errorf("got %+v", m)
		}
		m.Settle(frame.Accepted{})
		expect[*frame.Disposition](p)
		p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(10)), Settled: true}, "x")
		(<-messages).Settle(frame.Accepted{}) // which is not answered
	}
}

func TestCreditOfAClientThatSends(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	_, messages := p.receive(engine.Accepted{MaxTransfer: 6, Credit: 4})
	for i := range uint32(4) {
		p.send(0, &frame.Transfer{DeliveryID: &i, Settled: true}, "x")
	}
	(<-messages).Settle(frame.Accepted{})
	if f := expect[*frame.Flow](p); *f.LinkCredit != 1 || *f.DeliveryCount != 4 {
		t.Errorf("credit is %d after %d", *f.LinkCredit, *f.DeliveryCount)
	}
	for i := range uint32(2) {
		p.send(0, &frame.Transfer{DeliveryID: &i, Settled: true}, "x")
	}
	if d := expect[*frame.Detach](p); d.Error == nil || d.Error.Condition != "amqp:link:transfer-limit-exceeded" {
		t.Errorf("detached with %v", d.Error)
	}
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(1))}) // means nothing any more
	p.send(0, &frame.Detach{Handle: 0, Closed: true})
	p.attach(0, false, engine.Accepted{Credit: 1}) // the handle is free
}

func TestWindows(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 1)
	l := p.attach(0, true, engine.Accepted{})
	p.send(0, &frame.Flow{IncomingWindow: 1, NextIncomingID: new(uint32), Handle: new(uint32), LinkCredit: pointer(uint32(2))})
	want, ok := l.Wanted()
	if !ok || want.Credit != 1 || want.IsDraining { // no more than the window
		t.Fatalf("wanted %+v", want)
	}
	body := bytes.Repeat([]byte("0123456789"), 200) // three frames of the client's size
	sent := make(chan bool, 1)
	go func() { sent <- l.Send(engine.Delivery{Tag: []byte("t"), Payload: body, Ref: "one"}) }()
	var got []byte
	for i := range uint32(3) {
		f := p.next()
		transfer := f.Body.(*frame.Transfer)
		got = append(got, f.Payload...)
		if (transfer.DeliveryID != nil) != (i == 0) || transfer.More != (i < 2) {
			t.Errorf("frame %d is %+v", i, transfer)
		}
		if i < 2 && len(sent) > 0 {
			t.Fatal("sent beyond the window")
		}
		p.send(0, &frame.Flow{IncomingWindow: 1, NextIncomingID: pointer(i + 1)})
	}
	if !<-sent || !bytes.Equal(got, body) || !l.Flushed() {
		t.Errorf("got %d bytes", len(got))
	}
}

func TestSettlementsOfAClient(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	type settled struct {
		all     []engine.Settlement
		state   frame.State
		isAsked bool
	}
	calls := make(chan settled, 10)
	l := p.attach(0, true, engine.Accepted{OnSettled: func(all []engine.Settlement, state frame.State, isAsked bool) {
		calls <- settled{all, state, isAsked}
	}})
	p.send(0, &frame.Flow{IncomingWindow: 100, Handle: new(uint32), LinkCredit: pointer(uint32(10))})
	l.Wanted()
	for i := range 5 {
		if !l.Send(engine.Delivery{Tag: []byte{byte(i)}, Ref: i, IsSettled: i == 4}) {
			t.Fatal("not sent")
		}
		expect[*frame.Transfer](p)
	}
	p.send(0, &frame.Disposition{IsReceiver: true, First: 0, Last: 1, State: frame.Received{}}) // settles nothing
	p.send(0, &frame.Disposition{IsReceiver: true, First: 1, Last: 9, State: frame.Accepted{}})
	got := <-calls
	if len(got.all) != 3 || got.all[0].Ref != 1 || got.all[2].Ref != 3 || !got.isAsked {
		t.Errorf("settled %+v", got)
	}
	l.Acknowledge([]engine.Settlement{got.all[0], got.all[2]}, frame.Accepted{})
	for _, id := range []uint32{1, 3} {
		if d := expect[*frame.Disposition](p); d.First != id || d.Last != id || !d.Settled || d.IsReceiver {
			t.Errorf("acknowledged %+v", d)
		}
	}
	p.send(0, &frame.Disposition{IsReceiver: true, First: 1, State: frame.Accepted{}, Last: 1}) // again
	if d := expect[*frame.Disposition](p); d.First != 1 || d.State.(frame.Rejected).Error.Condition != "com.microsoft:message-lock-lost" {
		t.Errorf("answered %+v", d)
	}
	p.send(0, &frame.Disposition{IsReceiver: true, First: 0, Last: 0, Settled: true})
	if got := <-calls; got.all[0].Ref != 0 || got.state != nil || got.isAsked {
		t.Errorf("settled %+v", got)
	}
}

func TestDrain(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	l := p.attach(0, true, engine.Accepted{})
	p.send(0, &frame.Flow{IncomingWindow: 100, Handle: new(uint32), LinkCredit: pointer(uint32(10))})
	want, _ := l.Wanted()
	p.send(0, &frame.Flow{IncomingWindow: 100, Handle: new(uint32), LinkCredit: pointer(uint32(10)), Drain: true})
	<-want.Withdrawn
	if want, _ = l.Wanted(); !want.IsDraining || want.Credit != 10 {
		t.Errorf("wanted %+v", want)
	}
	if !l.Send(engine.Delivery{Tag: []byte("t"), IsSettled: true}) {
		t.Fatal("not sent")
	}
	expect[*frame.Transfer](p)
	l.Drained()
	l.Drained() // answers once
	if f := expect[*frame.Flow](p); *f.DeliveryCount != 10 || *f.LinkCredit != 0 || !f.Drain {
		t.Errorf("drained with %+v", f)
	}
	if l.Send(engine.Delivery{}) {
		t.Error("sent without credit")
	}
	p.send(0, &frame.Flow{IncomingWindow: 100, Handle: new(uint32), DeliveryCount: pointer(uint32(10)), LinkCredit: pointer(uint32(3))})
	if want, _ = l.Wanted(); want.Credit != 3 || want.IsDraining {
		t.Errorf("wanted %+v", want)
	}
	p.send(0, &frame.Flow{IncomingWindow: 100, Handle: new(uint32), DeliveryCount: pointer(uint32(10)), LinkCredit: pointer(uint32(3)), Echo: true})
	if f := expect[*frame.Flow](p); *f.LinkCredit != 3 || f.Drain {
		t.Errorf("answered %+v", f)
	}
}

func TestRefusedLinks(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	p.send(0, &frame.Attach{Name: "a", Handle: 4, IsReceiver: true, Source: &frame.Source{Address: "q"}})
	l := <-p.links
	l.Close(&frame.Error{Condition: "amqp:not-found", Description: "q"})
	if a := expect[*frame.Attach](p); a.Source != nil || a.Target != nil || a.Name != "a" {
		t.Errorf("attached %+v", a)
	}
	if d := expect[*frame.Detach](p); !d.Closed || d.Error.Condition != "amqp:not-found" {
		t.Errorf("detached %+v", d)
	}
	<-l.Context().Done()
	if l.Accept(engine.Accepted{}) {
		t.Error("accepted what was refused")
	}
	p.send(0, &frame.Detach{Handle: 4, Closed: true})

	p.send(0, &frame.Attach{Name: "b", Handle: 4, IsReceiver: true}) // and the client gives up
	l = <-p.links
	p.send(0, &frame.Detach{Handle: 4, Closed: true})
	<-l.Context().Done()
	expect[*frame.Attach](p)
	if d := expect[*frame.Detach](p); d.Error != nil {
		t.Errorf("detached %+v", d)
	}
	if _, ok := l.Wanted(); ok {
		t.Error("a link that is over wants something")
	}
}

func TestEndEndsLinks(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	if b := p.begin(7, 100); *b.RemoteChannel != 7 {
		t.Errorf("answered for channel %d", *b.RemoteChannel)
	}
	p.send(7, &frame.Attach{Name: "a", IsReceiver: true})
	l := <-p.links
	p.send(7, &frame.End{})
	<-l.Context().Done()
	expect[*frame.End](p)
	p.begin(7, 100) // the channel is free
}

func TestMemoryOfMessagesIsBounded(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{IdleTimeout: 200 * time.Millisecond})
	p.begin(0, 100)
	const size = 9 << 20
	_, messages := p.receive(engine.Accepted{MaxTransfer: size, Credit: 10})
	go func() { // the messages of two transfers, of which the Service settles none
		piece := bytes.Repeat([]byte("x"), 60<<10)
		for i := range 400 {
			if _, err := p.net.Write(frame.Append(nil, frame.Frame{
				Body: &frame.Transfer{DeliveryID: pointer(uint32(i / 150)), More: i%150 != 149}, Payload: piece,
			})); err != nil {
				return
			}
		}
	}()
	p.closed("amqp:resource-limit-exceeded")
	if n := len(messages); n != 1 {
		t.Errorf("%d messages are in memory", n)
	}
}
