package filter_test

import (
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func TestSQL_13_Arithmetic(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`qty + 1 = 4`, T},
		{`qty - 5 = -2`, T},
		{`qty * -2 = -6`, T},
		{`7 / 2 = 3`, T},
		{`-7 / 2 = -3`, T},
		{`7 / -2 = -3`, T},
		{`-7 / -2 = 3`, T},
		{`7 % 3 = 1`, T},
		{`-7 % 3 = -1`, T},
		{`7 % -3 = 1`, T},
		{`-7 % -3 = -1`, T},
		{`least % -1 = 0`, T},
		{`least / 1 = least`, T},
		{`7.0 / 2 = 3.5`, T},
		{`7 / 2.0 = 3.5`, T},
		{`7.5 % 2 = 1.5`, T},
		{`-7.5 % 2 = -1.5`, T},
		{`7 % 2.5 = 2`, T},
		{`price * qty = 13.5`, T},
		{`price - 1 = 3.5`, T},
		{`max + 0 = max`, T},
		{`max * 1 - 1 < max`, T},
		{`byte + sbyte = 193`, T},
		{`ushort * uint = 281470681677825`, T},
		{`half + 1 = 1.5`, T},
		{`1.0 / 0 = inf`, T},
		{`-1.0 / 0 = -inf`, T},
		{`1 / 0.0 = inf`, T},
		{`0.0 / 0 = 0`, F},
		{`0.0 / 0 <> 0`, T},
		{`1.0 % 0 <> 1`, T},
		{`1E308 * 10 = inf`, T},
		{`umax - max = ubig`, T},
		{`umax - umax = 0`, T},
		{`umax / 2 = max`, T},
		{`umax % 10 = 5`, T},
		{`least + ubig = 0`, T},
		{`-ubig = least`, T},
		{`ubig - 1 = max`, T},
		{`umax * 1 = umax`, T},
		{`umax + 0.0 = 18446744073709551616.0`, T},
		{`umax * -1 < 0`, E},
		{`umax * 0 = 0`, T},
		{`+umax = umax`, T},
	})
	ofOrder(t, []outcome{
		{`'a' + 'b' = 'ab'`, T},
		{`color + '' = color`, T},
		{`empty + empty = ''`, T},
		{`link + '!' = 'urn:x!'`, T},
		{`'a' + 1 = 'a1'`, U},
		{`1 + 'a' = 'a1'`, U},
		{`'b' - 'a' = 1`, U},
		{`'a' * 2 = 'aa'`, U},
		{`-color = 'red'`, U},
		{`+color = 'red'`, U},
		{`+yes = TRUE`, U},
		{`-yes = FALSE`, U},
		{`yes + 1 = 2`, U},
		{`id + 1 = 1`, U},
		{`raw + raw = 'xx'`, U},
		{`id + 'a' = 'a'`, U},
		{`color / 0 = 1`, U},
		{`0 / yes = 1`, U},
	})
}

func TestRULE_8_EvaluationErrors(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`1 / 0 = 1`, E},
		{`1 % 0 = 1`, E},
		{`0 / 0 = 1`, E},
		{`qty / zero > 1`, E},
		{`umax % zero = 0`, E},
		{`least / 0 = 1`, E},
		{`max + 1 > 0`, E},
		{`least - 1 < 0`, E},
		{`max * 2 > 0`, E},
		{`least * -1 > 0`, E},
		{`least / -1 > 0`, E},
		{`-least > 0`, E},
		{`max - least > 0`, E},
		{`least + least < 0`, E},
		{`umax + 1 > 0`, E},
		{`umax * 2 > 0`, E},
		{`umax * umax > 0`, E},
		{`-umax < 0`, E},
		{`least - ubig < 0`, E},
		{`4294967296 * 4294967296 = 0`, E},
		{`1 IN (1 / 0)`, E},
		{`1 / 0 IN (1)`, E},
		{`'a' + 'b' LIKE property('x' + color) OR 1 / zero = 1`, E},
		{`(1 / 0)`, E},
		{`NOT 1 / 0 = 1`, E},
		{`p('sys.' + color) = 1`, E},
		{`color LIKE property('sys.' + color)`, E},
		{`color LIKE 'a' ESCAPE property('sys.' + color)`, E},
		{`property('sys.' + color) LIKE 'a'`, E},
	})
	for text, want := range map[string]string{
		`yes AND price > qty/zero`: "cannot evaluate qty / zero: division of an integer by zero",
		`-(max + 1) = 0`:           "cannot evaluate max + 1: the result does not fit 64 bits",
		`-least = 0`:               "cannot evaluate -least: the result does not fit 64 bits",
		`p('sys.'+color) = 1`:      "cannot evaluate property('sys.' + color): the name is that of no system property",
	} {
		_, err := parse(t, text, nil).Matches(filter.OfReceived(order()))
		if err == nil || err.Error() != want {
			t.Errorf("%s fails with %v, want %s", text, err, want)
		}
	}
}

