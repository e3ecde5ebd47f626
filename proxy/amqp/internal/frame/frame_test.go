package frame_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
	"github.com/sidebus/sidebus/proxy/amqp/internal/frame"
)

func pointer[T any](v T) *T { return &v }

// all has a frame of each performative, with each of its fields set.
var all = []frame.Frame{
	{Body: &frame.Open{
		ContainerID: "c", Hostname: "h", MaxFrameSize: pointer(uint32(65536)), ChannelMax: pointer(uint32(4999)),
		IdleTimeout: 1000, Properties: codec.Map{codec.Named("product", "x")},
	}},
	{Channel: 7, Body: &frame.Begin{
		RemoteChannel: pointer(uint16(0)), NextOutgoingID: 1, IncomingWindow: 2, OutgoingWindow: 1<<32 - 1,
		HandleMax: pointer(uint32(255)),
	}},
	{Body: &frame.Flow{
		NextIncomingID: pointer(uint32(0)), IncomingWindow: 1, NextOutgoingID: 2, OutgoingWindow: 3, Handle: pointer(uint32(4)),
		DeliveryCount: pointer(uint32(5)), LinkCredit: pointer(uint32(6)), Available: pointer(uint32(7)), Drain: true, Echo: true,
	}},
	{Body: &frame.Transfer{
		Handle: 1, DeliveryID: pointer(uint32(2)), DeliveryTag: []byte("t"), MessageFormat: pointer(uint32(0)), Settled: true,
		More: true, State: frame.Accepted{}, Aborted: true,
	}, Payload: []byte("payload")},
	{Body: &frame.Disposition{IsReceiver: true, First: 1, Last: 2, Settled: true, State: frame.Released{}}},
	{Body: &frame.Disposition{First: 1, Last: 1, State: frame.Rejected{Error: &frame.Error{
		Condition: "amqp:not-found", Description: "d", Info: codec.Map{codec.Entry("a", "b")},
	}}}},
	{Body: &frame.Disposition{First: 1, Last: 1, State: frame.Modified{
		DeliveryFailed: true, UndeliverableHere: true, Annotations: codec.Map{codec.Named("a", int64(1))},
	}}},
	{Body: &frame.Disposition{First: 1, Last: 1, State: frame.Received{}}},
	{Body: &frame.Disposition{First: 1, Last: 1, State: frame.Transactional{}}},
	{Body: &frame.Detach{Handle: 1, Closed: true, Error: &frame.Error{Condition: "c"}}},
	{Body: &frame.End{Error: &frame.Error{Condition: "c"}}},
	{Body: &frame.Close{Error: &frame.Error{Condition: "c"}}},
	{Body: &frame.End{}},
	{},
	{Type: frame.SASL, Body: &frame.Mechanisms{Names: []string{"PLAIN", "ANONYMOUS"}}},
	{Type: frame.SASL, Body: &frame.Init{Mechanism: "PLAIN", Response: []byte("\x00a\x00b")}},
	{Type: frame.SASL, Body: &frame.Outcome{Code: 1, Data: []byte("x")}},
}

func TestEveryPerformativeThereAndBack(t *testing.T) {
	t.Parallel()
	var wire []byte
	for _, f := range all {
		wire = frame.Append(wire, f)
	}
	reader := frame.NewReader(bytes.NewReader(wire), 1024)
	for _, want := range all {
		got, err := reader.Next()
		if err != nil {
			t.Fatal(err)
		}
		got.Size = 0
		if len(got.Payload) == 0 {
			got.Payload = nil
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %#v, want %#v", got.Body, want.Body)
		}
	}
	if _, err := reader.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last frame: %v", err)
	}
}

// attach has a source as clients send it, with fields that only the client knows.
func attach() []byte {
	source := codec.Described{Descriptor: uint64(0x28), Value: codec.List{
		"q", uint32(2), nil, nil, nil, nil, nil, codec.Map{codec.Named("com.microsoft:session-filter", nil)},
	}}
	list := codec.List{"link", uint32(1), true, nil, uint8(1), source, codec.Described{
		Descriptor: codec.Symbol("amqp:target:list"), Value: codec.List{"here"},
	}, nil, nil, uint32(0), uint64(1 << 20), nil, nil, codec.Map{codec.Named("com.microsoft:timeout", uint32(5000))}}
	body := codec.Append(nil, codec.Described{Descriptor: codec.Symbol("amqp:attach:list"), Value: list})
	return append([]byte{0, 0, 0, byte(8 + len(body)), 2, 0, 0, 3}, body...)
}

