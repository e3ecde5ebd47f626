package filter_test

import (
	"math"
	"math/big"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

// exact gives the number of a value for the oracle; nil for infinities and NaN.
func exact(v semantics.Value) *big.Rat {
	switch v.Type() {
	case semantics.TypeUint64:
		return new(big.Rat).SetInt(new(big.Int).SetUint64(v.Uint()))
	case semantics.TypeInt64:
		return new(big.Rat).SetInt64(v.Int())
	case semantics.TypeDecimal:
		r, _ := new(big.Rat).SetString(v.Text())
		return r
	default:
		return new(big.Rat).SetFloat64(v.Float())
	}
}

// number draws numbers near the places where types end.
func number() *rapid.Generator[semantics.Value] {
	return rapid.Custom(func(t *rapid.T) semantics.Value {
		near := rapid.SampledFrom([]float64{0, 1, 1 << 53, 1 << 62, 1 << 63, -(1 << 63), 1 << 64, -(1 << 53)}).Draw(t, "near")
		by := rapid.Int64Range(-3, 3).Draw(t, "by")
		switch rapid.IntRange(0, 3).Draw(t, "type") {
		case 0:
			n, _ := big.NewFloat(near).Int(nil)
			n.Add(n, big.NewInt(by))
			return semantics.Int64(int64(n.Uint64())) //nolint:gosec // any number will do
		case 1:
			n, _ := big.NewFloat(near).Int(nil)
			n.Add(n, big.NewInt(by))
			return semantics.Uint64(n.Uint64())
		case 2:
			n, _ := big.NewFloat(near).Int(nil)
			n.Add(n, big.NewInt(by))
			return typed(semantics.TypeDecimal, n.String()+rapid.SampledFrom([]string{"", ".", ".5", ".25", ".00"}).Draw(t, "fraction"))
		default:
			f := near
			for range by {
				f = math.Nextafter(f, math.Inf(1))
			}
			return semantics.Double(f + rapid.SampledFrom([]float64{0, 0.5, 0.25}).Draw(t, "plus"))
		}
	})
}

func TestSQL_12_NumbersCompareByValue(t *testing.T) {
	t.Parallel()
	filters := map[int]*filter.Filter{-1: parse(t, `a < b AND a <= b AND NOT a >= b AND b > a AND a <> b`, nil), 0: parse(t, `a = b AND a <= b AND a >= b AND NOT a <> b`, nil), 1: parse(t, `a > b AND b < a AND NOT a = b`, nil)}
	rapid.Check(t, func(t *rapid.T) {
		a, b := number().Draw(t, "a"), number().Draw(t, "b")
		x, y := exact(a), exact(b)
		// against a double a decimal counts as the double nearest to it
		if a.Type() == semantics.TypeDecimal && b.Type() == semantics.TypeDouble {
			x = exact(semantics.Double(nearest(a)))
		}
		if b.Type() == semantics.TypeDecimal && a.Type() == semantics.TypeDouble {
			y = exact(semantics.Double(nearest(b)))
		}
		want := x.Cmp(y)
		for order, f := range filters {
			got, err := f.Matches(filter.Of(&semantics.Message{Properties: values{"a": a, "b": b}}))
			if err != nil || got != (order == want) {
				t.Fatalf("%s %s with %s %s: %s gives %v, %v, the order is %d", a.Type(), x, b.Type(), y, f, got, err, want)
			}
		}
	})
}

func nearest(v semantics.Value) float64 {
	f, _ := strconv.ParseFloat(v.Text(), 64)
	return f
}
