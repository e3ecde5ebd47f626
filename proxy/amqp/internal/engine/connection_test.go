package engine_test

import (
	"bytes"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

func (p *peer) sasl(init *frame.Init) *frame.Outcome {
	p.Helper()
	p.write(frame.SASLHeader[:])
	p.header(frame.SASLHeader)
	names := expect[*frame.Mechanisms](p).Names
	if len(names) != 4 || names[0] != "MSSBCBS" {
		p.Errorf("mechanisms are %v", names)
	}
	p.write(frame.Append(nil, frame.Frame{Type: frame.SASL, Body: init}))
	return expect[*frame.Outcome](p)
}

func TestSASL(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		init  frame.Init
		want  engine.Login
		isOut bool
	}{
		{init: frame.Init{Mechanism: "ANONYMOUS"}, want: engine.Login{Mechanism: "ANONYMOUS"}},
		{init: frame.Init{Mechanism: "MSSBCBS"}, want: engine.Login{Mechanism: "MSSBCBS"}},
		{init: frame.Init{Mechanism: "EXTERNAL", Response: []byte{}}, want: engine.Login{Mechanism: "EXTERNAL"}},
		{init: frame.Init{Mechanism: "PLAIN", Response: []byte("\x00u\x00p")}, want: engine.Login{Mechanism: "PLAIN", User: "u", Password: "p"}},
		{init: frame.Init{Mechanism: "PLAIN", Response: []byte("\x00u\x00wrong")}, want: engine.Login{Mechanism: "PLAIN", User: "u", Password: "wrong"}, isOut: true},
		{init: frame.Init{Mechanism: "PLAIN", Response: []byte("u")}, isOut: true},
		{init: frame.Init{Mechanism: "SCRAM"}, isOut: true},
	} {
		var got engine.Login
		p := dial(t, engine.Config{Authenticate: func(l engine.Login) error {
			got = l
			if l.Password == "wrong" {
				return errors.New("wrong")
			}
			return nil
		}})
		outcome := p.sasl(&row.init)
		if got != row.want || (outcome.Code != 0) != row.isOut {
			t.Errorf("%s: outcome %d, login %+v", row.init.Mechanism, outcome.Code, got)
		}
		if row.isOut {
			if err := <-p.served; err == nil {
				t.Error("the connection goes on")
			}
			continue
		}
		p.write(frame.AMQPHeader[:])
		p.header(frame.AMQPHeader)
		p.send(0, &frame.Open{ContainerID: "c"})
		expect[*frame.Open](p)
		p.send(0, &frame.Close{})
		if c := expect[*frame.Close](p); c.Error != nil {
			t.Errorf("closed with %v", c.Error)
		}
	}
}

func TestOtherProtocolsGetAHeaderAndNothingElse(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"GET / HTTP/1.1\r\n\r\n", "AMQP\x00\x00\x09\x01", "AMQP\x02\x01\x00\x00"} {
		p := dial(t, engine.Config{})
		p.write([]byte(first))
		p.header(frame.SASLHeader)
		if err := <-p.served; err == nil {
			t.Errorf("%q is served", first)
		}
	}
}

func TestASlowHandshakeIsCutOff(t *testing.T) {
	t.Parallel()
	p := dial(t, engine.Config{HandshakeTimeout: 50 * time.Millisecond})
	p.write([]byte("AMQP"))
	if err := <-p.served; err == nil {
		t.Error("the connection goes on")
	}
}

func TestHeartbeats(t *testing.T) {
	t.Parallel()
	p := dial(t, engine.Config{})
	p.write(frame.AMQPHeader[:])
	p.header(frame.AMQPHeader)
	p.send(0, &frame.Open{ContainerID: "c", IdleTimeout: 500})
	expect[*frame.Open](p)
	for range 2 {
		if f, err := p.reader.Next(); err != nil || f.Body != nil {
			t.Fatalf("got %+v, %v", f, err)
		}
	}
}

func TestASilentClientIsCutOff(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{IdleTimeout: 100 * time.Millisecond})
	p.closed("amqp:resource-limit-exceeded")
}

func TestCloseTellsTheClient(t *testing.T) {
	t.Parallel()
	p := open(t, engine.Config{})
	p.begin(0, 100)
	l := p.attach(0, true, engine.Accepted{})
	p.conn.Close("stopping")
	p.closed("amqp:connection:forced")
	<-l.Context().Done()
}

