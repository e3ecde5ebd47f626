package filter_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

func TestACT_5_IntegerTargets(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET qty = 5`, "qty int32 5"},
		{`SET QTY = max`, E},
		{`SET qty = 2147483647`, "qty int32 2147483647"},
		{`SET qty = 2147483648`, E},
		{`SET qty = price * 2`, "qty int32 9"},
		{`SET qty = price`, E}, // 4.5 would lose its fraction
		{`SET qty = '17'`, "qty int32 17"},
		{`SET qty = '-17'`, "qty int32 -17"},
		{`SET qty = '17.0'`, E},
		{`SET qty = ' 17'`, E},
		{`SET qty = '0x11'`, E},
		{`SET qty = ''`, E},
		{`SET qty = color`, E},
		{`SET qty = yes`, E},
		{`SET qty = id`, E},
		{`SET qty = at`, E},
		{`SET qty = took`, E},
		{`SET qty = raw`, E},
		{`SET qty = nan`, E},
		{`SET qty = inf`, E},
		{`SET qty = -0.0`, "qty int32 0"},
		{`SET qty = debt`, "qty int32 -3"},
		{`SET qty = amount`, E},
		{`SET qty = tenth - tenth`, "qty int32 0"},
		{`SET byte = 255`, "byte byte 255"},
		{`SET byte = 256`, E},
		{`SET byte = -1`, E},
		{`SET sbyte = -128`, "sbyte sbyte -128"},
		{`SET sbyte = 128`, E},
		{`SET short = qty`, "short int16 3"},
		{`SET ushort = -1`, E},
		{`SET uint = qty`, "uint uint32 3"},
		{`SET zero = least`, "zero int64 -9223372036854775808"},
		{`SET zero = ubig`, E},
		{`SET zero = 9223372036854775808.0`, E},
		{`SET zero = -9223372036854775808.0`, "zero int64 -9223372036854775808"},
		{`SET zero = -9223372036854777856.0`, E},
		{`SET zero = -1E30`, E},
		{`SET usmall = -1`, E},
		{`SET usmall = umax`, "usmall uint64 18446744073709551615"},
		{`SET usmall = 5`, "usmall uint64 5"},
		{`SET usmall = '18446744073709551615'`, "usmall uint64 18446744073709551615"},
		{`SET usmall = '18446744073709551616'`, E},
		{`SET usmall = 9223372036854775808.0`, "usmall uint64 9223372036854775808"},
		{`SET usmall = 18446744073709551616.0`, E},
		{`SET usmall = giant`, E},
	})
}

func TestACT_5_OtherNumberTargets(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET price = 5`, "price double 5"},
		{`SET price = umax`, "price double 1.8446744073709552e+19"},
		{`SET price = tenth`, "price double 0.1"},
		{`SET price = half`, "price double 0.5"},
		{`SET price = '1.5e3'`, "price double 1500"},
		{`SET price = 'Infinity'`, E},
		{`SET price = 'nan'`, E},
		{`SET price = '0x1p-2'`, E},
		{`SET price = '1_000.0'`, E},
		{`SET price = '1e999'`, E},
		{`SET price = color`, E},
		{`SET price = yes`, E},
		{`SET half = 0.1`, "half float 0.10000000149011612"},
		{`SET half = 1E39`, E},
		{`SET half = inf`, "half float +Inf"},
		{`SET half = '0.25'`, "half float 0.25"},
		{`SET tenth = 5`, "tenth decimal 5"},
		{`SET tenth = umax`, "tenth decimal 18446744073709551615"},
		{`SET tenth = 0.25`, "tenth decimal 0.25"},
		{`SET tenth = 1E20`, "tenth decimal 100000000000000000000"},
		{`SET tenth = 1E300`, E},
		{`SET tenth = inf`, E},
		{`SET tenth = nan`, E},
		{`SET tenth = '12.50'`, "tenth decimal 12.50"},
		{`SET tenth = '1e5'`, E},
		{`SET tenth = yes`, E},
		{`SET tenth = took`, E},
		{`SET tenth = amount`, "tenth decimal +0100.500"},
	})
}

