package grpcapi

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
)

// A request whose messages are decoded apart is what the generated code reads, or fails with the same error.
func TestERR_1_SendingIsTheGeneratedRequest(t *testing.T) {
	t.Parallel()
	s, c := &Messages{over: OverGRPC}, codec{encoding.GetCodecV2("proto")}
	rapid.Check(t, func(rt *rapid.T) {
		data := drawRequest(rt)
		in, request := newSendRequest(), &sidebusv1.SendRequest{}
		got, want := &incoming{into: in}, &incoming{into: request}
		_ = c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, got)
		_ = c.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, want)
		if (got.err == nil) != (want.err == nil) {
			rt.Fatalf("%x: %v, generated: %v", data, got.err, want.err)
		}
		if want.err != nil {
			return
		}
		messages, refused := in.checked()
		wanted, wantedErr := s.messagesOf(request.GetMessages())
		if (refused == nil) != (wantedErr == nil) || refused != nil && refused.Error() != wantedErr.Error() {
			rt.Fatalf("%x: %v, generated: %v", data, refused, wantedErr)
		}
		if diff := cmp.Diff(semantics.AsError(wantedErr), semantics.AsError(refused)); wantedErr != nil && diff != "" {
			rt.Fatal(diff)
		}
		same := cmp.Options{cmp.Comparer(func(a, b semantics.Value) bool { return a == b }), cmp.Comparer(bytes.Equal)}
		if diff := cmp.Diff(wanted, messages, same); refused == nil && diff != "" {
			rt.Fatalf("%x (-generated +apart):\n%s", data, diff)
		}
		request.Messages = nil
		if diff := cmp.Diff(request, in.request, protocmp.Transform()); diff != "" {
			rt.Fatalf("%x (-generated +apart):\n%s", data, diff)
		}
		if (wire.RefuseUnknown("", request) == nil) != (wire.RefuseUnknown("", in.request) == nil) {
			rt.Fatalf("%x: unknown fields", data)
		}
	})
}

// drawRequest draws bytes that are a SendRequest, or nearly so.
func drawRequest(rt *rapid.T) []byte {
	var data []byte
	for range rapid.IntRange(0, 4).Draw(rt, "fields") {
		switch rapid.IntRange(0, 5).Draw(rt, "field") {
		case 0:
			data = protowire.AppendTag(data, 1, protowire.BytesType)
			data = protowire.AppendBytes(data, rapid.SampledFrom([][]byte{[]byte("queues/q"), {0xff}, nil}).Draw(rt, "target"))
		case 1:
			number := protowire.Number(rapid.IntRange(1, 5).Draw(rt, "number"))
			data = protowire.AppendTag(data, number, protowire.StartGroupType)
			data = protowire.AppendTag(data, number, protowire.EndGroupType)
		case 2:
			number := protowire.Number(rapid.IntRange(1, 5).Draw(rt, "number"))
			data = protowire.AppendVarint(protowire.AppendTag(data, number, protowire.VarintType), 7)
		default:
			data = protowire.AppendTag(data, 2, protowire.BytesType)
			data = protowire.AppendBytes(data, drawSent(rt))
		}
	}
	return data[:rapid.IntRange(len(data)*9/10, len(data)).Draw(rt, "length")]
}

// drawSent draws bytes that are a Message, or nearly so.
func drawSent(rt *rapid.T) []byte {
	data, err := proto.Marshal(rapid.SampledFrom([]*sidebusv1.Message{
		{},
		{MessageId: proto.String("")},
		{MessageId: proto.String("1"), Priority: proto.Int32(3), Content: &sidebusv1.Message_Body{Body: []byte("body")}},
		{TimeToLive: &durationpb.Duration{Seconds: 1, Nanos: -1}},
		{TimeToLive: &durationpb.Duration{Seconds: 10e9}},
		{Content: &sidebusv1.Message_Json{Json: "{"}},
		{Content: &sidebusv1.Message_Json{Json: "[1]"}},
		{Properties: map[string]*sidebusv1.Value{"n": {Kind: &sidebusv1.Value_ByteValue{ByteValue: 256}}}},
		{Properties: map[string]*sidebusv1.Value{"n": {}}},
		{Properties: map[string]*sidebusv1.Value{"n": {Kind: &sidebusv1.Value_DecimalValue{DecimalValue: "1.5"}}}},
	}).Draw(rt, "message"))
	if err != nil {
		rt.Fatal(err)
	}
	if rapid.Bool().Draw(rt, "is damaged") {
		at := rapid.IntRange(0, len(data)).Draw(rt, "at")
		data = append(append(bytes.Clone(data[:at]), rapid.SliceOfN(rapid.Byte(), 0, 6).Draw(rt, "bytes")...), data[at:]...)
	}
	return data
}

// A field that comes many times counts once, and is stored once (MSG-20).
func TestMSG_20_RepeatedFieldsCountOnce(t *testing.T) {
	t.Parallel()
	var message []byte
	for _, size := range []int{1 << 20, 1 << 20, 10} {
		message = protowire.AppendTag(message, 12, protowire.BytesType)
		message = protowire.AppendBytes(message, make([]byte, size))
	}
	in := newSendRequest()
	if err := in.decode(protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), message)); err != nil {
		t.Fatal(err)
	}
	messages, err := in.checked()
	if err != nil || messages[0].Size() != 10 || encoded.Size(messages[0]) > 100 {
		t.Errorf("counts %d, is stored as %d, %v", messages[0].Size(), encoded.Size(messages[0]), err)
	}
}
