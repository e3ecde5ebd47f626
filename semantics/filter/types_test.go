package filter_test

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func TestSQL_5_Constants(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`9223372036854775807 = max`, T},
		{`-9223372036854775808 = least`, T},
		{`- 9223372036854775808 = least`, T},
		{`+5 = 5`, T},
		{`007 = 7`, T},
		{`4.5 = price`, T},
		{`.5 = half`, T},
		{`5. = 5`, T},
		{`45E-1 = price`, T},
		{`45e-1 = price`, T},
		{`.45E+1 = price`, T},
		{`0.45E1 = price`, T},
		{`1E2 = 100`, T},
		{`-0.0 = 0`, T},
		{`1 / 2 = 0`, T},
		{`1.0 / 2 = 0.5`, T},
		{`1E0 / 2 = 0.5`, T},
		{`1E-400 = 0`, T},
		{`'it''s' = [my-prop]`, T},
		{`'''' = ''''`, T},
		{`'' = empty`, T},
		{`'Ä' = 'Ä'`, T},
		{`'a
b' = 'a' + '
' + 'b'`, T},
		{`TRUE = yes`, T},
		{`true = yes`, T},
		{`False = no`, T},
		{`TRUE = FALSE`, F},
		{`null = 1`, U},
	})
}

func TestSQL_12_Numbers(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`byte = 200`, T},
		{`sbyte = -7`, T},
		{`short = -300`, T},
		{`ushort = 65535`, T},
		{`qty = 3`, T},
		{`uint = 4294967295`, T},
		{`usmall = 7`, T},
		{`qty > 2`, T},
		{`qty > 3`, F},
		{`qty >= 3`, T},
		{`qty < 3`, F},
		{`qty <= 3`, T},
		{`qty <> 3`, F},
		{`qty != 4`, T},
		{`sbyte < byte`, T},
		{`max = 9223372036854775807`, T},
		{`max > 9223372036854775806`, T},
		{`least < -9223372036854775807`, T},
		{`umax > max`, T},
		{`max < umax`, T},
		{`umax = umax`, T},
		{`umax > ubig`, T},
		{`ubig > max`, T},
		{`umax > least`, T},
		{`umax = -1`, F},
		{`qty = 3.0`, T},
		{`price > 4`, T},
		{`4 < price`, T},
		{`price = 4.5`, T},
		{`half = 0.5`, T},
		{`float = 0.1`, F},
		{`float > 0.1`, T},
		{`9007199254740993 = 9007199254740992.0`, F},
		{`9007199254740993 > 9007199254740992.0`, T},
		{`9007199254740992.0 < 9007199254740993`, T},
		{`max = 9223372036854775808.0`, F},
		{`max < 9223372036854775808.0`, T},
		{`ubig = 9223372036854775808.0`, T},
		{`umax < 18446744073709551616.0`, T},
		{`umax > 9223372036854775808.0`, T},
		{`least = -9223372036854775808.0`, T},
		{`least > -9223372036854777856.0`, T},
		{`ubig > 1.5`, T},
		{`-1 < -0.5`, T},
		{`0 > -0.5`, T},
		{`-1 > -1.5`, T},
		{`zero = -0.0`, T},
		{`inf > umax`, T},
		{`-inf < least`, T},
		{`inf = inf`, T},
		{`umax < inf`, T},
		{`nan = nan`, F},
		{`nan <> nan`, T},
		{`nan = 1`, F},
		{`1 <> nan`, T},
		{`nan > 1`, F},
		{`umax < nan`, F},
		{`nan <= tenth`, F},
	})
}

func TestSQL_12_Decimals(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`tenth = 0.1`, T},
		{`0.1 = tenth`, T},
		{`tenth < 1`, T},
		{`tenth > 0`, T},
		{`amount = 100.5`, T},
		{`amount > 100`, T},
		{`amount < 101`, T},
		{`debt = -3`, T},
		{`debt < 0`, T},
		{`debt > -4`, T},
		{`debt < tenth`, T},
		{`tenth > debt`, T},
		{`giant > umax`, T},
		{`umax < giant`, T},
		{`giant = giant`, T},
		{`giant > 1.5`, T},
		{`giant < inf`, T},
		{`float > tenth`, T},
		{`tenth + tenth = 0.2`, T},
		{`debt * 2 = -6`, T},
		{`-debt = 3`, T},
		{`+tenth = tenth`, T},
		{`debt / 0 < 0`, T},
		{`debt % 2 = -1`, T},
		{`tenth = '0.1'`, U},
	})
	for _, c := range []struct{ a, b string }{{"1.10", "1.1"}, {"-0", "0"}, {"00.0", "."}, {"+7", "7.000"}, {"0.000", "-.0"}} {
		if c.b == "." {
			c.b = "0."
		}
		m := &semantics.Message{Properties: values{"a": typed(semantics.TypeDecimal, c.a), "b": typed(semantics.TypeDecimal, c.b)}}
		check(t, filter.Of(m), nil, []outcome{{`a = b`, T}, {`a <> b`, F}, {`a >= b`, T}, {`a < b`, F}})
	}
}