// TestMalformedInput checks that each breach closes the connection with a condition, and ends its links.
func TestMalformedInput(t *testing.T) {
	t.Parallel()
	begin := &frame.Begin{IncomingWindow: 10, OutgoingWindow: 10}
	raw := func(b ...byte) func(*peer) { return func(p *peer) { p.write(b) } }
	frames := func(channel uint16, bodies ...frame.Performative) func(*peer) {
		return func(p *peer) {
			var all []byte
			for _, body := range bodies {
				all = frame.Append(all, frame.Frame{Channel: channel, Body: body})
			}
			p.write(all)
		}
	}
	for _, row := range []struct {
		name, condition string
		send            func(*peer)
	}{
		{"garbage", "amqp:decode-error", raw(bytes.Repeat([]byte{0xff}, 100)...)},
		{"frame that is too large", "amqp:decode-error", raw(0, 1, 0, 1, 2, 0, 0, 0)},
		{"no performative", "amqp:decode-error", raw(0, 0, 0, 9, 2, 0, 0, 0, 0x40)},
		{"SASL after the handshake", "amqp:connection:framing-error", func(p *peer) {
			p.write(frame.Append(nil, frame.Frame{Type: frame.SASL, Body: &frame.Init{Mechanism: "PLAIN"}}))
		}},
		{"second open", "amqp:not-allowed", frames(0, &frame.Open{ContainerID: "again"})},
		{"second begin", "amqp:connection:framing-error", frames(3, begin, begin)},
		{"channel above the most", "amqp:connection:framing-error", frames(5000, begin)},
		{"answer to a begin", "amqp:not-allowed", frames(0, &frame.Begin{RemoteChannel: pointer(uint16(0))})},
		{"frame without session", "amqp:connection:framing-error", frames(9, &frame.Flow{})},
		{"flow of an unknown link", "amqp:session:unattached-handle", frames(0, begin, &frame.Flow{Handle: pointer(uint32(1))})},
		{"transfer of an unknown link", "amqp:session:unattached-handle", frames(0, begin, &frame.Transfer{})},
		{"detach of an unknown link", "amqp:session:unattached-handle", frames(0, begin, &frame.Detach{})},
		{"handle above the most", "amqp:connection:framing-error", frames(0, begin, &frame.Attach{Name: "a", Handle: 256})},
		{"handle in use", "amqp:session:handle-in-use", frames(0, begin, &frame.Attach{Name: "a"}, &frame.Attach{Name: "b"})},
		{"transfer to a link that is not attached yet", "amqp:session:errant-link", frames(0, begin, &frame.Attach{Name: "a"}, &frame.Transfer{DeliveryID: pointer(uint32(0))})},
		{"transfer on a link to the client", "amqp:session:errant-link", frames(0, begin, &frame.Attach{Name: "a", IsReceiver: true}, &frame.Transfer{DeliveryID: pointer(uint32(0))})},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			p := open(t, engine.Config{})
			row.send(p)
			for {
				f := p.next()
				if c, ok := f.Body.(*frame.Close); ok {
					if c.Error == nil || c.Error.Condition != row.condition || c.Error.Description == "" {
						t.Errorf("closed with %v, want %s", c.Error, row.condition)
					}
					return
				}
			}
		})
	}
}

func TestAFrameBeforeOpenIsRefused(t *testing.T) {
	t.Parallel()
	p := dial(t, engine.Config{})
	p.write(frame.AMQPHeader[:])
	p.header(frame.AMQPHeader)
	p.send(0, &frame.Begin{})
	if err := <-p.served; err == nil {
		t.Error("the connection goes on")
	}
}

// TestAClientThatDoesNotOpenIsCutOff has a client that only writes empty frames, which are signs of life.
func TestAClientThatDoesNotOpenIsCutOff(t *testing.T) {
	t.Parallel()
	p := dial(t, engine.Config{HandshakeTimeout: 100 * time.Millisecond})
	p.write(frame.AMQPHeader[:])
	p.header(frame.AMQPHeader)
	late := time.After(patience)
	for {
		select {
		case err := <-p.served:
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("served until %v", err)
			}
			return
		case <-late:
			t.Fatal("the connection stays open")
		case <-time.After(10 * time.Millisecond):
			_, _ = p.net.Write(frame.Append(nil, frame.Frame{})) // which fails in the end
		}
	}
}

func TestAPanicEndsOnlyItsConnection(t *testing.T) {
	t.Parallel()
	panicked := make(chan any, 1)
	p := open(t, engine.Config{Panicked: func(recovered any, _ []byte) { panicked <- recovered }})
	other := open(t, engine.Config{})
	p.begin(0, 10)
	p.attach(0, false, engine.Accepted{MaxTransfer: 10, Credit: 1, OnMessage: func(*engine.Message) { panic("bug") }})
	expect[*frame.Flow](p)
	p.send(0, &frame.Transfer{DeliveryID: pointer(uint32(0))})
	p.closed("amqp:internal-error")
	if got := <-panicked; got != "bug" {
		t.Errorf("recovered %v", got)
	}
	other.begin(0, 10)
}

// FuzzServe checks that no bytes after the handshake make the engine panic, hang or leak.
func FuzzServe(f *testing.F) {
	add := func(bodies ...frame.Performative) {
		var all []byte
		for _, body := range bodies {
			all = frame.Append(all, frame.Frame{Body: body, Payload: []byte("x")})
		}
		f.Add(all)
	}
	begin := &frame.Begin{IncomingWindow: 10, OutgoingWindow: 10}
	source := &frame.Source{Address: "q", Filter: codec.Map{codec.Named("com.microsoft:session-filter", nil)}}
	add(begin, &frame.Attach{Name: "a", IsReceiver: true, Source: source}, &frame.Flow{Handle: new(uint32), LinkCredit: pointer(uint32(9)), Drain: true})
	add(begin, &frame.Attach{Name: "a"}, &frame.Transfer{DeliveryID: new(uint32), More: true}, &frame.Transfer{Aborted: true}, &frame.Detach{})
	add(begin, &frame.Disposition{IsReceiver: true, Last: 1<<32 - 1, State: frame.Accepted{}}, &frame.End{}, &frame.Close{})
	f.Fuzz(func(t *testing.T, data []byte) {
		p := dial(t, engine.Config{Panicked: func(recovered any, stack []byte) { t.Errorf("%v\n%s", recovered, stack) }})
		go func() {
			for l := range p.links {
				l.Accept(engine.Accepted{MaxTransfer: 100, Credit: 2, OnMessage: func(m *engine.Message) { m.Settle(frame.Accepted{}) }})
			}
		}()
		all := append(frame.AMQPHeader[:], frame.Append(nil, frame.Frame{Body: &frame.Open{ContainerID: "c"}})...)
		go func() {
			_, _ = p.net.Write(append(all, data...))
			_ = p.net.(interface{ CloseWrite() error }).CloseWrite()
		}()
		for {
			if _, err := p.net.Read(make([]byte, 4096)); err != nil {
				break
			}
		}
		t.Logf("served until: %v", <-p.served)
		close(p.links)
	})
}
