package engine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proxy/amqp/internal/engine"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds all waits.
const patience = 20 * time.Second

// service gives each link to the test.
type service struct{ attached chan *engine.Link }

func (s service) Attach(l *engine.Link) { s.attached <- l }

// peer is a client that writes frames by hand.
type peer struct {
	*testing.T

	net    net.Conn
	reader *frame.Reader
	conn   *engine.Conn
	links  chan *engine.Link
	served chan error
}

func pointer[T any](v T) *T { return &v }

// dial connects a client to an engine, and does nothing more.
func dial(t *testing.T, config engine.Config) *peer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if config.Authenticate == nil {
		config.Authenticate = func(engine.Login) error { return nil }
	}
	config.ContainerID = "server"
	p := &peer{
		T: t, net: client, reader: frame.NewReader(client, 64<<10), conn: engine.New(context.Background(), server, config),
		links: make(chan *engine.Link, 10), served: make(chan error, 1),
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.served <- p.conn.Serve(service{p.links})
	}()
	t.Cleanup(func() {
		client.Close()
		<-ended
	})
	_ = client.SetDeadline(time.Now().Add(patience))
	return p
}

// open connects a client and opens its connection.
func open(t *testing.T, config engine.Config) *peer {
	t.Helper()
	p := dial(t, config)
	p.write(frame.AMQPHeader[:])
	p.header(frame.AMQPHeader)
	p.send(0, &frame.Open{ContainerID: "client", MaxFrameSize: pointer(uint32(1024))})
	expect[*frame.Open](p)
	return p
}

func (p *peer) write(b []byte) {
	p.Helper()
	if _, err := p.net.Write(b); err != nil {
		p.Fatal(err)
	}
}

func (p *peer) header(want frame.Header) {
	p.Helper()
	var got frame.Header
	if _, err := io.ReadFull(p.net, got[:]); err != nil || got != want {
		p.Fatalf("header is %q, %v, want %q", got, err, want)
	}
}

func (p *peer) send(channel uint16, body frame.Performative, payload ...string) {
	p.Helper()
	p.write(frame.Append(nil, frame.Frame{Channel: channel, Body: body, Payload: []byte(strings.Join(payload, ""))}))
}

// next returns the next frame that is not empty.
func (p *peer) next() frame.Frame {
	p.Helper()
	for {
		f, err := p.reader.Next()
		if err != nil {
			p.Fatalf("no frame: %v", err)
		}
		if f.Body != nil {
			return f
		}
	}
}

// expect returns the next frame, which must have a performative of type T.
func expect[T frame.Performative](p *peer) T {
	p.Helper()
	f := p.next()
	body, ok := f.Body.(T)
	if !ok {
		p.Fatalf("got %#v, want %T", f.Body, body)
	}
	return body
}

// closed expects that the connection is closed with an error.
func (p *peer) closed(condition string) {
	p.Helper()
	c := expect[*frame.Close](p)
	if c.Error == nil || c.Error.Condition != condition || c.Error.Description == "" {
		p.Errorf("closed with %v, want %s", c.Error, condition)
	}
	if _, err := p.reader.Next(); !errors.Is(err, io.EOF) {
		p.Errorf("after close: %v", err)
	}
	p.net.Close()
	p.Logf("served until: %v", <-p.served)
}

// begin begins a session on a channel.
func (p *peer) begin(channel uint16, window uint32) *frame.Begin {
	p.Helper()
	p.send(channel, &frame.Begin{IncomingWindow: window, OutgoingWindow: 100})
	return expect[*frame.Begin](p)
}

// attach attaches a link, which the engine accepts so.
func (p *peer) attach(handle uint32, isReceiver bool, accepted engine.Accepted) *engine.Link {
	p.Helper()
	p.send(0, &frame.Attach{Name: "link", Handle: handle, IsReceiver: isReceiver, Source: &frame.Source{Address: "q"}, Target: &frame.Target{Address: "q"}})
	l := <-p.links
	if !l.Accept(accepted) {
		p.Fatal("the link is over")
	}
	a := expect[*frame.Attach](p)
	if a.IsReceiver == isReceiver || a.Name != "link" {
		p.Fatalf("attached %+v", a)
	}
	return l
}