func TestAttachKeepsItsSource(t *testing.T) {
	t.Parallel()
	f, err := frame.NewReader(bytes.NewReader(attach()), 1024).Next()
	if err != nil {
		t.Fatal(err)
	}
	a, ok := f.Body.(*frame.Attach)
	if !ok || f.Channel != 3 || a.Name != "link" || !a.IsReceiver || *a.ReceiverSettle != 1 || a.SenderSettleMode != nil ||
		a.Source.Address != "q" || a.Target.Address != "here" || a.MaxMessageSize != 1<<20 {
		t.Fatalf("%+v", f.Body)
	}
	answer := *a
	answer.Source = a.Source.WithFilter(codec.Map{codec.Named("com.microsoft:session-filter", "s1")})
	f, err = frame.NewReader(bytes.NewReader(frame.Append(nil, frame.Frame{Body: &answer})), 1024).Next()
	if err != nil {
		t.Fatal(err)
	}
	got := f.Body.(*frame.Attach)
	if got.Source.Filter.Get("com.microsoft:session-filter") != "s1" ||
		a.Source.Filter.Get("com.microsoft:session-filter") != nil || got.Source.Address != "q" {
		t.Errorf("%+v", got.Source)
	}
	if got := codec.Append(nil, codec.List{uint32(2)}); !bytes.Contains(frame.Append(nil, frame.Frame{Body: &answer}), got[3:]) {
		t.Error("the source has lost its durability")
	}
}

func TestMalformedFramesAreRefused(t *testing.T) {
	t.Parallel()
	list := func(code uint64, fields ...any) string {
		body := codec.Append(nil, codec.Described{Descriptor: code, Value: codec.List(fields)})
		return string([]byte{0, 0, 0, byte(8 + len(body)), 2, 0, 0, 0}) + string(body)
	}
	for _, row := range []struct{ name, wire, want string }{
		{"too small", "\x00\x00\x00\x07\x02\x00\x00\x00", "its size is 7"},
		{"too large", "\x00\x10\x00\x00\x02\x00\x00\x00", "at most 1024"},
		{"data before the header", "\x00\x00\x00\x08\x01\x00\x00\x00", "begins at 4"},
		{"data behind the end", "\x00\x00\x00\x08\x03\x00\x00\x00", "begins at 12"},
		{"unknown type", "\x00\x00\x00\x08\x02\x05\x00\x00", "unknown type 5"},
		{"no performative", "\x00\x00\x00\x09\x02\x00\x00\x00\x40", "no performative"},
		{"unknown performative", list(0x99), "0x99"},
		{"SASL in a frame of AMQP", list(0x41, codec.Symbol("PLAIN")), "0x41"},
		{"no list", "\x00\x00\x00\x0c\x02\x00\x00\x00\x00\x53\x10\x40", "must have a list"},
		{"begin without window", list(0x11, nil, uint32(1)), "begin needs incoming-window"},
		{"attach without name", list(0x12, nil, uint32(1), true), "attach needs name"},
		{"text as handle", list(0x12, "a", "b", true), "must be an unsigned integer"},
		{"negative handle", list(0x16, int32(-1)), "must be an unsigned integer"},
		{"number as text", list(0x10, uint32(1)), "must be a string"},
		{"unknown state", list(0x15, true, uint32(1), nil, true, codec.Described{Descriptor: uint64(0x99), Value: codec.List{}}), "must be a delivery state"},
		{"source as text", list(0x12, "a", uint32(1), true, nil, nil, "q"), "must be a source"},
	} {
		_, err := frame.NewReader(strings.NewReader(row.wire), 1024).Next()
		var malformed *frame.Malformed
		if !errors.As(err, &malformed) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
	if _, err := frame.NewReader(strings.NewReader("\x00\x00\x00\x10\x02\x00\x00\x00"), 1024).Next(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a frame that is cut: %v", err)
	}
}

// FuzzNext checks that no bytes make the reader panic, and that what it reads can be written.
func FuzzNext(f *testing.F) {
	for _, one := range all {
		f.Add(frame.Append(nil, one))
	}
	f.Add(attach())
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := frame.NewReader(bytes.NewReader(data), 4096)
		for {
			got, err := reader.Next()
			if err != nil {
				return
			}
			again, err := frame.NewReader(bytes.NewReader(frame.Append(nil, got)), 1<<20).Next()
			if err != nil || reflect.TypeOf(again.Body) != reflect.TypeOf(got.Body) {
				t.Fatalf("%#v is written so that it reads %#v, %v", got, again, err)
			}
		}
	})
}
