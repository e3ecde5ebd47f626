package frame

import (
	"fmt"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
)

// Performative is the body of a frame.
type Performative interface {
	code() uint64
	name() string
	read(f *fields)
	fields() codec.List
}

// performatives create the ones that a peer may send, by their codes.
var performatives = map[uint64]func() Performative{
	0x10: func() Performative { return &Open{} },
	0x11: func() Performative { return &Begin{} },
	0x12: func() Performative { return &Attach{} },
	0x13: func() Performative { return &Flow{} },
	0x14: func() Performative { return &Transfer{} },
	0x15: func() Performative { return &Disposition{} },
	0x16: func() Performative { return &Detach{} },
	0x17: func() Performative { return &End{} },
	0x18: func() Performative { return &Close{} },
	0x40: func() Performative { return &Mechanisms{} },
	0x41: func() Performative { return &Init{} },
	0x44: func() Performative { return &Outcome{} },
}

func isSASL(code uint64) bool { return code >= 0x40 }

// symbols are the symbolic forms of descriptors.
var symbols = map[codec.Symbol]uint64{
	"amqp:open:list": 0x10, "amqp:begin:list": 0x11, "amqp:attach:list": 0x12, "amqp:flow:list": 0x13,
	"amqp:transfer:list": 0x14, "amqp:disposition:list": 0x15, "amqp:detach:list": 0x16, "amqp:end:list": 0x17,
	"amqp:close:list": 0x18, "amqp:error:list": 0x1d,
	"amqp:received:list": 0x23, "amqp:accepted:list": 0x24, "amqp:rejected:list": 0x25, "amqp:released:list": 0x26,
	"amqp:modified:list": 0x27, "amqp:source:list": 0x28, "amqp:target:list": 0x29, "amqp:coordinator:list": 0x30,
	"amqp:declared:list": 0x33, "amqp:transactional-state:list": 0x34,
	"amqp:sasl-mechanisms:list": 0x40, "amqp:sasl-init:list": 0x41, "amqp:sasl-outcome:list": 0x44,
}

// codeOf returns the code of a descriptor in either form.
func codeOf(descriptor any) (code uint64, ok bool) {
	switch d := descriptor.(type) {
	case uint64:
		return d, true
	case codec.Symbol:
		code, ok = symbols[d]
		return code, ok
	default:
		return 0, false
	}
}

// readInto reads the list of a performative.
func readInto(p Performative, value any) error {
	list, ok := value.(codec.List)
	if !ok {
		return fmt.Errorf("%s has a %T, must have a list", p.name(), value)
	}
	f := fields{of: p.name(), list: list}
	p.read(&f)
	return f.err
}

func encoded(p Performative) codec.Described {
	return codec.Described{Descriptor: p.code(), Value: trimmed(p.fields())}
}

// Open opens a connection.
type Open struct {
	ContainerID, Hostname string
	MaxFrameSize          *uint32
	ChannelMax            *uint32
	IdleTimeout           uint32 // milliseconds; 0: none
	Properties            codec.Map
}

func (*Open) code() uint64 { return 0x10 }
func (*Open) name() string { return "open" }
func (o *Open) read(f *fields) {
	o.ContainerID, o.Hostname = f.text(), f.text()
	o.MaxFrameSize, o.ChannelMax = f.uint(), f.uint()
	if idle := f.uint(); idle != nil {
		o.IdleTimeout = *idle
	}
	f.at += 4 // locales, capabilities
	o.Properties = f.mapping()
}

func (o *Open) fields() codec.List {
	var channels any
	if o.ChannelMax != nil {
		channels = uint16(*o.ChannelMax)
	}
	return codec.List{
		o.ContainerID, unless(o.Hostname), optional(o.MaxFrameSize), channels, unless(o.IdleTimeout),
		nil, nil, nil, nil, orNull(o.Properties),
	}
}

// Begin begins a session.
type Begin struct {
	RemoteChannel                                  *uint16
	NextOutgoingID, IncomingWindow, OutgoingWindow uint32
	HandleMax                                      *uint32
}

