package filter_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func ptr(s string) *string { return &s }

// correlate compiles a correlation filter and asks about one message, in two ways that must agree.
func correlate(t *testing.T, f semantics.CorrelationFilter, m *semantics.Message) bool {
	t.Helper()
	c, err := filter.CompileCorrelation(f)
	if err != nil {
		t.Errorf("%+v is refused: %v", f, err)
		return false
	}
	matches := c.Matches(m)
	if step := c.Explain(m)[0]; step.Truth != map[bool]filter.Truth{true: filter.True}[matches] || step.Err != nil {
		t.Errorf("%s: Matches gives %v but is explained as %s, %v", c, matches, step.Truth, step.Err)
	}
	return matches
}

// fieldsOf are the fields of a correlation filter and those of a message they ask for.
func fieldsOf(f *semantics.CorrelationFilter, m *semantics.Message) map[string]struct {
	want **string
	have *string
} {
	return map[string]struct {
		want **string
		have *string
	}{
		"ContentType": {&f.ContentType, &m.ContentType}, "CorrelationID": {&f.CorrelationID, &m.CorrelationID},
		"MessageID": {&f.MessageID, &m.MessageID}, "ReplyTo": {&f.ReplyTo, &m.ReplyTo},
		"ReplyToSessionID": {&f.ReplyToSessionID, &m.ReplyToSessionID}, "SessionID": {&f.SessionID, &m.SessionID},
		"Subject": {&f.Subject, &m.Subject}, "To": {&f.To, &m.To},
	}
}

func TestCORR_1_EveryField(t *testing.T) {
	t.Parallel()
	if n := reflect.TypeFor[semantics.CorrelationFilter]().NumField() - 1; n != len(fieldsOf(&semantics.CorrelationFilter{}, &semantics.Message{})) {
		t.Fatalf("a correlation filter has %d fields, the test knows %d", n, len(fieldsOf(&semantics.CorrelationFilter{}, &semantics.Message{})))
	}
	for name := range fieldsOf(&semantics.CorrelationFilter{}, &semantics.Message{}) {
		// all others hold the same text, so a mix-up of fields shows
		f, m := semantics.CorrelationFilter{}, semantics.Message{}
		for other, field := range fieldsOf(&f, &m) {
			*field.have = "x"
			if other == name {
				*field.want, *field.have = ptr("y"), "y"
			}
		}
		if !correlate(t, f, &m) {
			t.Errorf("%s = y does not select a message with it", name)
		}
		*fieldsOf(&f, &m)[name].have = "x"
		if correlate(t, f, &m) {
			t.Errorf("%s = y selects a message with x", name)
		}
	}
}

func TestCORR_1_AtLeastOneField(t *testing.T) {
	t.Parallel()
	wantCorrelationInvalid(t, semantics.CorrelationFilter{}, `the correlation filter is empty; specify at least one field or property, or use all`)
	wantCorrelationInvalid(t, semantics.CorrelationFilter{Properties: values{}}, `the correlation filter is empty; specify at least one field or property, or use all`)
	if !correlate(t, semantics.CorrelationFilter{To: ptr("S5")}, &semantics.Message{To: "S5"}) {
		t.Error("one field does not select")
	}
	if !correlate(t, semantics.CorrelationFilter{Properties: values{"a": semantics.Null()}}, &semantics.Message{Properties: values{"a": semantics.Null()}}) {
		t.Error("one property does not select")
	}
}

func wantCorrelationInvalid(t *testing.T, f semantics.CorrelationFilter, message string) {
	t.Helper()
	c, err := filter.CompileCorrelation(f)
	e := semantics.AsError(err)
	if e == nil || e.Code != semantics.FilterInvalid || e.Message != message || e.Details[semantics.DetailField] != "filter" || c != nil {
		t.Errorf("gives %v, %v\nwant FILTER_INVALID: %s", c, err, message)
	}
}

