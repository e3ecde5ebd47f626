package filter_test

import (
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func TestSQL_1_CanonicalText(t *testing.T) {
	t.Parallel()
	parameters := values{"Max": semantics.Int64(1), "p": semantics.Int64(1)}
	for _, c := range []struct{ text, want string }{
		{`a=1`, `a = 1`},
		{"\ta\n=\r\n1 ", `a = 1`},
		{`a!=1`, `a <> 1`},
		{`A aNd b oR nOt C`, `A AND b OR NOT C`},
		{`(((a)))`, `a`},
		{`a AND (b AND c)`, `a AND (b AND c)`},
		{`(a AND b) AND c`, `(a AND b) AND c`},
		{`a AND b AND c OR (d)`, `a AND b AND c OR d`},
		{`a OR (b OR c)`, `a OR (b OR c)`},
		{`(a OR b) AND c`, `(a OR b) AND c`},
		{`NOT (a OR b)`, `NOT (a OR b)`},
		{`NOT (NOT (a))`, `NOT (NOT a)`},
		{`NOT (a = 1)`, `NOT a = 1`},
		{`NOT (a IS NOT NULL)`, `NOT a IS NOT NULL`},
		{`NOT (a + 1)`, `NOT a + 1`},
		{`(NOT a) AND b`, `NOT a AND b`},
		{`(a+b)*c=a+(b*c)`, `(a + b) * c = a + b * c`},
		{`a-(b-c)-d=(a-b)-c`, `a - (b - c) - d = a - b - c`},
		{`a/(b*c)%d=a`, `a / (b * c) % d = a`},
		{`-a*-(b+c)=- a`, `-a * -(b + c) = -a`},
		{`-(-a)=+(+a)`, `-(-a) = +(+a)`},
		{`-(5)=-5`, `-(5) = -5`},
		{`+5=-(-5)`, `5 = -(-5)`},
		{`-'a'=-(TRUE)`, `-'a' = -TRUE`},
		{`a- -5=a-5`, `a - -5 = a - 5`},
		{`1.0=1.50`, `1.0 = 1.5`},
		{`1E3=1e21`, `1000.0 = 1E+21`},
		{`0.000001=a`, `0.000001 = a`},
		{`0.0000001=-0.0`, `1E-07 = -0.0`},
		{`'it''s'=""""`, `'it''s' = ["]`},
		{`[plain]="other_1"`, `plain = other_1`},
		{`[my prop]=[AND]`, `[my prop] = [AND]`},
		{`[a]]b]=[1a]`, `[a]]b] = [1a]`},
		{`user.a=User.[b c]`, `a = [b c]`},
		{`sys.subject=SYS.[messageid]`, `sys.Label = sys.MessageId`},
		{`[sys]=user.[user]`, `[sys] = [user]`},
		{`true=FALSE`, `TRUE = FALSE`},
		{`null IN(1,'a',b+1,(c))`, `NULL IN (1, 'a', b + 1, c)`},
		{`a not in(1)`, `a NOT IN (1)`},
		{`a LIKE 'x%'`, `a LIKE 'x%'`},
		{`a not like b+'%' escape '!'`, `a NOT LIKE b + '%' ESCAPE '!'`},
		{`exists(sys.to) AND EXISTS([a b])`, `EXISTS(sys.To) AND EXISTS([a b])`},
		{`p('a')=PROPERTY(b+'c')`, `property('a') = property(b + 'c')`},
		{`NEWID ( ) = a`, `newid() = a`},
		{`@Max=@p`, `@Max = @p`},
		{`a>=1 AND a<=2 AND a>0 AND a<3`, `a >= 1 AND a <= 2 AND a > 0 AND a < 3`},
	} {
		f, err := filter.Parse(c.text, parameters)
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if f.String() != c.want {
			t.Errorf("%s is printed as %s, want %s", c.text, f, c.want)
		}
		again, err := filter.Parse(c.want, parameters)
		if err != nil || !filter.SameTree(f, again) {
			t.Errorf("%s parsed again is %v, %v", c.want, again, err)
		}
	}
}

func TestSQL_2_Precedence(t *testing.T) {
	t.Parallel()
	// each pair must be the same tree, and differ from the third
	for _, c := range []struct{ bare, same, other string }{
		{`a OR b AND c`, `a OR (b AND c)`, `(a OR b) AND c`},
		{`NOT a AND b`, `(NOT a) AND b`, `NOT (a AND b)`},
		{`NOT a = b`, `NOT (a = b)`, `NOT a <> b`},
		{`NOT a LIKE b OR c`, `(NOT (a LIKE b)) OR c`, `NOT (a LIKE b OR c)`},
		{`a + b = c`, `(a + b) = c`, `a + (b) <> c`},
		{`a + b * c = 1`, `a + (b * c) = 1`, `(a + b) * c = 1`},
		{`a - b - c = 1`, `(a - b) - c = 1`, `a - (b - c) = 1`},
		{`a / b * c % d = 1`, `((a / b) * c) % d = 1`, `a / (b * (c % d)) = 1`},
		{`-a * b = 1`, `(-a) * b = 1`, `-(a * b) = 1`},
		{`a - -b = 1`, `a - (-b) = 1`, `a + b = 1`},
		{`a + 1 IN (b * 2, c)`, `(a + 1) IN ((b * 2), c)`, `a + 1 IN (b * 2)`},
		{`a + 'x' LIKE b + '%'`, `(a + 'x') LIKE (b + '%')`, `a + 'x' LIKE b`},
	} {
		bare, same, other := parse(t, c.bare, nil), parse(t, c.same, nil), parse(t, c.other, nil)
		if !filter.SameTree(bare, same) {
			t.Errorf("%s is taken as %s, want %s", c.bare, bare, same)
		}
		if filter.SameTree(bare, other) {
			t.Errorf("%s is the same as %s", c.bare, c.other)
		}
	}
	ofOrder(t, []outcome{
		{`2 + 3 * 4 = 14`, T},
		{`(2 + 3) * 4 = 20`, T},
		{`10 - 4 - 3 = 3`, T},
		{`100 / 10 / 5 = 2`, T},
		{`-2 * -3 = 6`, T},
		{`7 - -3 = 10`, T},
		{`2 * 7 % 4 = 2`, T},
		{`yes OR no AND no`, T},
		{`(yes OR no) AND no`, F},
		{`NOT no AND no`, F},
		{`NOT (no AND no)`, T},
		{`NOT qty = 4`, T},
	})
}

func TestSQL_15_Functions(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`property('color') = 'red'`, T},
		{`p('COLOR') = 'red'`, T},
		{`P('My-Prop') = 'it''s'`, T},
		{`p('in') = 'word'`, T},
		{`p('user.color') = 'red'`, T},
		{`p('USER.color') = color`, T},
		{`p('sys.to') = 'S5'`, T},
		{`p('SYS.To') = 'S5'`, T},
		{`p('lost') = 1`, U},
		{`p('nothing') = 1`, U},
		{`p('a]b') = 'bracket'`, T},
		{`p('[color]') = 'red'`, U},
		{`p('system.to') = 'S5'`, U},
		{`p(which) = 'red'`, T},
		{`p(which2) = 'S5'`, T},
		{`p(p('which')) = 'red'`, T},
		{`p('col' + 'or') = 'red'`, T},
		{`p('sys.' + 'to') = 'S5'`, T},
		{`p(lost) = 1`, U},
		{`p(qty) = 1`, U},
		{`p(nothing) = 1`, U},
		{`p(empty) = 1`, U},
		{`p('user.' + which) = 'red'`, T},
		{`p(lost + 'a') = 1`, U},
		{`p('qty') + 1 = 4`, T},
		{`-p('qty') = -3`, T},
		{`p('color') LIKE 'r%'`, T},
		{`newid() = newid()`, F},
		{`newid() <> id`, T},
		{`newid() = 'red'`, U},
		{`newid() IN (newid())`, F},
		{`newid() > id`, U},
		{`newid() LIKE '%'`, U},
	})
	named := &semantics.Message{Properties: values{
		"0.1": semantics.Int64(1), orderID: semantics.Int64(1), "d": typed(semantics.TypeDecimal, "0.1"), "u": typed(semantics.TypeUUID, orderID),
	}}
	// a name is a string
	check(t, filter.Of(named), nil, []outcome{{`p(d) = 1`, U}, {`p(u) = 1`, U}, {`p('0.1') = 1`, T}})

	seen := map[string]bool{}
	f := parse(t, `newid() = '`+otherID+`'`, nil)
	for range 3 {
		if got, err := f.Evaluate(filter.OfReceived(order())); got != filter.False || err != nil {
			t.Errorf("newid() equals a given uuid: %s, %v", got, err)
		}
		seen[f.String()] = true
	}
	if len(seen) != 1 {
		t.Error("the text of a filter changes")
	}
}