func (*Begin) code() uint64 { return 0x11 }
func (*Begin) name() string { return "begin" }
func (b *Begin) read(f *fields) {
	if n := f.number(1<<16 - 1); n != nil {
		channel := uint16(*n)
		b.RemoteChannel = &channel
	}
	b.NextOutgoingID = f.required("next-outgoing-id")
	b.IncomingWindow = f.required("incoming-window")
	b.OutgoingWindow = f.required("outgoing-window")
	b.HandleMax = f.uint()
}

func (b *Begin) fields() codec.List {
	return codec.List{
		optional(b.RemoteChannel), b.NextOutgoingID, b.IncomingWindow, b.OutgoingWindow, optional(b.HandleMax),
	}
}

// Attach attaches a link. IsReceiver is the role of who writes it.
type Attach struct {
	Name                             string
	Handle                           uint32
	IsReceiver                       bool
	SenderSettleMode, ReceiverSettle *uint8
	Source                           *Source
	Target                           *Target
	InitialDeliveryCount             *uint32
	MaxMessageSize                   uint64 // 0: no limit
	Properties                       codec.Map
}

func (*Attach) code() uint64 { return 0x12 }
func (*Attach) name() string { return "attach" }
func (a *Attach) read(f *fields) {
	a.Name = f.text()
	f.must(len(f.list) > 0 && f.list[0] != nil, "name")
	a.Handle, a.IsReceiver = f.required("handle"), f.boolean()
	a.SenderSettleMode, a.ReceiverSettle = f.small(), f.small()
	a.Source, a.Target = readSource(f, f.next()), readTarget(f, f.next())
	f.at += 2 // unsettled, incomplete-unsettled: nothing is resumed
	a.InitialDeliveryCount = f.uint()
	if size := f.number(1<<64 - 1); size != nil {
		a.MaxMessageSize = *size
	}
	f.at += 2 // capabilities
	a.Properties = f.mapping()
}

func (a *Attach) fields() codec.List {
	return codec.List{
		a.Name, a.Handle, a.IsReceiver, optional(a.SenderSettleMode), optional(a.ReceiverSettle), a.Source.value(),
		a.Target.value(), nil, nil, optional(a.InitialDeliveryCount), unless(a.MaxMessageSize), nil, nil,
		orNull(a.Properties),
	}
}

// Flow updates the windows of a session, and with a Handle the credit of a link.
type Flow struct {
	NextIncomingID                                 *uint32
	IncomingWindow, NextOutgoingID, OutgoingWindow uint32
	Handle, DeliveryCount, LinkCredit, Available   *uint32
	Drain, Echo                                    bool
}

func (*Flow) code() uint64 { return 0x13 }
func (*Flow) name() string { return "flow" }
func (w *Flow) read(f *fields) {
	w.NextIncomingID = f.uint()
	w.IncomingWindow = f.required("incoming-window")
	w.NextOutgoingID = f.required("next-outgoing-id")
	w.OutgoingWindow = f.required("outgoing-window")
	w.Handle, w.DeliveryCount, w.LinkCredit, w.Available = f.uint(), f.uint(), f.uint(), f.uint()
	w.Drain, w.Echo = f.boolean(), f.boolean()
}

func (w *Flow) fields() codec.List {
	return codec.List{
		optional(w.NextIncomingID), w.IncomingWindow, w.NextOutgoingID, w.OutgoingWindow, optional(w.Handle),
		optional(w.DeliveryCount), optional(w.LinkCredit), optional(w.Available), unless(w.Drain), unless(w.Echo),
	}
}

// Transfer carries a message or a part of one.
type Transfer struct {
	Handle        uint32
	DeliveryID    *uint32
	DeliveryTag   []byte
	MessageFormat *uint32
	Settled, More bool
	State         State
	Aborted       bool
}

func (*Transfer) code() uint64 { return 0x14 }
func (*Transfer) name() string { return "transfer" }
func (t *Transfer) read(f *fields) {
	t.Handle = f.required("handle")
	t.DeliveryID, t.DeliveryTag, t.MessageFormat = f.uint(), f.binary(), f.uint()
	t.Settled, t.More = f.boolean(), f.boolean()
	f.at++ // rcv-settle-mode
	t.State = readState(f, f.next())
	f.at++ // resume
	t.Aborted = f.boolean()
}