func TestRULE_8_JoinedTextIsBounded(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{Properties: values{"a": semantics.String(strings.Repeat("x", semantics.MaxPropertyValueSize))}}
	check(t, filter.Of(m), nil, []outcome{
		{`a + a LIKE '%x'`, T}, {`a + a + '' LIKE '%x'`, T}, {`a + a + 'x' LIKE '%x'`, E}, {`a` + strings.Repeat(` + a`, 200) + ` = 'x'`, E},
	})
}

func TestSQL_13_IntegersAreExact(t *testing.T) {
	t.Parallel()
	integer := number().Filter(func(v semantics.Value) bool {
		return v.Type() == semantics.TypeInt64 || v.Type() == semantics.TypeUint64
	})
	filters := map[string]*filter.Filter{}
	for _, op := range []string{"+", "-", "*", "/", "%"} {
		filters[op] = parse(t, "a "+op+" b = c", nil)
	}
	least, most := big.NewInt(-1<<63), big.NewInt(1<<63-1)
	widest := new(big.Int).SetUint64(1<<64 - 1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := integer.Draw(t, "a"), integer.Draw(t, "b")
		op := rapid.SampledFrom([]string{"+", "-", "*", "/", "%"}).Draw(t, "op")
		x, y, want := exact(a).Num(), exact(b).Num(), new(big.Int)
		m := &semantics.Message{Properties: values{"a": a, "b": b}}
		fails := false
		switch op {
		case "+":
			want.Add(x, y)
		case "-":
			want.Sub(x, y)
		case "*":
			want.Mul(x, y)
		case "/", "%":
			if fails = y.Sign() == 0; fails {
				break
			}
			if op == "/" {
				want.Quo(x, y)
			} else {
				want.Rem(x, y)
			}
		}
		top := most
		if x.Cmp(most) > 0 || y.Cmp(most) > 0 {
			top = widest
		}
		fails = fails || want.Cmp(least) < 0 || want.Cmp(top) > 0
		if want.IsInt64() {
			m.Properties["c"] = semantics.Int64(want.Int64())
		} else {
			m.Properties["c"] = semantics.Uint64(want.Uint64())
		}
		got, err := filters[op].Evaluate(filter.Of(m))
		if fails != (err != nil) || !fails && got != filter.True {
			t.Fatalf("%s %s %s is %s; the filter gives %s, %v", x, op, y, want, got, err)
		}
	})
}

