package codec_test

import (
	"bytes"
	"encoding/hex"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/proxy/amqp/internal/codec"
)

func TestEveryTypeThereAndBack(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, row := range []struct {
		name  string
		value any
		wire  string // as the specification has it; empty: too long for a row
	}{
		{"null", nil, "40"},
		{"true", true, "41"},
		{"false", false, "42"},
		{"ubyte", uint8(200), "50c8"},
		{"byte", int8(-2), "51fe"},
		{"ushort", uint16(65535), "60ffff"},
		{"short", int16(-2), "61fffe"},
		{"uint 0", uint32(0), "43"},
		{"uint small", uint32(255), "52ff"},
		{"uint", uint32(256), "7000000100"},
		{"int small", int32(-128), "5480"},
		{"int", int32(128), "7100000080"},
		{"ulong 0", uint64(0), "44"},
		{"ulong small", uint64(112), "5370"},
		{"ulong", uint64(math.MaxUint64), "80ffffffffffffffff"},
		{"long small", int64(-1), "55ff"},
		{"long", int64(math.MinInt64), "818000000000000000"},
		{"float", float32(1.5), "723fc00000"},
		{"double", float64(-2), "82c000000000000000"},
		{"decimal32", codec.Decimal32{1, 2, 3, 4}, "7401020304"},
		{"decimal64", codec.Decimal64{1, 2, 3, 4, 5, 6, 7, 8}, "840102030405060708"},
		{"decimal128", codec.Decimal128{15: 9}, "9400000000000000000000000000000009"},
		{"char", codec.Char('€'), "73000020ac"},
		{"timestamp", codec.Timestamp(-1), "83ffffffffffffffff"},
		{"uuid", codec.UUID{0: 0xaa, 15: 0xbb}, "98aa0000000000000000000000000000bb"},
		{"binary", []byte{0, 1}, "a0020001"},
		{"binary long", []byte(long), ""},
		{"string", "hé", "a10368c3a9"},
		{"string long", long, ""},
		{"symbol", codec.Symbol("a:b"), "a303613a62"},
		{"symbol long", codec.Symbol(long), ""},
		{"list empty", codec.List{}, "45"},
		{"list", codec.List{nil, uint32(1)}, "c004024052" + "01"},
		{"list long", codec.List{long, long}, ""},
		{"map", codec.Map{codec.Named("k", "v")}, "c10702a3016ba10176"},
		{"map with keys of all kinds", codec.Map{codec.Entry([]byte{1}, nil), codec.Entry(codec.List{}, true)}, ""},
		{"array", codec.Array{int64(1), int64(2)}, "e01202810000000000000001" + "0000000000000002"},
		{"array of lists", codec.Array{codec.List{"a"}, codec.List{}}, ""},
		{"array of maps", codec.Array{codec.Map{codec.Entry("a", int32(1))}}, ""},
		{"array of arrays", codec.Array{codec.Array{true}, codec.Array{false}}, ""},
		{"array of described", codec.Array{codec.Described{Descriptor: uint64(1), Value: "a"}, codec.Described{Descriptor: uint64(1), Value: "b"}}, ""},
		{"array empty", codec.Array{}, "e0020040"},
		{"described", codec.Described{Descriptor: codec.Symbol("d"), Value: codec.Described{Descriptor: uint64(1), Value: uint8(2)}}, "00a301640053015002"},
	} {
		wire := codec.Append([]byte("before"), row.value)[len("before"):]
		if row.wire != "" && hex.EncodeToString(wire) != row.wire {
			t.Errorf("%s: encoded %x, want %s", row.name, wire, row.wire)
		}
		got, n, err := codec.Decode(append(wire, "after"...))
		if err != nil || n != len(wire) || !reflect.DeepEqual(got, row.value) {
			t.Errorf("%s: decoded %#v, %d bytes of %d, %v", row.name, got, n, len(wire), err)
		}
	}
}

func TestMalformedDataIsRefused(t *testing.T) {
	t.Parallel()
	deep := bytes.Repeat([]byte{0x00, 0x40}, 10_000)
	for _, row := range []struct{ name, wire, want string }{
		{"nothing", "", "ends within"},
		{"no format code", "01", "not a format code"},
		{"cut integer", "700000", "ends within"},
		{"cut string", "a105616263", "ends within"},
		{"string of 4 GiB", "b1ffffffff", "count is larger"},
		{"not UTF-8", "a101ff", "UTF-8"},
		{"not ASCII", "a301e4", "ASCII"},
		{"no boolean", "5602", "not a boolean"},
		{"no character", "7300110000", "not a character"},
		{"list longer than its values", "c0030140" + "40", "longer than"},
		{"list shorter than its values", "c0010140", "ends within"},
		{"list of 255 in 3 bytes", "c003ff4040", "count is larger"},
		{"array of two billion nulls", "f0000000057fffffff40", "count is larger"},
		{"key without value", "c1030140" + "40", "without a value"},
		{"too deep", hex.EncodeToString(deep), "nested deeper"},
		{"lists too deep", strings.Repeat("c0", 40), "ends within"},
	} {
		wire, err := hex.DecodeString(row.wire)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := codec.Decode(wire); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

func TestAccessors(t *testing.T) {
	t.Parallel()
	m := codec.Map{codec.Entry(uint64(1), "no"), codec.Named("a", int8(-1)), codec.Entry("b", uint64(math.MaxUint64))}
	if n, ok := codec.Integer(m.Get("a")); n != -1 || !ok {
		t.Errorf("a is %d, %v", n, ok)
	}
	if _, ok := codec.Integer(m.Get("b")); ok {
		t.Error("a ulong beyond int64 is an integer")
	}
	if m.Get("c") != nil {
		t.Error("c is there")
	}
	if items, ok := codec.Items(codec.Array{1}); len(items) != 1 || !ok {
		t.Error("an array has no items")
	}
}

// FuzzDecode checks that what was decoded encodes to something that decodes to the same, and that nothing panics.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{0x40})
	f.Add(codec.Append(nil, codec.Described{Descriptor: uint64(0x70), Value: codec.List{true, codec.Map{codec.Named("a", "b")}, []byte{1}}}))
	f.Add(codec.Append(nil, codec.Array{codec.Described{Descriptor: uint64(1), Value: codec.UUID{}}, codec.Described{Descriptor: uint64(1), Value: codec.UUID{1}}}))
	f.Add([]byte{0xf0, 0, 0, 0, 5, 0x7f, 0xff, 0xff, 0xff, 0x40})
	f.Fuzz(func(t *testing.T, data []byte) {
		value, n, err := codec.Decode(data)
		if err != nil {
			return
		}
		if n < 1 || n > len(data) {
			t.Fatalf("took %d bytes of %d", n, len(data))
		}
		wire := codec.Append(nil, value)
		again, m, err := codec.Decode(wire)
		if err != nil || m != len(wire) || !bytes.Equal(codec.Append(nil, again), wire) {
			t.Fatalf("%x decodes to %#v, encodes to %x, and that decodes to %#v, %v", data, value, wire, again, err)
		}
	})
}