func TestACT_5_TextTargets(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET color = 5`, "Color string 5"},
		{`SET color = -0.5`, "Color string -0.5"},
		{`SET color = 5.0`, "Color string 5"},
		{`SET color = inf`, "Color string Infinity"},
		{`SET color = -inf`, "Color string -Infinity"},
		{`SET color = nan`, "Color string NaN"},
		{`SET color = umax`, "Color string 18446744073709551615"},
		{`SET color = amount`, "Color string +0100.500"},
		{`SET color = yes`, "Color string true"},
		{`SET color = id`, "Color string " + orderID},
		{`SET color = at`, "Color string 2026-01-02T03:04:05.6789Z"},
		{`SET color = local`, "Color string 2026-01-02T05:04:05.6789+02:00"},
		{`SET color = took`, "Color string 90s"},
		{`SET color = grade`, "Color string A"},
		{`SET color = link`, "Color string urn:x"},
		{`SET color = raw`, E},
		{`SET link = 'urn:y'`, "link uri urn:y"},
		{`SET link = 5`, "link uri 5"},
		{`SET grade = 'B'`, "grade char 66"},
		{`SET grade = '😀'`, "grade char 128512"},
		{`SET grade = 'BC'`, E},
		{`SET grade = ''`, E},
		{`SET grade = 66`, E},
		{`SET sys.Label = 5`, "sys.Label 5"},
		{`SET sys.Label = id`, "sys.Label " + orderID},
		{`SET sys.To = sys.TimeToLive`, "sys.To 3600s"},
		{`SET sys.Label = yes`, "sys.Label true"},
		{`SET sys.Label = raw`, E},
		{`SET sys.CorrelationId = p('id')`, "sys.CorrelationId " + orderID},
	})
}

func TestACT_5_BoolUUIDAndBytesTargets(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET yes = FALSE`, "yes bool false"},
		{`SET yes = 'false'`, "yes bool false"},
		{`SET no = 'TRUE'`, "no bool true"},
		{`SET yes = 'no'`, E},
		{`SET yes = 0`, E},
		{`SET yes = ''`, E},
		{`SET id = '` + otherID + `'`, "id uuid " + otherID},
		{`SET id = '` + strings.ToUpper(orderID[:8]) + otherID[8:] + `'`, "id uuid " + orderID[:8] + otherID[8:]},
		{`SET id = id2`, "id uuid " + otherID},
		{`SET id = 'x'`, E},
		{`SET id = ''`, E},
		{`SET id = 5`, E},
		{`SET raw = 'x'`, E},
		{`SET raw = 5`, E},
		{`SET raw = raw`, ""},
	})
}

func TestACT_5_TimeTargets(t *testing.T) {
	t.Parallel()
	onOrder(t, values{"day": whole(semantics.TypeTimeSpan, 864e9)}, []effect{
		{`SET at = '2030-01-01'`, "at datetime 2030-01-01T00:00:00Z"},
		{`SET at = '2030-01-01T02:00:00+02:00'`, "at datetime 2030-01-01T00:00:00Z"},
		{`SET at = '2030-01-01T02:00:00'`, "at datetime 2030-01-01T02:00:00Z"},
		{`SET at = at + @day`, "at datetime 2026-01-03T03:04:05.6789Z"},
		{`SET at = local`, ""},
		{`SET local = '2030-01-01T02:00:00+02:00'`, "local datetimeoffset 2030-01-01T02:00:00+02:00"},
		{`SET local = '2030-01-01'`, "local datetimeoffset 2030-01-01T00:00:00Z"},
		{`SET local = at`, "local datetimeoffset 2026-01-02T03:04:05.6789Z"},
		{`SET at = 'soon'`, E},
		{`SET at = '9999-12-31T23:00:00-02:00'`, E}, // year 10000
		{`SET at = 5`, E},
		{`SET at = took`, E},
		{`SET took = @day`, "took timespan 864000000000"},
		{`SET took = 'PT1M30.5S'`, "took timespan 905000000"},
		{`SET took = 'P1W2DT3H'`, "took timespan 7884000000000"},
		{`SET took = '1h2m3s4ms5us'`, "took timespan 37230040050"},
		{`SET took = '-.5s'`, "took timespan -5000000"},
		{`SET took = '0'`, "took timespan 0"},
		{`SET took = '100ns'`, "took timespan 1"},
		{`SET took = '50ns'`, E}, // finer than a timespan
		{`SET took = '0.05us'`, E},
		{`SET took = '0.0000001000000001s'`, E},
		{`SET took = '0.0000002s'`, "took timespan 2"},
		{`SET took = 'P1DT'`, E},
		{`SET took = 'P'`, E},
		{`SET took = 'PT'`, E},
		{`SET took = 'P1Y'`, E},
		{`SET took = '5'`, E},
		{`SET took = '00:01:00'`, E},
		{`SET took = ''`, E},
		{`SET took = 90`, E},
		{`SET took = '999999999999h'`, E},
		{`SET took = ' 5s'`, E},
	})
}

