package engine_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

// TestAttachFramesAreBounded attaches links with long names, which are kept as long as the links are.
func TestAttachFramesAreBounded(t *testing.T) {
	t.Parallel()
	const length, most = 60 << 10, 2<<20/(60<<10) - 1
	p := open(t, engine.Config{})
	p.begin(0, 10)
	name := strings.Repeat("x", length)
	attach := func(handle uint32) { p.send(0, &frame.Attach{Name: name, Handle: handle}) }
	for i := range uint32(2 * most) { // detached, they take nothing
		attach(i % 100)
		(<-p.links).Close(nil)
		p.send(0, &frame.Detach{Handle: i % 100})
		expect[*frame.Attach](p)
		expect[*frame.Detach](p)
	}
	for i := range uint32(most) {
		attach(i)
		<-p.links
	}
	attach(most)
	attach(most + 1)
	p.closed("amqp:resource-limit-exceeded")
}

// TestSettlementsTakeMemoryUntilTheyAreRun has a client that settles with states of 30 KiB. What the service has run takes
// nothing. If it does not run them, the connection is not read, and cut off in the end.
func TestSettlementsTakeMemoryUntilTheyAreRun(t *testing.T) {
	t.Parallel()
	const deliveries, most = 700, 8 << 20 / (30 << 10)
	p := open(t, engine.Config{IdleTimeout: 100 * time.Millisecond})
	p.begin(0, 2*deliveries)
	settled := make(chan []engine.Settlement, deliveries)
	l := p.attach(0, true, engine.Accepted{
		OnSettled: func(all []engine.Settlement, _ frame.State, _ bool) { settled <- all },
	})
	p.send(0, &frame.Flow{IncomingWindow: 2 * deliveries, Handle: new(uint32), LinkCredit: pointer(uint32(deliveries))})
	l.Wanted()
	for i := range deliveries {
		l.Send(engine.Delivery{Tag: []byte{1}, Ref: i})
		expect[*frame.Transfer](p)
	}
	state := frame.Modified{Annotations: codec.Map{codec.Entry("x", strings.Repeat("x", 30<<10))}}
	settle := func(i uint32) error {
		d := &frame.Disposition{IsReceiver: true, First: i, Last: i, State: state}
		_, err := p.net.Write(frame.Append(nil, frame.Frame{Body: d}))
		return err
	}
	i := uint32(0)
	for ; i < most+50; i++ {
		if err := settle(i); err != nil {
			t.Fatal(err)
		}
		l.Release(<-settled)
	}
	for ; i < deliveries && settle(i) == nil; i++ { // which fails when the connection is cut off
	}
	if err := <-p.served; err == nil || len(settled) > most+1 {
		t.Errorf("%d settlements were taken over, served until %v", len(settled), err)
	}
}

func TestMessagesTakeMoreThanTheirPayload(t *testing.T) {
	t.Parallel()
	const most = 8 << 20 / 512
	p := open(t, engine.Config{IdleTimeout: 100 * time.Millisecond})
	p.begin(0, 10)
	taken := make(chan *engine.Message, 2*most)
	p.attach(0, false, engine.Accepted{MaxTransfer: 10, Credit: 4 * most, OnMessage: func(m *engine.Message) { taken <- m }})
	var all []byte
	for i := range uint32(2 * most) {
		all = frame.Append(all, frame.Frame{Body: &frame.Transfer{DeliveryID: &i}, Payload: []byte("x")})
	}
	_, _ = p.net.Write(all) // which fails when the connection is cut off
	if err := <-p.served; err == nil || len(taken) > most {
		t.Errorf("%d messages were taken over, served until %v", len(taken), err)
	}
}

func TestAWindowThatStaysClosed(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{StallAfter: 20 * time.Millisecond})
	p.begin(0, 0)
	l := p.attach(0, true, engine.Accepted{})
	flow := func(window, next uint32) {
		p.send(0, &frame.Flow{
			IncomingWindow: window, NextIncomingID: &next, Handle: new(uint32), LinkCredit: pointer(uint32(5)), Echo: true,
		})
		expect[*frame.Flow](p)
	}
	flow(0, 0)
	wanted := make(chan engine.Want, 1)
	go func() {
		want, _ := l.Wanted()
		wanted <- want
	}()
	if l.Send(engine.Delivery{Tag: []byte("t"), Payload: []byte("x")}) {
		t.Error("sent without a window")
	}
	if len(wanted) > 0 {
		t.Errorf("without a window the client wants %+v", <-wanted)
	}
	flow(2, 0)
	if want := <-wanted; want.Credit != 2 {
		t.Errorf("with a window of 2 the client wants %+v", want)
	}
	if l.Send(engine.Delivery{Tag: []byte("t"), Payload: make([]byte, 5000)}) {
		t.Error("sent with too small a window")
	}
	expect[*frame.Transfer](p)
	expect[*frame.Transfer](p)
	if d := expect[*frame.Detach](p); d.Error == nil || d.Error.Condition != "amqp:resource-limit-exceeded" {
		t.Errorf("cut off within a message, the link is detached with %v", d.Error)
	}
}

// TestWhatTheServiceDoesNotGet has operations with a state that end before the service: their transaction must know.
func TestWhatTheServiceDoesNotGet(t *testing.T) {
	t.Parallel()
	dropped := make(chan frame.State, 10)
	p := open(t, engine.Config{Dropped: func(s frame.State) { dropped <- s }})
	p.begin(0, 10)
	want := func(what, id string) {
		t.Helper()
		select {
		case s := <-dropped:
			if in, ok := s.(frame.Transactional); !ok || string(in.ID) != id {
				t.Errorf("%s: %+v", what, s)
			}
		case <-time.After(patience):
			t.Errorf("%s is not reported", what)
		}
	}
	in := func(id string) frame.State { return frame.Transactional{ID: []byte(id), Outcome: frame.Accepted{}} }
	l, messages := p.receive(engine.Accepted{MaxTransfer: 10, Credit: 5})
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(0)), More: true, State: in("cut off")}, "x")
	p.send(0, &frame.Flow{Handle: new(uint32), Echo: true})
	expect[*frame.Flow](p)
	l.Close(nil)
	want("a message that the end of its link cuts off", "cut off")
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(1)), State: in("closed")}, "x")
	want("a message on a closed link", "closed")
	expect[*frame.Detach](p)
	p.send(0, &frame.Disposition{IsReceiver: true, First: 7, Last: 7, State: in("unknown"), Settled: true})
	want("a settlement of an unknown delivery", "unknown")
	p.send(0, &frame.Disposition{IsReceiver: true, First: 7, Last: 1 << 31, State: in("range"), Settled: true})
	want("one of many", "range")
	p.send(0, &frame.Detach{})
	p.receive(engine.Accepted{MaxTransfer: 10, Credit: 1})
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(0))}, "x")
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(1)), State: in("credit")}, "x")
	want("a message without credit", "credit")
	if len(messages)+len(dropped) > 0 {
		t.Errorf("%d messages have arrived, %d more were dropped", len(messages), len(dropped))
	}
}

func TestAPanicUnderTheMutexEndsTheConnection(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{Memory: func() engine.Memory { panic("bug") }})
	p.begin(0, 10)
	p.receive(engine.Accepted{MaxTransfer: 10, Credit: 1})
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(0))})
	p.closed("amqp:internal-error")
}

func TestOneDeliveryAfterTheOther(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 10)
	p.receive(engine.Accepted{MaxTransfer: 10, Credit: 5})
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(0)), More: true}, "x")
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(1))}, "y")
	p.closed("amqp:invalid-field")
}
