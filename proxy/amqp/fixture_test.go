package amqp_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"github.com/sidebus/sidebus/proxy/access"
	"github.com/sidebus/sidebus/proxy/amqp"
	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/convert"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
	"github.com/sidebus/sidebus/proxy/internal/admission"
	"github.com/sidebus/sidebus/proxy/internal/obs"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/broker"
	"github.com/sidebus/sidebus/semantics/filter"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// requestMemory is the memory for messages that arrive.
const requestMemory = 4 << 20

// patience bounds all waits.
const patience = time.Minute

func pointer[T any](v T) *T { return &v }

// stand is a server over a store in memory.
type stand struct {
	*testing.T

	broker *broker.Broker
	addr   string
}

// start runs a server until the test ends. authorizer may be nil.
func start(t *testing.T, authorizer access.Authorizer) *stand {
	t.Helper()
	return startOn(t, memstore.New(), authorizer)
}

// startOn is start with a store.
func startOn(t *testing.T, store semantics.Store, authorizer access.Authorizer) *stand {
	t.Helper()
	b := broker.New(store, broker.WithRules(filter.Compile))
	t.Cleanup(b.Close)
	logger := slog.New(slog.DiscardHandler)
	metrics, err := obs.NewMetrics(prometheus.NewRegistry(), b, 0)
	if err != nil {
		t.Fatal(err)
	}
	if authorizer == nil {
		authorizer = access.AllowAll{}
	}
	server := amqp.New(amqp.Config{
		Broker: b, Authorizer: authorizer, Metrics: metrics, Calls: obs.NewCalls(metrics, logger), Logger: logger,
		Admission: admission.New(admission.Config{MaxMemory: requestMemory}, metrics, logger), Patience: time.Second,
		AnswerPatience: time.Second,
	})
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(context.Background(), listener) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		server.Stop(ctx)
		if err := <-served; !errors.Is(err, amqp.ErrStopped) {
			t.Errorf("served until %v", err)
		}
	})
	return &stand{T: t, broker: b, addr: listener.Addr().String()}
}

// queue creates a queue.
func (s *stand) queue(name string, change func(*semantics.Options), given ...string) {
	s.Helper()
	options := semantics.DefaultOptions()
	if change != nil {
		change(&options)
	}
	if _, err := s.broker.CreateEntity(s.Context(), semantics.QueueKind, name, options, given); err != nil {
		s.Fatal(err)
	}
}

// client speaks AMQP by hand, over one session.
type client struct {
	*testing.T

	net    net.Conn
	reader *frame.Reader
	handle uint32
	next   uint32 // delivery id
}

// dial connects with SASL. A nil init begins without.
func (s *stand) dial(init *frame.Init) *client {
	s.Helper()
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(patience))
	c := &client{T: s.T, net: conn, reader: frame.NewReader(conn, 64<<10)}
	if init != nil {
		c.header(frame.SASLHeader)
		want[*frame.Mechanisms](c)
		c.write(frame.Append(nil, frame.Frame{Type: frame.SASL, Body: init}))
	}
	return c
}

// open opens the connection and a session.
func (c *client) open() *client {
	c.Helper()
	c.header(frame.AMQPHeader)
	c.send(&frame.Open{ContainerID: "client"})
	want[*frame.Open](c)
	c.send(&frame.Begin{IncomingWindow: 1000, OutgoingWindow: 1000})
	want[*frame.Begin](c)
	return c
}

func (c *client) header(h frame.Header) {
	c.Helper()
	c.write(h[:])
	if n, err := c.net.Read(make([]byte, len(h))); n != len(h) || err != nil {
		c.Fatalf("header: %d bytes, %v", n, err)
	}
}

func (c *client) write(b []byte) {
	c.Helper()
	if _, err := c.net.Write(b); err != nil {
		c.Fatal(err)
	}
}

func (c *client) send(body frame.Performative, payload ...byte) {
	c.Helper()
	c.write(frame.Append(nil, frame.Frame{Body: body, Payload: payload}))
}