func TestCORR_1_Bounds(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 129)
	wantCorrelationInvalid(t, semantics.CorrelationFilter{MessageID: &long}, `the correlation filter's messageId is 129 characters long, at most 128 are allowed`)
	wantCorrelationInvalid(t, semantics.CorrelationFilter{Properties: values{long: semantics.Null()}},
		`the correlation filter's properties[`+long[:80]+`...] has a name over 128 characters`)
	wantCorrelationInvalid(t, semantics.CorrelationFilter{Properties: values{"": semantics.Null()}}, `the correlation filter's properties must not contain an empty name`)
	wantCorrelationInvalid(t, semantics.CorrelationFilter{To: ptr("\xff")}, `the correlation filter's to must be valid UTF-8`)
	half := strings.Repeat("x", 32<<10)
	fits := semantics.CorrelationFilter{To: ptr(half), ReplyTo: ptr(half)}
	if _, err := filter.CompileCorrelation(fits); err != nil {
		t.Errorf("64 KiB are refused: %v", err)
	}
	fits.Subject = ptr("x")
	wantCorrelationInvalid(t, fits, `the correlation filter's headers and properties is 65537 bytes, at most 65536 are allowed`)
	_, err := filter.CompileCorrelation(fits)
	if e := semantics.AsError(err); e.Details[semantics.DetailLimit] != "65536" || e.Details[semantics.DetailActual] != "65537" {
		t.Errorf("details are %v", e.Details)
	}
	wantCorrelationInvalid(t, semantics.CorrelationFilter{Properties: values{"a": semantics.String(half + "x")}},
		`the correlation filter's properties[a] is 32769 bytes, at most 32768 are allowed`)
}

func TestCORR_2_AllMustBeEqual(t *testing.T) {
	t.Parallel()
	m := order().Message
	f := semantics.CorrelationFilter{To: ptr("S5"), Subject: ptr("the bus trip"), Properties: values{"color": semantics.String("red"), "qty": semantics.Int64(3)}}
	if !correlate(t, f, &m) {
		t.Fatal("does not select although all are equal")
	}
	for _, change := range []func(m *semantics.Message){
		func(m *semantics.Message) { m.To = "S6" },
		func(m *semantics.Message) { m.To = "" },
		func(m *semantics.Message) { m.Subject = "" },
		func(m *semantics.Message) { m.Properties["Color"] = semantics.String("blue") },
		func(m *semantics.Message) { delete(m.Properties, "Color") },
		func(m *semantics.Message) { delete(m.Properties, "qty") },
		func(m *semantics.Message) { m.Properties["qty"] = semantics.Null() },
		func(m *semantics.Message) { m.Properties = nil },
	} {
		other := clone(&m)
		change(other)
		if correlate(t, f, other) {
			t.Errorf("selects %+v", other)
		}
	}
}

func TestCORR_2_EmptyFieldIsNotSet(t *testing.T) {
	t.Parallel()
	f := semantics.CorrelationFilter{To: ptr("")}
	if correlate(t, f, &semantics.Message{}) || correlate(t, f, &semantics.Message{To: "x"}) {
		t.Error("an empty field selects")
	}
	c, _ := filter.CompileCorrelation(f)
	if got, want := c.Warnings(), []string{`sys.To = '' matches no message, because an empty one is not set`}; !reflect.DeepEqual(got, want) {
		t.Errorf("warns %q, want %q", got, want)
	}
	if !correlate(t, semantics.CorrelationFilter{Properties: values{"a": semantics.String("")}}, &semantics.Message{Properties: values{"a": semantics.String("")}}) {
		t.Error("an empty property is not equal to an empty one")
	}
}

func TestCORR_3_Case(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{To: "Hall", Properties: values{"Größe": semantics.String("Ärger"), "KEY": semantics.Int64(1)}}
	for _, c := range []struct {
		filter semantics.CorrelationFilter
		want   bool
	}{
		{semantics.CorrelationFilter{To: ptr("Hall")}, true},
		{semantics.CorrelationFilter{To: ptr("hall")}, false},
		{semantics.CorrelationFilter{To: ptr("Hall ")}, false},
		{semantics.CorrelationFilter{Properties: values{"größe": semantics.String("Ärger")}}, true},
		{semantics.CorrelationFilter{Properties: values{"GRÖßE": semantics.String("Ärger")}}, true},
		{semantics.CorrelationFilter{Properties: values{"GRÖSSE": semantics.String("Ärger")}}, false},
		{semantics.CorrelationFilter{Properties: values{"Größe": semantics.String("ärger")}}, false},
		// the Kelvin sign folds to k
		{semantics.CorrelationFilter{Properties: values{"\u212Aey": semantics.Int64(1)}}, true},
		{semantics.CorrelationFilter{Properties: values{"ke": semantics.Int64(1)}}, false},
		{semantics.CorrelationFilter{Properties: values{"keys": semantics.Int64(1)}}, false},
	} {
		if got := correlate(t, c.filter, m); got != c.want {
			t.Errorf("%+v gives %v", c.filter, got)
		}
	}
	wantCorrelationInvalid(t, semantics.CorrelationFilter{Properties: values{"Color": semantics.Null(), "color": semantics.Null()}},
		`the correlation filter's properties[color] differs from "Color" only in case`)
}