func TestSQL_18_Deterministic(t *testing.T) {
	t.Parallel()
	f := parse(t, `price * qty > 10.5 AND color IN ('red', lost) OR max + qty > 1`, nil)
	want, _ := f.Evaluate(filter.OfReceived(order()))
	for range 100 {
		if got, err := f.Evaluate(filter.OfReceived(order())); got != want || err != nil {
			t.Fatalf("gives %s, %v after %s", got, err, want)
		}
	}
}

func TestSQL_7_Explain(t *testing.T) {
	t.Parallel()
	f := parse(t, `NOT (color = 'blue' OR lost > 1) AND (1 / zero = 1 OR yes)`, nil)
	want := []struct {
		depth       int
		text, truth string
	}{
		{0, `NOT (color = 'blue' OR lost > 1) AND (1 / zero = 1 OR yes)`, E},
		{1, `NOT (color = 'blue' OR lost > 1)`, U},
		{2, `color = 'blue' OR lost > 1`, U},
		{3, `color = 'blue'`, F},
		{3, `lost > 1`, U},
		{1, `1 / zero = 1 OR yes`, E},
		{2, `1 / zero = 1`, E},
		{2, `yes`, T},
	}
	got := f.Explain(filter.OfReceived(order()))
	if len(got) != len(want) {
		t.Fatalf("%d steps, want %d: %v", len(got), len(want), got)
	}
	for i, step := range got {
		truth := step.Truth.String()
		if step.Err != nil {
			truth = E
		}
		if step.Depth != want[i].depth || step.Text != want[i].text || truth != want[i].truth {
			t.Errorf("step %d is %d %s %s, want %v", i, step.Depth, step.Text, truth, want[i])
		}
	}
}
