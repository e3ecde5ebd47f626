package filter_test

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/semantics/filter"
)

func TestSQL_7_ThreeValuedLogic(t *testing.T) {
	t.Parallel()
	// "yes" is true, "no" false, "lost" missing
	ofOrder(t, []outcome{
		{`yes AND yes`, T},
		{`yes AND no`, F},
		{`yes AND lost`, U},
		{`no AND yes`, F},
		{`no AND no`, F},
		{`no AND lost`, F},
		{`lost AND yes`, U},
		{`lost AND no`, F},
		{`lost AND lost`, U},
		{`yes OR yes`, T},
		{`yes OR no`, T},
		{`yes OR lost`, T},
		{`no OR yes`, T},
		{`no OR no`, F},
		{`no OR lost`, U},
		{`lost OR yes`, T},
		{`lost OR no`, U},
		{`lost OR lost`, U},
		{`NOT yes`, F},
		{`NOT no`, T},
		{`NOT lost`, U},
		{`lost AND lost AND no`, F},
		{`lost OR no OR lost`, U},
		{`no OR no OR yes`, T},
		{`yes AND yes AND yes`, T},
		{`lost OR yes AND lost`, U},
		{`yes OR lost AND no`, T},
		{`(yes OR lost) AND no`, F},
		{`NOT (lost OR yes)`, F},
		{`NOT (lost AND no)`, T},
		{`nothing AND no`, F},
		{`nothing OR yes`, T},
		{`NOT nothing`, U},
		{`NOT NULL`, U},
	})
	if !(filter.False < filter.Unknown && filter.Unknown < filter.True) {
		t.Error("truths are not in the order the logic rests on")
	}
}

func TestSQL_7_StopsWhenCertain(t *testing.T) {
	t.Parallel()
	const fails = `1 / zero = 1`
	ofOrder(t, []outcome{
		{`no AND ` + fails, F},
		{`yes OR ` + fails, T},
		{`qty IN (3, 1 / zero)`, T},
		{`qty NOT IN (3, 1 / zero)`, F},
		{`yes AND ` + fails, E},
		{`no OR ` + fails, E},
		{`lost AND ` + fails, E},
		{`lost OR ` + fails, E},
		{`qty IN (4, 1 / zero)`, E},
		{fails + ` AND no`, E},
		{fails + ` OR yes`, E},
		{`zero <> 0 AND 10 / zero > 2`, F},
		{`zero = 0 OR 10 / zero > 2`, T},
		{`lost <> 0 AND 10 / lost > 2`, U},
	})
}

func TestSQL_7_OnlyTrueSelects(t *testing.T) {
	t.Parallel()
	view := filter.OfReceived(order())
	for text, want := range map[string]bool{`1=1`: true, `1=0`: false, `lost = 1`: false, `NOT lost = 1`: false, `TRUE`: true, `NULL`: false} {
		if got, err := parse(t, text, nil).Matches(view); got != want || err != nil {
			t.Errorf("%s matches: %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestSQL_7_ValueAsCondition(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`yes`, T},
		{`no`, F},
		{`(yes)`, T},
		{`((no))`, F},
		{`TRUE`, T},
		{`FALSE`, F},
		{`NULL`, U},
		{`lost`, U},
		{`qty`, U},
		{`1`, U},
		{`'TRUE'`, U},
		{`p('yes')`, T},
		{`qty + 1`, U},
		{`raw`, U},
		{`id`, U},
		{`1 / zero`, E},
	})
}

func TestSQL_8_UnknownOperands(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"=", "<>", "!=", ">", ">=", "<", "<="} {
		ofOrder(t, []outcome{
			{fmt.Sprintf(`lost %s 1`, op), U}, {fmt.Sprintf(`1 %s lost`, op), U}, {fmt.Sprintf(`lost %s lost`, op), U},
		})
	}
	for _, op := range []string{"+", "-", "*", "/", "%"} {
		ofOrder(t, []outcome{
			{fmt.Sprintf(`lost %s 1 = 1`, op), U}, {fmt.Sprintf(`1 %s lost = 1`, op), U}, {fmt.Sprintf(`lost %s 0 = 1`, op), U},
		})
	}
	ofOrder(t, []outcome{
		{`-lost = 1`, U},
		{`+lost = 1`, U},
		{`lost + 1 / zero = 1`, E},
		{`lost LIKE '%'`, U},
		{`lost NOT LIKE '%'`, U},
		{`color LIKE lost`, U},
		{`color LIKE 'r%' ESCAPE lost`, U},
		{`lost IN (1)`, U},
		{`lost NOT IN (1)`, U},
		{`lost IN (lost)`, U},
	})
}