func TestSQL_12_Strings(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`color = 'red'`, T},
		{`color = 'Red'`, F},
		{`color <> 'Red'`, T},
		{`color > 'blue'`, T},
		{`color < 'red '`, T},
		{`color >= 'red'`, T},
		{`'Z' < 'a'`, T},
		{`'z' < 'ä'`, T},
		{`'a' < 'aa'`, T},
		{`'' < 'a'`, T},
		{`empty = ''`, T},
		{`'ﬀ' < '😀'`, T},
		{`link = 'urn:x'`, T},
		{`link < 'urn:y'`, T},
		{`grade = 'A'`, T},
		{`grade < 'B'`, T},
		{`grade = 65`, U},
		{`grade = grade`, T},
		{`grade + color = 'Ared'`, T},
	})
}

func TestSQL_12_BoolsAndUUIDs(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`yes = TRUE`, T},
		{`yes <> TRUE`, F},
		{`yes = no`, F},
		{`yes <> no`, T},
		{`yes > no`, U},
		{`yes >= yes`, U},
		{`no < yes`, U},
		{`no <= TRUE`, U},
		{`yes = 1`, U},
		{`id = id`, T},
		{`id = id2`, F},
		{`id <> id2`, T},
		{`id > id2`, U},
		{`id <= id`, U},
		{`id = '` + orderID + `'`, T},
		{`'` + orderID + `' = id`, T},
		{`id = '6BA7B810-9DAD-11D1-80B4-00C04FD430C8'`, T},
		{`id <> '` + otherID + `'`, T},
		{`id = '` + otherID + `'`, F},
		{`id > '` + otherID + `'`, U},
		{`id = 'red'`, U},
		{`id <> color`, U},
		{`id = '{` + orderID + `}'`, U},
		{`id = '6ba7b810-9dad-11d1-80b4-00c04fd430cg'`, U},
		{`id = '6ba7b8109dad-11d1-80b4-00c04fd430c8-'`, U},
		{`id = 1`, U},
		{`id = ''`, U},
	})
}

func TestSQL_12_Datetimes(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`at = local`, T},
		{`at <> local`, F},
		{`at >= local`, T},
		{`at = '2026-01-02T03:04:05.6789Z'`, T},
		{`'2026-01-02T03:04:05.6789Z' = at`, T},
		{`at = '2026-01-02T04:04:05.6789+01:00'`, T},
		{`local = '2026-01-02T03:04:05.6789'`, T},
		{`at > '2026-01-02'`, T},
		{`at < '2026-01-03'`, T},
		{`at > '2026-01-02T03:04:05Z'`, T},
		{`at < '2026-01-02T03:04:05.679Z'`, T},
		{`'2026-01-02T03:04:06' > at`, T},
		{`at = sys.EnqueuedTimeUtc`, F},
		{`at > sys.EnqueuedTimeUtc`, T},
		{`at > '1969-12-31T23:59:59.999'`, T},
		{`at > 'yesterday'`, U},
		{`at = ''`, U},
		{`at > '2026-13-01'`, U},
		{`at > '2026-01-02T25:00:00Z'`, U},
		{`at > '2026'`, U},
		{`at = 1`, U},
		{`at = took`, U},
		{`at IN ('2026-01-02T03:04:05.6789Z')`, T},
		{`at = '2026-01-02T03:04:05.6789Z                         '`, U},
		{`'2026-01-02' < '2026-01-03T00:00:00Z'`, T},
	})
}