func TestACT_5_TimeToLive(t *testing.T) {
	t.Parallel()
	longest, minute := whole(semantics.TypeTimeSpan, math.MaxInt64), whole(semantics.TypeTimeSpan, 60e7)
	onOrder(t, values{"longest": longest, "minute": minute}, []effect{
		{`SET sys.TimeToLive = @minute`, "sys.TimeToLive 1m0s"},
		{`SET sys.TimeToLive = sys.TimeToLive - @minute`, "sys.TimeToLive 59m0s"},
		{`SET sys.TimeToLive = took`, "sys.TimeToLive 1m30s"},
		{`SET sys.TimeToLive = 'PT30S'`, "sys.TimeToLive 30s"},
		{`SET sys.TimeToLive = '1ms'`, "sys.TimeToLive 1ms"},
		{`SET sys.TimeToLive = '0.9999ms'`, E},
		{`SET sys.TimeToLive = '-5s'`, E},
		{`SET sys.TimeToLive = @minute - @minute`, E},
		{`SET sys.TimeToLive = 30`, E}, // a number has no unit
		{`SET sys.TimeToLive = 30.0`, E},
		{`SET sys.TimeToLive = at`, E},
		{`SET sys.TimeToLive = color`, E},
		{`SET sys.TimeToLive = yes`, E},
		{`SET sys.TimeToLive = at - (at - @minute)`, "sys.TimeToLive 1m0s"},
		{`SET sys.TimeToLive = @longest`, "sys.TimeToLive " + semantics.Never.String()},
	})
	never := semantics.Never
	m := &semantics.Message{TimeToLive: &never}
	if got := effectOf(t, `SET sys.TimeToLive = sys.TimeToLive`, nil, m); got != "" {
		t.Errorf("never becomes %s", got)
	}
	if got := effectOf(t, `SET sys.TimeToLive = '`+(200*365*24*time.Hour).String()+`'`, nil, m); got != "sys.TimeToLive 1752000h0m0s" {
		t.Errorf("200 years are %s", got)
	}
}

func TestMSG_13_NewPropertiesKeepExactTypes(t *testing.T) {
	t.Parallel()
	m := order().Message
	for name, value := range m.Properties {
		want := "fresh " + show(value)
		for _, expression := range []string{"[" + strings.ReplaceAll(name, "]", "]]") + "]", "p('" + name + "')", "(p('user.' + '" + name + "'))"} {
			if got := effectOf(t, `SET fresh = `+expression, nil, &m); got != strings.TrimSpace(want) {
				t.Errorf("SET fresh = %s makes %s, want %s", expression, got, want)
			}
		}
	}
	onOrder(t, values{"n": whole(semantics.TypeInt16, 5), "d": typed(semantics.TypeDecimal, "1.50")}, []effect{
		{`SET fresh = @n`, "fresh int16 5"},
		{`SET fresh = @d`, "fresh decimal 1.50"},
		{`SET fresh = -@n`, "fresh int64 -5"},
		{`SET fresh = +tenth`, "fresh decimal 0.1"},
		{`SET fresh = umax - 1`, "fresh uint64 18446744073709551614"},
		{`SET fresh = 1.0`, "fresh double 1"},
		{`SET fresh = TRUE`, "fresh bool true"},
		{`SET fresh = at - at`, "fresh timespan 0"},
		{`SET fresh = local + took`, "fresh datetime 2026-01-02T03:05:35.6789Z"},
		{`SET fresh = +raw`, "fresh null"},
	})
}
