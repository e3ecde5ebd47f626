package filter_test

import (
	"maps"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// A correlation filter must select what the oracle selects, which is written after the rules with no thought for speed.
func FuzzCorrelation(f *testing.F) {
	f.Fuzz(rapid.MakeFuzz(correlationAgrees))
}

func TestCORR_2_WhatTheOracleSelects(t *testing.T) {
	t.Parallel()
	rapid.Check(t, correlationAgrees)
}

func correlationAgrees(t *rapid.T) {
	m := &semantics.Message{Properties: drawProperties(t, 6)}
	f := semantics.CorrelationFilter{Properties: drawProperties(t, 3)}
	all := fieldsOf(&f, m)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		field := all[name]
		*field.have = rapid.SampledFrom([]string{"", "x", "X", "y"}).Draw(t, "have")
		if rapid.IntRange(0, 7).Draw(t, "given") == 0 {
			text := rapid.SampledFrom([]string{"", "x", *field.have, *field.have}).Draw(t, "want")
			*field.want = &text
		}
	}
	// what is equal by chance only would seldom match
	for _, name := range slices.Sorted(maps.Keys(m.Properties)) {
		if rapid.IntRange(0, 3).Draw(t, "take over") == 0 {
			f.Properties[rapid.SampledFrom([]string{name, strings.ToUpper(name), strings.ToLower(name)}).Draw(t, "name")] = m.Properties[name]
		}
	}
	if m.Validate() != nil {
		return
	}
	c, err := filter.CompileCorrelation(f)
	if refused := oracleRefuses(&f); refused != (err != nil) {
		t.Fatalf("%+v: %v, want it refused: %v", f, err, refused)
	}
	if err == nil && c.Matches(m) != oracleSelects(&f, m) {
		t.Fatalf("%s selects %+v: %v", c, m, c.Matches(m))
	}
}

func drawProperties(t *rapid.T, most int) values {
	drawn := values{}
	for range rapid.IntRange(0, most).Draw(t, "properties") {
		name := rapid.SampledFrom([]string{"a", "A", "ab", "AB", "s", "ſ", "k", "\u212A", "Größe", "größe", "GRÖSSE"}).Draw(t, "name")
		drawn[name] = drawValue(t)
	}
	return drawn
}

func drawValue(t *rapid.T) semantics.Value {
	family := rapid.SampledFrom(families).Draw(t, "family")
	return family[rapid.SampledFrom(slices.Sorted(maps.Keys(family))).Draw(t, "value")]
}

func oracleRefuses(f *semantics.CorrelationFilter) bool {
	given := len(f.Properties)
	for _, field := range fieldsOf(f, &semantics.Message{}) {
		if *field.want != nil {
			given++
		}
	}
	for name := range f.Properties {
		for other := range f.Properties {
			if name != other && lower(name) == lower(other) {
				return true
			}
		}
	}
	return given == 0
}

// lower is the case in which names are compared; strings.EqualFold takes more for the same.
func lower(name string) string { return strings.ToLower(name) }

func oracleSelects(f *semantics.CorrelationFilter, m *semantics.Message) bool {
	for _, field := range fieldsOf(f, m) {
		if want := *field.want; want != nil && (*want == "" || *want != *field.have) {
			return false
		}
	}
	for name, want := range f.Properties {
		found := false
		for other, have := range m.Properties {
			found = found || lower(name) == lower(other) && oracleEqual(want, have)
		}
		if !found {
			return false
		}
	}
	return true
}

// oracleEqual compares by the group of the type, and within the group by what is the same for all its types.
func oracleEqual(a, b semantics.Value) bool {
	switch group := oracleGroup(a); {
	case group != oracleGroup(b):
		return false
	case group == "number":
		return oracleNumbersEqual(a, b)
	case group == "text":
		return oracleText(a) == oracleText(b)
	case group == "instant":
		x, _ := time.Parse(time.RFC3339Nano, a.Text())
		y, _ := time.Parse(time.RFC3339Nano, b.Text())
		return x.Equal(y)
	default:
		return a == b
	}
}

func oracleGroup(v semantics.Value) string {
	switch v.Type() {
	case semantics.TypeString, semantics.TypeURI, semantics.TypeChar:
		return "text"
	case semantics.TypeDateTime, semantics.TypeDateTimeOffset:
		return "instant"
	case semantics.TypeNull, semantics.TypeBool, semantics.TypeUUID, semantics.TypeTimeSpan, semantics.TypeBytes:
		return v.Type().String()
	default:
		return "number"
	}
}

func oracleText(v semantics.Value) string {
	if v.Type() == semantics.TypeChar {
		return string(rune(v.Int()))
	}
	return v.Text()
}

func oracleNumbersEqual(a, b semantics.Value) bool {
	x, y := oracleRat(a), oracleRat(b)
	switch {
	case x == nil || y == nil: // an infinity
		return x == y && a.Float() == b.Float()
	case isBinary(a) != isBinary(b) && (a.Type() == semantics.TypeDecimal || b.Type() == semantics.TypeDecimal):
		f, _ := x.Float64() // a decimal counts as the double nearest to it
		g, _ := y.Float64()
		return f == g
	default:
		return x.Cmp(y) == 0
	}
}

func isBinary(v semantics.Value) bool {
	return v.Type() == semantics.TypeFloat || v.Type() == semantics.TypeDouble
}

func oracleRat(v semantics.Value) *big.Rat {
	if isBinary(v) || v.Type() == semantics.TypeDecimal || v.Type() == semantics.TypeUint64 {
		return exact(v)
	}
	return new(big.Rat).SetInt64(v.Int())
}
