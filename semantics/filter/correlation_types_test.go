package filter_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// families are values that equal each other, and nothing else.
var families = []map[string]semantics.Value{
	{
		"byte": whole(semantics.TypeByte, 65), "sbyte": whole(semantics.TypeSByte, 65), "int16": whole(semantics.TypeInt16, 65),
		"uint16": whole(semantics.TypeUint16, 65), "int32": whole(semantics.TypeInt32, 65), "uint32": whole(semantics.TypeUint32, 65),
		"int64": semantics.Int64(65), "uint64": semantics.Uint64(65), "float": semantics.Float(65), "double": semantics.Double(65),
		"decimal": typed(semantics.TypeDecimal, "065.0"),
	},
	{"string A": semantics.String("A"), "char A": whole(semantics.TypeChar, 65), "uri A": typed(semantics.TypeURI, "A")},
	{"string 65": semantics.String("65")},
	{"string true": semantics.String("true")},
	{"bool": semantics.Bool(true)},
	{"bool false": semantics.Bool(false)},
	{"zero": semantics.Int64(0), "no": semantics.Double(math.Copysign(0, -1)), "decimal 0": typed(semantics.TypeDecimal, "-0.0")},
	{"null": semantics.Null()},
	{"empty": semantics.String("")},
	{"uuid": typed(semantics.TypeUUID, orderID), "UUID": typed(semantics.TypeUUID, strings.ToUpper(orderID))},
	{"uuid text": semantics.String(orderID)},
	{"at": typed(semantics.TypeDateTime, "2026-01-02T03:04:05Z"), "offset": typed(semantics.TypeDateTimeOffset, "2026-01-02T04:04:05+01:00")},
	{"at text": semantics.String("2026-01-02T03:04:05Z")},
	{"span": whole(semantics.TypeTimeSpan, 65)},
	{"tenth": semantics.Double(0.1), "decimal tenth": typed(semantics.TypeDecimal, "0.1")},
	{"small tenth": semantics.Float(0.1)},
	{"2^53+1": semantics.Int64(1<<53 + 1)},
	{"2^53": semantics.Double(1 << 53), "2^53 whole": semantics.Int64(1 << 53)},
	{"umax": semantics.Uint64(math.MaxUint64), "decimal umax": typed(semantics.TypeDecimal, "18446744073709551615")},
	{"-1": semantics.Int64(-1)},
	{"infinity": semantics.Double(math.Inf(1)), "float infinity": semantics.Float(math.Inf(1))},
}

func TestCORR_4_TypesMustAgree(t *testing.T) {
	t.Parallel()
	for i, wants := range families {
		for wantName, want := range wants {
			f := semantics.CorrelationFilter{Properties: values{"x": want}}
			for j, haves := range families {
				for haveName, have := range haves {
					if got := correlate(t, f, &semantics.Message{Properties: values{"X": have}}); got != (i == j) {
						t.Errorf("%s selects %s: %v", wantName, haveName, got)
					}
				}
			}
		}
	}
}

func TestCORR_4_NaNAndBytesEqualNothing(t *testing.T) {
	t.Parallel()
	nan := semantics.Double(math.NaN())
	f := semantics.CorrelationFilter{Properties: values{"x": nan}}
	if correlate(t, f, &semantics.Message{Properties: values{"x": nan}}) {
		t.Error("NaN equals NaN")
	}
	c, _ := filter.CompileCorrelation(f)
	if got, want := fmt.Sprint(c.Warnings()), `[x = NaN matches no message, because NaN equals nothing]`; got != want {
		t.Errorf("warns %s, want %s", got, want)
	}
	wantCorrelationInvalid(t, semantics.CorrelationFilter{Properties: values{"x": semantics.Bytes([]byte("a"))}},
		`the correlation filter's properties[x] is bytes, which equals nothing`)
	if correlate(t, semantics.CorrelationFilter{Properties: values{"x": semantics.String("a")}}, &semantics.Message{Properties: values{"x": semantics.Bytes([]byte("a"))}}) {
		t.Error("bytes equal a text")
	}
}

func TestCORR_5_Null(t *testing.T) {
	t.Parallel()
	f := semantics.CorrelationFilter{Properties: values{"x": semantics.Null()}}
	for have, want := range map[string]bool{"present": true, "missing": false, "set": false} {
		m := map[string]*semantics.Message{
			"present": {Properties: values{"X": semantics.Null()}}, "missing": {Properties: values{"y": semantics.Null()}},
			"set": {Properties: values{"x": semantics.String("")}},
		}[have]
		if got := correlate(t, f, m); got != want {
			t.Errorf("null selects a message in which it is %s: %v", have, got)
		}
	}
}