func TestSQL_16_TimeArithmetic(t *testing.T) {
	t.Parallel()
	parameters := values{
		"noon": typed(semantics.TypeDateTime, "2026-03-01T12:00:00Z"), "first": typed(semantics.TypeDateTime, "0001-01-01T00:00:00Z"),
		"last": typed(semantics.TypeDateTime, "9999-12-31T23:59:59.9999999Z"), "old": typed(semantics.TypeDateTimeOffset, "1969-12-31T23:59:59.25-01:00"),
		"day": whole(semantics.TypeTimeSpan, 864e9), "tick": whole(semantics.TypeTimeSpan, 1), "half": whole(semantics.TypeTimeSpan, 5e6),
		"long": whole(semantics.TypeTimeSpan, 1<<63-1), "back": whole(semantics.TypeTimeSpan, -1<<63), "fine": typed(semantics.TypeDateTime, "2026-03-01T12:00:00.00000005Z"),
	}
	check(t, filter.OfReceived(order()), parameters, []outcome{
		{`@noon + @day = '2026-03-02T12:00:00Z'`, T},
		{`@noon - @day = '2026-02-28T12:00:00Z'`, T},
		{`@day + @noon = '2026-03-02T12:00:00Z'`, T},
		{`@noon + -@day = '2026-02-28'`, F},
		{`@noon + @tick > @noon`, T},
		{`@noon - @tick = '2026-03-01T11:59:59.9999999Z'`, T},
		{`@noon + @tick = '2026-03-01T12:00:00.0000001'`, T},
		{`@noon + @half + @half = '2026-03-01T12:00:01'`, T},
		{`@noon - @half - @half = '2026-03-01T11:59:59'`, T},
		{`@old + @half = '1970-01-01T00:59:59.75'`, T},
		{`@old - @half = '1970-01-01T00:59:58.75'`, T},
		{`@first - @tick < @noon`, E},
		{`@last + @tick > @noon`, E},
		{`@first + @tick > @first`, T},
		{`@last - @tick < @last`, T},
		{`@noon + @long > @noon`, E},
		{`@noon + @back < @noon`, E},
		{`@noon - @back > @noon`, E},
		{`@noon - @noon = @day - @day`, T},
		{`@noon + @day - @noon = @day`, T},
		{`@first - @last < @day`, T},
		{`@last - @first + @first = @last`, T},
		{`@fine - @noon = @tick - @tick`, T},
		{`@noon - @fine = @tick - @tick`, T},
		{`@day + @day > @day`, T},
		{`@day - @day - @day = -@day`, T},
		{`+@day = @day`, T},
		{`@long + @tick > @day`, E},
		{`@back - @tick < @day`, E},
		{`-@back > @day`, E},
		{`@noon + @noon > @noon`, U},
		{`@day - @noon < @noon`, U},
		{`@noon * 2 > @noon`, U},
		{`@day * 2 > @day`, U},
		{`@day / @day = 1`, U},
		{`@noon + 1 > @noon`, U},
		{`@noon - 1 < @noon`, U},
		{`@day + 1 > @day`, U},
		{`1 + @day > @day`, U},
		{`'2026-03-01' + @day > @noon`, U},
		{`@noon - '2026-03-01' > @day`, U},
		{`-@noon < @noon`, U},
		{`+@noon = @noon`, U},
		{`@noon % @day = @day`, U},
		{`sys.EnqueuedTimeUtc + sys.TimeToLive = sys.ExpiresAtUtc`, T},
		{`sys.ExpiresAtUtc - sys.TimeToLive = sys.EnqueuedTimeUtc`, T},
		{`at + took > '2026-01-02T03:05'`, U},
		{`at + took > '2026-01-02T03:05:35'`, T},
		{`lost + @day > @noon`, U},
		{`at + nothing > @noon`, U},
	})
}

func TestSQL_16_Parameters(t *testing.T) {
	t.Parallel()
	parameters := values{
		"@color": semantics.String("red"), "Price": semantics.Double(4.5), "n": whole(semantics.TypeInt16, 3), "d": typed(semantics.TypeDecimal, "0.1"),
		"u": semantics.Uint64(1<<64 - 1), "flag": semantics.Bool(true), "p": semantics.Int64(7), "unused": semantics.Int64(0), "größe": semantics.String("Ärger"), "x_1": semantics.Int64(1),
	}
	check(t, filter.OfReceived(order()), parameters, []outcome{
		{`color = @color`, T},
		{`color = @COLOR`, T},
		{`price = @price`, T},
		{`qty = @n`, T},
		{`@n * @price = 13.5`, T},
		{`tenth = @d`, T},
		{`umax = @u`, T},
		{`@flag`, T},
		{`yes = @flag`, T},
		{`usmall = @p`, T},
		{`color LIKE @color + '%'`, T},
		{`color IN (@n, @color)`, T},
		{`property(@color) = 1`, U},
		{`größe = @Größe`, T},
		{`@x_1 = 1`, T},
		{`color LIKE @color`, T},
		{`'a%' LIKE 'a!%' ESCAPE '!' AND @n > 2`, T},
	})
	for text, name := range map[string]values{
		`parameter "x" must be a string, number, bool, datetime or timespan, got null`:   {"x": semantics.Null()},
		`parameter "x" must be a string, number, bool, datetime or timespan, got bytes`:  {"@x": semantics.Bytes(nil)},
		`parameter "x" must be a string, number, bool, datetime or timespan, got uuid`:   {"x": typed(semantics.TypeUUID, orderID)},
		`parameter "x" must be a string, number, bool, datetime or timespan, got uri`:    {"x": typed(semantics.TypeURI, "u")},
		`parameter "x" must be a string, number, bool, datetime or timespan, got char`:   {"x": whole(semantics.TypeChar, 'x')},
		`parameter "x" must be a string, number, bool, datetime or timespan, got string`: {"x": semantics.String("\xff")},
	} {
		wantInvalid(t, "1=1", name, text)
	}
	wantInvalid(t, "@x = 1", nil, "column 1: parameter @x has no value; pass one with the rule")
	if _, err := filter.Parse("1=1", values{"x": semantics.Int64(1), "@X": semantics.Int64(1)}); semantics.CodeOf(err) != semantics.FilterInvalid {
		t.Errorf("a parameter given twice gives %v", err)
	}
}