// frame returns the next frame that is not empty.
func (c *client) frame() frame.Frame {
	c.Helper()
	for {
		f, err := c.reader.Next()
		if err != nil {
			c.Fatalf("no frame: %v", err)
		}
		if f.Body != nil {
			return f
		}
	}
}

// want returns the next frame, which must have a performative of type T.
func want[T frame.Performative](c *client) T {
	c.Helper()
	f := c.frame()
	body, ok := f.Body.(T)
	if !ok {
		c.Fatalf("got %#v, want %T", f.Body, body)
	}
	return body
}

// attach sends an attach and returns the answer.
func (c *client) attach(a frame.Attach) *frame.Attach {
	c.Helper()
	a.Handle = c.handle
	c.handle++
	if a.Name == "" {
		a.Name = "link"
	}
	c.send(&a)
	return want[*frame.Attach](c)
}

// sender attaches a link to an address, and returns its handle.
func (c *client) sender(address string) uint32 {
	c.Helper()
	c.attach(frame.Attach{Target: &frame.Target{Address: address}})
	want[*frame.Flow](c)
	return c.handle - 1
}

// receiver attaches a link from an address with credit, and returns its handle.
func (c *client) receiver(address string, credit uint32) uint32 {
	c.Helper()
	c.attach(frame.Attach{IsReceiver: true, Source: &frame.Source{Address: address}, ReceiverSettle: pointer(uint8(1))})
	handle := c.handle - 1
	c.credit(handle, 0, credit, false)
	return handle
}

func (c *client) credit(handle, count, credit uint32, drain bool) {
	c.Helper()
	c.send(&frame.Flow{IncomingWindow: 1000, Handle: &handle, DeliveryCount: &count, LinkCredit: &credit, Drain: drain})
}

// transfer sends a message and returns the state of its settlement.
func (c *client) transfer(handle uint32, payload []byte) frame.State {
	c.Helper()
	return c.transferIn(handle, payload, nil)
}

// transferIn is transfer with a state, which is that of a transaction.
func (c *client) transferIn(handle uint32, payload []byte, state frame.State) frame.State {
	c.Helper()
	id := c.next
	c.next++
	c.send(&frame.Transfer{Handle: handle, DeliveryID: &id, DeliveryTag: []byte{byte(id)}, State: state}, payload...)
	for {
		switch body := c.frame().Body.(type) {
		case *frame.Flow: // more credit
		case *frame.Disposition:
			return body.State
		default:
			c.Fatalf("got %#v", body)
		}
	}
}

// sections writes a message with these sections.
func sections(all ...any) (payload []byte) {
	for i := 0; i < len(all); i += 2 {
		payload = codec.Append(payload, codec.Described{Descriptor: all[i], Value: all[i+1]})
	}
	return payload
}

func data(text string) []byte { return sections(uint64(0x75), []byte(text)) }

// node is a pair of links to a node that answers.
type node struct {
	*client

	requests uint32
}

// node attaches a pair of links, whose answers go to a name, not an address, as those of JavaScript do.
func (c *client) node(address string) node {
	c.Helper()
	c.attach(frame.Attach{Name: "answers", IsReceiver: true, Source: &frame.Source{Address: address}, Target: &frame.Target{}})
	c.credit(c.handle-1, 0, 100, false)
	return node{c, c.sender(address)}
}

// ask sends a request and returns the application properties and the body of the answer.
func (n node) ask(operation string, body any) (codec.Map, codec.Map) {
	n.Helper()
	state := n.transfer(n.requests, sections(
		uint64(0x73), codec.List{uint64(42), nil, nil, nil, "answers"},
		uint64(0x74), codec.Map{codec.Entry("operation", operation)}, uint64(0x77), body,
	))
	if _, ok := state.(frame.Accepted); !ok {
		n.Fatalf("the request is %#v", state)
	}
	f := n.frame()
	if _, ok := f.Body.(*frame.Transfer); !ok {
		n.Fatalf("got %#v", f.Body)
	}
	s, err := convert.Parse(f.Payload)
	if err != nil || s.Properties[5] != uint64(42) {
		n.Fatalf("answer to %v, %v", s.Properties, err)
	}
	answer, _ := s.Value.(codec.Map)
	return s.Application, answer
}