func (t *Transfer) fields() codec.List {
	return codec.List{
		t.Handle, optional(t.DeliveryID), bytesOrNull(t.DeliveryTag), optional(t.MessageFormat), t.Settled,
		unless(t.More), nil, stateValue(t.State), nil, unless(t.Aborted),
	}
}

// Disposition settles deliveries. IsReceiver is the role of who writes it.
type Disposition struct {
	IsReceiver  bool
	First, Last uint32
	Settled     bool
	State       State
}

func (*Disposition) code() uint64 { return 0x15 }
func (*Disposition) name() string { return "disposition" }
func (d *Disposition) read(f *fields) {
	d.IsReceiver, d.First = f.boolean(), f.required("first")
	d.Last = d.First
	if last := f.uint(); last != nil {
		d.Last = *last
	}
	d.Settled, d.State = f.boolean(), readState(f, f.next())
}

func (d *Disposition) fields() codec.List {
	return codec.List{d.IsReceiver, d.First, d.Last, d.Settled, stateValue(d.State)}
}

// Detach detaches a link.
type Detach struct {
	Handle uint32
	Closed bool
	Error  *Error
}

func (*Detach) code() uint64 { return 0x16 }
func (*Detach) name() string { return "detach" }
func (d *Detach) read(f *fields) {
	d.Handle, d.Closed, d.Error = f.required("handle"), f.boolean(), readError(f, f.next())
}
func (d *Detach) fields() codec.List { return codec.List{d.Handle, d.Closed, d.Error.value()} }

// End ends a session.
type End struct{ Error *Error }

func (*End) code() uint64         { return 0x17 }
func (*End) name() string         { return "end" }
func (e *End) read(f *fields)     { e.Error = readError(f, f.next()) }
func (e *End) fields() codec.List { return codec.List{e.Error.value()} }

// Close closes a connection.
type Close struct{ Error *Error }

func (*Close) code() uint64         { return 0x18 }
func (*Close) name() string         { return "close" }
func (c *Close) read(f *fields)     { c.Error = readError(f, f.next()) }
func (c *Close) fields() codec.List { return codec.List{c.Error.value()} }

// Mechanisms are the ways in which a client may authenticate.
type Mechanisms struct{ Names []string }

func (*Mechanisms) code() uint64 { return 0x40 }
func (*Mechanisms) name() string { return "sasl-mechanisms" }
func (m *Mechanisms) read(f *fields) {
	switch v := f.next().(type) {
	case codec.Symbol:
		m.Names = []string{string(v)}
	case codec.Array:
		for _, item := range v {
			text, _ := codec.Text(item)
			m.Names = append(m.Names, text)
		}
	default:
		f.fail(v, "an array of symbols")
	}
}

func (m *Mechanisms) fields() codec.List {
	names := codec.Array{}
	for _, name := range m.Names {
		names = append(names, codec.Symbol(name))
	}
	return codec.List{names}
}

// Init chooses a mechanism.
type Init struct {
	Mechanism string
	Response  []byte
}

func (*Init) code() uint64     { return 0x41 }
func (*Init) name() string     { return "sasl-init" }
func (i *Init) read(f *fields) { i.Mechanism, i.Response = f.text(), f.binary() }
func (i *Init) fields() codec.List {
	return codec.List{codec.Symbol(i.Mechanism), bytesOrNull(i.Response)}
}

// Outcome is the result of the authentication.
type Outcome struct {
	Code uint8 // 0: done, 1: refused
	Data []byte
}

func (*Outcome) code() uint64 { return 0x44 }
func (*Outcome) name() string { return "sasl-outcome" }
func (o *Outcome) read(f *fields) {
	if code := f.small(); code != nil {
		o.Code = *code
	}
	o.Data = f.binary()
}
func (o *Outcome) fields() codec.List { return codec.List{o.Code, bytesOrNull(o.Data)} }
