package semantics_test

import (
	"math"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
)

func TestMSG_12_IntegerBounds(t *testing.T) {
	t.Parallel()
	for typ, bounds := range map[semantics.ValueType][2]int64{
		semantics.TypeByte: {0, 255}, semantics.TypeSByte: {-128, 127}, semantics.TypeChar: {0, 0x10FFFF},
		semantics.TypeInt16: {-32768, 32767}, semantics.TypeUint16: {0, 65535},
		semantics.TypeInt32: {math.MinInt32, math.MaxInt32}, semantics.TypeUint32: {0, math.MaxUint32},
		semantics.TypeInt64: {math.MinInt64, math.MaxInt64}, semantics.TypeTimeSpan: {math.MinInt64, math.MaxInt64},
	} {
		for _, n := range bounds {
			v, err := semantics.IntegerOf(typ, n)
			if err != nil || v.Int() != n || v.Type() != typ {
				t.Errorf("IntegerOf(%s, %d) = %s %d, %v", typ, n, v.Type(), v.Int(), err)
			}
		}
		if bounds[0] > math.MinInt64 {
			_, err := semantics.IntegerOf(typ, bounds[0]-1)
			wantCode(t, typ.String()+" below", err, semantics.InvalidArgument)
		}
		if bounds[1] < math.MaxInt64 {
			_, err := semantics.IntegerOf(typ, bounds[1]+1)
			wantCode(t, typ.String()+" above", err, semantics.InvalidArgument)
		}
	}
	for _, typ := range []semantics.ValueType{semantics.TypeNull, semantics.TypeString, semantics.TypeDouble, semantics.TypeUint64, 99} {
		_, err := semantics.IntegerOf(typ, 0)
		wantCode(t, typ.String(), err, semantics.InvalidArgument)
	}
}

func TestMSG_12_Texts(t *testing.T) {
	t.Parallel()
	good := []struct {
		typ        semantics.ValueType
		text, want string
	}{
		{semantics.TypeString, "", ""},
		{semantics.TypeURI, "urn:x", "urn:x"},
		{semantics.TypeUUID, "6BA7B810-9DAD-11D1-80B4-00C04FD430C8", "6ba7b810-9dad-11d1-80b4-00c04fd430c8"},
		{semantics.TypeDecimal, "-0.10", "-0.10"},
		{semantics.TypeDecimal, "+5.", "+5."},
		{semantics.TypeDecimal, strings.Repeat("9", 64), strings.Repeat("9", 64)},
		{semantics.TypeDateTime, "2026-01-02T03:04:05.1234567+01:00", "2026-01-02T02:04:05.1234567Z"},
		{semantics.TypeDateTimeOffset, "2026-01-02T03:04:05+01:00", "2026-01-02T03:04:05+01:00"},
	}
	for _, c := range good {
		v, err := semantics.TextOf(c.typ, c.text)
		if err != nil || v.Text() != c.want || v.Type() != c.typ {
			t.Errorf("TextOf(%s, %q) = %s %q, %v, want %q", c.typ, c.text, v.Type(), v.Text(), err, c.want)
		}
	}
	bad := []struct {
		typ  semantics.ValueType
		text string
	}{
		{semantics.TypeUUID, ""},
		{semantics.TypeUUID, "6ba7b810"},
		{semantics.TypeDecimal, ""},
		{semantics.TypeDecimal, "-"},
		{semantics.TypeDecimal, "."},
		{semantics.TypeDecimal, "1.2.3"},
		{semantics.TypeDecimal, "1e3"},
		{semantics.TypeDecimal, "٣"},
		{semantics.TypeDecimal, strings.Repeat("9", 65)},
		{semantics.TypeDateTime, "yesterday"},
		{semantics.TypeDateTime, "2026-01-02"},
		{semantics.TypeDateTime, "9999-12-31T23:59:59-01:00"}, // in UTC it is in the year 10000
		{semantics.TypeDateTime, "0000-01-01T00:00:00+01:00"},
		{semantics.TypeDateTimeOffset, "2026-01-01T00:00:00+24:60"},
		{semantics.TypeDateTimeOffset, "2026-01-01T00:00:00-24:60"},
		{semantics.TypeInt64, "1"},
		{semantics.TypeBytes, "x"},
		{semantics.TypeNull, ""},
	}
	for _, c := range bad {
		_, err := semantics.TextOf(c.typ, c.text)
		wantCode(t, c.typ.String()+" "+c.text, err, semantics.InvalidArgument)
	}
}

func TestMSG_12_ValuesCompare(t *testing.T) {
	t.Parallel()
	if semantics.Double(math.NaN()) != semantics.Double(math.NaN()) {
		t.Error("a NaN does not equal itself")
	}
	if semantics.Double(0) == semantics.Double(math.Copysign(0, -1)) {
		t.Error("zero equals minus zero")
	}
	if semantics.Int64(1) == semantics.Uint64(1) || semantics.Bool(true) == semantics.Int64(1) || semantics.String("") == semantics.Bytes(nil) {
		t.Error("values of different types are equal")
	}
	if (semantics.Value{}) != semantics.Null() {
		t.Error("the zero Value is not null")
	}
	if v := semantics.Float(0.1); v.Float() != float64(float32(0.1)) || v.Type() != semantics.TypeFloat {
		t.Errorf("Float(0.1) = %v, want it rounded to 32 bits", v.Float())
	}
	if !semantics.Bool(true).Bool() || semantics.Bool(false).Bool() || semantics.Uint64(math.MaxUint64).Uint() != math.MaxUint64 {
		t.Error("bool or uint64 does not come back")
	}
}

func TestMSG_20_ValueSizes(t *testing.T) {
	t.Parallel()
	integer := func(typ semantics.ValueType) semantics.Value {
		v, err := semantics.IntegerOf(typ, 1)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	uuid, _ := semantics.TextOf(semantics.TypeUUID, semantics.NewRandomUUID().String())
	for want, values := range map[int][]semantics.Value{
		0:  {semantics.Null(), semantics.String(""), semantics.Bytes(nil)},
		1:  {semantics.Bool(true), integer(semantics.TypeByte), integer(semantics.TypeSByte)},
		2:  {integer(semantics.TypeInt16), integer(semantics.TypeUint16), semantics.String("ü")},
		4:  {integer(semantics.TypeChar), integer(semantics.TypeInt32), integer(semantics.TypeUint32), semantics.Float(1)},
		8:  {semantics.Int64(1), semantics.Uint64(1), semantics.Double(1), integer(semantics.TypeTimeSpan)},
		16: {uuid},
	} {
		for _, v := range values {
			if got := v.Size(); got != want {
				t.Errorf("size of a %s is %d, want %d", v.Type(), got, want)
			}
		}
	}
	if got := semantics.ValueType(200).String(); got != "unknown" {
		t.Errorf("a type out of range is called %q", got)
	}
}
