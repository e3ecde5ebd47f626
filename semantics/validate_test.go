package semantics

import (
	"testing"

	"pgregory.net/rapid"
)

// Properties that need no closer look are valid, and few valid ones with names in ASCII need none.
func TestMSG_14_UsualProperties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := &Message{Properties: map[string]Value{}}
		for range rapid.IntRange(0, mostUsualProperties+1).Draw(rt, "properties") {
			name := rapid.StringMatching(`[a-cA-CkK\x{212a}\x{e9}\xff]{0,3}`).Draw(rt, "name")
			m.Properties[name] = rapid.SampledFrom([]Value{
				Null(), Int64(1), String("é"), String("\xff"), Bytes([]byte{0xff}), Bytes(make([]byte, MaxPropertyValueSize+1)),
			}).Draw(rt, "value")
		}
		isASCIIOnly := len(m.Properties) <= mostUsualProperties
		for name := range m.Properties {
			isASCIIOnly = isASCIIOnly && isASCII(name)
		}
		err := m.checkProperties()
		if isUsual := m.hasUsualProperties(); isUsual && err != nil || !isUsual && err == nil && isASCIIOnly {
			rt.Fatalf("%v: usual %t, %v", m.Properties, isUsual, err)
		}
	})
}
