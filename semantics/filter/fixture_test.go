package filter_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// Expected outcomes.
const (
	T = "TRUE"
	F = "FALSE"
	U = "UNKNOWN"
	E = "error"
)

// outcome is a filter and what it gives for a message.
type outcome struct{ filter, want string }

type values = map[string]semantics.Value

const (
	orderID = "6ba7b810-9dad-11d1-80b4-00c04fd430c8"
	otherID = "00000000-0000-4000-8000-000000000001"
)

// order is the message most tables ask about: a stored message with a property of every type.
func order() *semantics.Received {
	lifetime := time.Hour
	return &semantics.Received{
		Message: semantics.Message{
			MessageID: "m-1", SessionID: "s-1", PartitionKey: "s-1", Subject: "the bus trip", To: "S5",
			ContentType: "application/json", TimeToLive: &lifetime, Body: []byte(`{"color":"blue"}`),
			Properties: values{
				"Color": semantics.String("red"), "empty": semantics.String(""), "five": semantics.String("5"),
				"My-Prop": semantics.String("it's"), "in": semantics.String("word"), "a]b": semantics.String("bracket"),
				"Größe": semantics.String("Ärger"), "which": semantics.String("color"), "which2": semantics.String("sys.To"),
				"yes": semantics.Bool(true), "no": semantics.Bool(false), "nothing": semantics.Null(),
				"byte": whole(semantics.TypeByte, 200), "sbyte": whole(semantics.TypeSByte, -7), "short": whole(semantics.TypeInt16, -300),
				"ushort": whole(semantics.TypeUint16, 65535), "qty": whole(semantics.TypeInt32, 3), "uint": whole(semantics.TypeUint32, math.MaxUint32),
				"zero": semantics.Int64(0), "max": semantics.Int64(math.MaxInt64), "least": semantics.Int64(math.MinInt64),
				"umax": semantics.Uint64(math.MaxUint64), "ubig": semantics.Uint64(1 << 63), "usmall": semantics.Uint64(7),
				"float": semantics.Float(0.1), "half": semantics.Float(0.5), "price": semantics.Double(4.5),
				"nan": semantics.Double(math.NaN()), "inf": semantics.Double(math.Inf(1)),
				"tenth": typed(semantics.TypeDecimal, "0.1"), "amount": typed(semantics.TypeDecimal, "+0100.500"),
				"giant": typed(semantics.TypeDecimal, "18446744073709551616.5"), "debt": typed(semantics.TypeDecimal, "-3."),
				"grade": whole(semantics.TypeChar, 'A'), "link": typed(semantics.TypeURI, "urn:x"), "id": typed(semantics.TypeUUID, orderID),
				"id2": typed(semantics.TypeUUID, otherID),
				"at":  typed(semantics.TypeDateTime, "2026-01-02T03:04:05.6789Z"), "local": typed(semantics.TypeDateTimeOffset, "2026-01-02T05:04:05.6789+02:00"),
				"took": whole(semantics.TypeTimeSpan, 90*1e7), "raw": semantics.Bytes([]byte("x")),
			},
		},
		SequenceNumber: 42, EnqueuedSequenceNumber: 41, DeliveryCount: 2, Size: 1234,
		EnqueuedAt: time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), ExpiresAt: time.Date(2026, 1, 2, 4, 4, 5, 678e6, time.UTC),
	}
}

func whole(typ semantics.ValueType, n int64) semantics.Value {
	v, err := semantics.IntegerOf(typ, n)
	if err != nil {
		panic(err)
	}
	return v
}

func typed(typ semantics.ValueType, text string) semantics.Value {
	v, err := semantics.TextOf(typ, text)
	if err != nil {
		panic(err)
	}
	return v
}

// ofOrder checks outcomes for the order.
func ofOrder(t *testing.T, outcomes []outcome) {
	t.Helper()
	check(t, filter.OfReceived(order()), nil, outcomes)
}

// check evaluates each filter in four ways that must agree: as it is, in canonical text, within NOT, and explained.
func check(t *testing.T, p filter.Properties, parameters values, outcomes []outcome) {
	t.Helper()
	for _, o := range outcomes {
		f := parse(t, o.filter, parameters)
		if f == nil {
			continue
		}
		if got := evaluate(t, f, p); got != o.want {
			t.Errorf("%s gives %s, want %s", o.filter, got, o.want)
		}
		if got := evaluate(t, parse(t, f.String(), parameters), p); got != o.want {
			t.Errorf("%s, which is %s in canonical text, gives %s, want %s", f, o.filter, got, o.want)
		}
		opposite := map[string]string{T: F, F: T, U: U, E: E}[o.want]
		if got := evaluate(t, parse(t, "NOT ("+o.filter+")", parameters), p); got != opposite {
			t.Errorf("NOT (%s) gives %s, want %s", o.filter, got, opposite)
		}
		step := f.Explain(p)[0]
		if step.Err == nil && step.Truth.String() != o.want || step.Err != nil && o.want != E {
			t.Errorf("%s is explained as %s, %v, want %s", o.filter, step.Truth, step.Err, o.want)
		}
	}
}

func parse(t *testing.T, text string, parameters values) *filter.Filter {
	t.Helper()
	f, err := filter.ParseLong(text, parameters)
	if err != nil {
		t.Errorf("%s does not parse: %v", text, err)
		return nil
	}
	return f
}

// evaluate gives the outcome in the words of the tables, and checks Matches and the kind of error.
func evaluate(t *testing.T, f *filter.Filter, p filter.Properties) string {
	t.Helper()
	if f == nil {
		return "nothing"
	}
	truth, err := f.Evaluate(p)
	matches, matchErr := f.Matches(p)
	if !strings.Contains(f.String(), "newid") && (matches != (truth == filter.True && err == nil) || (matchErr == nil) != (err == nil)) {
		t.Errorf("%s: Matches gives %v, %v but Evaluate %s, %v", f, matches, matchErr, truth, err)
	}
	if err == nil {
		return truth.String()
	}
	var failure *filter.EvaluationError
	if !errors.As(err, &failure) || failure.Expression == "" || failure.Problem == "" || truth != filter.False {
		t.Errorf("%s fails with %s, %#v, want FALSE and a full EvaluationError", f, truth, err)
	}
	return E
}
