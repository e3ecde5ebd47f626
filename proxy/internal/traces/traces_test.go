package traces

import (
	"net/http"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"github.com/sidebus/sidebus/semantics"
)

func TestCOMP_20_ContextOfAMessage(t *testing.T) {
	t.Parallel()
	const good, other = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01"
	for _, c := range []struct {
		properties map[string]semantics.Value
		span       string // empty: not valid
		isSet      bool
	}{
		{nil, "", false},
		{map[string]semantics.Value{"x": semantics.String(good)}, "", false},
		{map[string]semantics.Value{"TraceParent": semantics.String(good)}, "b7ad6b7169203331", true},
		{map[string]semantics.Value{"Diagnostic-Id": semantics.String(good)}, "b7ad6b7169203331", true},
		{map[string]semantics.Value{"traceparent": semantics.String(other), "Diagnostic-Id": semantics.String(good)}, "00f067aa0ba902b7", true},
		{map[string]semantics.Value{"Diagnostic-Id": semantics.String("|7d3c.1.")}, "", true},
		{map[string]semantics.Value{"traceparent": semantics.Int64(1)}, "", true},
	} {
		got, isSet := contextOf(&semantics.Message{Properties: c.properties})
		if isSet != c.isSet || got.IsValid() != (c.span != "") || got.IsValid() && got.SpanID().String() != c.span {
			t.Errorf("%v: got %s, %t", c.properties, got.SpanID(), isSet)
		}
	}
}

func TestCOMP_22_OffCostsNothing(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	var off *Traces
	ctx, messages := t.Context(), []*semantics.Message{{}}
	header, received, tokens := http.Header{}, []*semantics.Received{{}}, []semantics.LockToken{{}}
	allocations := testing.AllocsPerRun(100, func() {
		call := off.FromDapr(off.FromGRPC(off.FromHTTP(off.Begin(ctx), header)), nil, nil)
		_, sending := off.Send(call, semantics.ToQueue("orders"), messages)
		sending.End(nil)
		off.Received(call, semantics.Source{Path: "orders"}, received)
		processing := off.Process(call, semantics.Source{Path: "orders"}, received[0])
		processing.Inject(header)
		processing.End("complete", false)
		off.Settled(processing.In(call), semantics.Source{Path: "orders"}, "complete", tokens, []semantics.Code{""}, "")
	})
	if allocations != 0 {
		t.Errorf("%.0f allocations", allocations)
	}
}

func TestContextsOfDeliveredMessagesAreBounded(t *testing.T) {
	t.Parallel()
	h := held{of: map[semantics.LockToken]trace.SpanContext{}}
	token := func(n int) semantics.LockToken { return semantics.LockToken{byte(n), byte(n >> 8), byte(n >> 16)} }
	for n := range 2*maxHeld + 7 {
		h.put(token(n), trace.SpanContext{})
	}
	if len(h.of) != maxHeld || len(h.order) != maxHeld {
		t.Errorf("it keeps %d contexts, %d tokens", len(h.of), len(h.order))
	}
	if got := h.take([]semantics.LockToken{token(2*maxHeld + 6), token(0)}); len(got) != 1 || len(h.of) != maxHeld-1 {
		t.Errorf("took %d, kept %d", len(got), len(h.of))
	}
}