func TestSQL_12_DatetimesAtTheEnds(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{Properties: values{
		"last":  typed(semantics.TypeDateTime, "9999-12-31T23:59:59.999999999Z"),
		"year0": typed(semantics.TypeDateTimeOffset, "0000-01-01T00:00:00+14:00"),
	}}
	check(t, filter.Of(m), nil, []outcome{
		{`last > '9999-12-31T23:59:59.99999999'`, T}, {`year0 < '0001-01-01'`, T}, {`year0 < last`, T},
	})
}

func TestSQL_12_Timespans(t *testing.T) {
	t.Parallel()
	minute, two := whole(semantics.TypeTimeSpan, 60e7), whole(semantics.TypeTimeSpan, 120e7)
	check(t, filter.OfReceived(order()), values{"minute": minute, "two": two}, []outcome{
		{`took > @minute`, T},
		{`took < @two`, T},
		{`took = took`, T},
		{`took <> @two`, T},
		{`@minute >= took`, F},
		{`took = 900000000`, U},
		{`took = 'PT90S'`, U},
		{`sys.TimeToLive > @two`, T},
		{`sys.TimeToLive = @minute + 59 * 1`, U},
		{`took IN (@minute, took)`, T},
	})
}

func TestSQL_12_UnlikeTypes(t *testing.T) {
	t.Parallel()
	// one of each kind; what is not next to each other in a pair of the same kind never compares
	ofEach := []string{"color", "qty", "yes", "id", "at", "took", "raw"}
	for i, a := range ofEach {
		for j, b := range ofEach {
			if i == j && a != "raw" {
				continue
			}
			ofOrder(t, []outcome{{a + " = " + b, U}, {a + " <> " + b, U}, {a + " > " + b, U}, {a + " <= " + b, U}})
		}
	}
	ofOrder(t, []outcome{{`five = 5`, U}, {`five > 4`, U}, {`five <> 5`, U}, {`5 = '5'`, U}, {`yes = 'TRUE'`, U}, {`raw = 'x'`, U}, {`NOT five = 5`, U}})
}

func TestSQL_12_Warnings(t *testing.T) {
	t.Parallel()
	when, day := typed(semantics.TypeDateTime, "2026-01-02T00:00:00Z"), whole(semantics.TypeTimeSpan, 864e9)
	parameters := values{"when": when, "day": day, "name": semantics.String("x")}
	for text, want := range map[string][]string{
		`1=1`:                   nil,
		`a + 1 = 2 - b`:         nil,
		`price > 5 AND a = '5'`: nil,
		`@when > '2026-01-01'`:  nil,
		`@when + @day > @when`:  nil,
		`'5' = 5`:               {`column 1: '5' = 5 is always unknown, because a string and a number do not compare with =`},
		`a = 1 OR  TRUE > FALSE`: {
			`column 11: TRUE > FALSE is always unknown, because a bool and a bool do not compare with >`,
		},
		`@day = 5`:            {`column 1: @day = 5 is always unknown, because a timespan and a number do not compare with =`},
		`@when = 'soon'`:      {`column 1: @when = 'soon' is always unknown, because a datetime and a string do not compare with =`},
		`color = NULL`:        {`column 1: color = NULL is always unknown, because nothing compares with NULL; write IS NULL`},
		`NOT (NULL <> color)`: {`column 6: NULL <> color is always unknown, because nothing compares with NULL; write IS NULL`},
		`5 IN (4, 'x', TRUE)`: {
			`column 10: 5 = 'x' is always unknown, because a number and a string do not compare with =`,
			`column 15: 5 = TRUE is always unknown, because a number and a bool do not compare with =`,
		},
		`color LIKE 5`:        {`column 1: color LIKE 5 is always unknown, because LIKE takes strings, not a number`},
		`color NOT LIKE NULL`: {`column 1: color NOT LIKE NULL is always unknown, because LIKE takes strings, not NULL`},
		`1 LIKE color`:        {`column 1: 1 LIKE color is always unknown, because LIKE takes strings, not a number`},
		`a = 'n' + 1`:         {`column 5: 'n' + 1 is always unknown, because a string and a number do not go together with +`},
		`a = 1 / 0`:           {`column 5: 1 / 0 is always a failure: division of an integer by zero`},
		`a = 1 / 0.0`:         nil,
	} {
		got := parse(t, text, parameters).Warnings()
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s warns\n%q, want\n%q", text, got, want)
		}
	}
	f := parse(t, `'5' = 5`, nil)
	f.Warnings()[0] = "changed"
	if f.Warnings()[0] == "changed" {
		t.Error("a caller can change the warnings of a filter")
	}
}