func TestSQL_8_In(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`color IN ('red', 'blue')`, T},
		{`color IN ('blue', 'red')`, T},
		{`color IN ('blue')`, F},
		{`color NOT IN ('blue')`, T},
		{`color NOT IN ('red')`, F},
		{`color IN ('Red')`, F},
		{`qty IN (1, 2, 3)`, T},
		{`qty IN (1, 2)`, F},
		{`qty IN (3.0)`, T},
		{`qty IN (lost, 3)`, T},
		{`qty IN (3, lost)`, T},
		{`qty IN (lost, 4)`, U},
		{`qty IN (4, lost)`, U},
		{`qty NOT IN (4, lost)`, U},
		{`qty NOT IN (3, lost)`, F},
		{`qty IN (NULL, 3)`, T},
		{`qty IN (NULL, 4)`, U},
		{`qty IN ('a', 3)`, T},
		{`qty IN ('a', 4)`, U},
		{`qty + 1 IN (2 * 2)`, T},
		{`qty IN (price, max, qty)`, T},
		{`yes IN (TRUE)`, T},
		{`id IN ('` + orderID + `')`, T},
		{`nothing IN (NULL)`, U},
		{`'a' IN ('a')`, T},
		{`nan IN (nan)`, F},
	})
}

func TestSQL_9_IsNullAndExists(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`lost IS NULL`, T},
		{`lost IS NOT NULL`, F},
		{`nothing IS NULL`, T},
		{`nothing IS NOT NULL`, F},
		{`color IS NULL`, F},
		{`color IS NOT NULL`, T},
		{`empty IS NULL`, F},
		{`raw IS NULL`, F},
		{`no IS NULL`, F},
		{`zero IS NOT NULL`, T},
		{`EXISTS(color)`, T},
		{`EXISTS(nothing)`, T},
		{`EXISTS(lost)`, F},
		{`EXISTS(raw)`, T},
		{`EXISTS(user.color)`, T},
		{`NOT EXISTS(lost)`, T},
		{`NOT EXISTS(color)`, F},
		{`EXISTS([my-prop])`, T},
		{`exists ( COLOR )`, T},
		{`sys.To IS NULL`, F},
		{`sys.ReplyTo IS NULL`, T},
		{`EXISTS(sys.To)`, T},
		{`EXISTS(sys.ReplyTo)`, F},
		{`NOT lost IS NULL`, F},
		{`NOT lost IS NOT NULL`, T},
	})
}

func TestSQL_10_NotEqualDoesNotSelectTheMissing(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`shade <> 'red'`, U}, {`shade IS NULL OR shade <> 'red'`, T}, {`color IS NULL OR color <> 'red'`, F}, {`color <> 'red'`, F}, {`color <> 'blue'`, T},
	})
}

func TestSQL_11_Null(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`NULL = NULL`, U},
		{`NULL <> NULL`, U},
		{`nothing = NULL`, U},
		{`nothing = nothing`, U},
		{`nothing <> 1`, U},
		{`1 < nothing`, U},
		{`nothing + 1 = 1`, U},
		{`1 * NULL = 0`, U},
		{`nothing + 'a' = 'a'`, U},
		{`1 / NULL = 1`, U},
		{`NULL / 0 = 1`, U},
		{`-nothing = 0`, U},
		{`nothing LIKE '%'`, U},
		{`color LIKE NULL`, U},
		{`sys.ReplyTo = 'x'`, U},
		{`sys.ReplyTo <> 'x'`, U},
	})
}

func TestSQL_17_GoldenSamples(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`sys.Label LIKE '%bus%' OR sys.Label = 'x'`, T},
		{`StoreId IN ('Store1','Store2')`, U},
		{`color IN ('Store1','red')`, T},
		{`sys.To = 'S5'`, T},
		{`sys.To = 's5'`, F},
		{`EXISTS(nothing) AND nothing IS NULL`, T},
		{`EXISTS(lost) AND lost IS NULL`, F},
		{`NOT EXISTS(b)`, T},
		{`[my-prop] = 'it''s'`, T},
		{`1=1`, T},
		{`1=0`, F},
		{`price*qty > 10.5`, T},
		{`price*qty > 13.5`, F},
		{`qty%2=0`, F},
		{`usmall%2=1`, T},
		{`p('yes') = TRUE`, T},
		{`p('no') = TRUE`, F},
		{`p('lost') = TRUE`, U},
	})
}
