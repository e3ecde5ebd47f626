package proxy_test

import (
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics/memstore"
)

func TestDUP_11_BATCH_4_OptionsThatRefuse(t *testing.T) {
	t.Parallel()
	onBothWires(t, func(t *testing.T, w *wire) {
		mustPut(t, w.sidecar, "/v1/queues/parts", `{"enablePartitioning":true,"partitions":1}`)
		mustPut(t, w.sidecar, "/v1/queues/dedup", `{"requiresDuplicateDetection":true,"duplicateHistoryMaxEntries":2}`)
		send := func(queue string, messages ...*sidebusv1.Message) *sidebusv1.SendRequest {
			return &sidebusv1.SendRequest{Target: queue, Messages: messages}
		}
		refuse("BATCH-4", "PARTITION_KEY_MISMATCH", "", sending,
			send("queues/parts", &sidebusv1.Message{PartitionKey: proto.String("a")}, &sidebusv1.Message{SessionId: proto.String("b")})).check(t, w.messages)
		refuse("DUP-11", "QUOTA_EXCEEDED", "", sending, send("queues/dedup", text("a"), text("b"), text("c"))).check(t, w.messages)
		if _, err := w.messages.Send(t.Context(), send("queues/dedup", text("a"), text("b"))); err != nil {
			t.Errorf("the bound itself: %v", err)
		}
	})
}

// All options of this kind, at their bounds, come back as they were given.
func TestENT_11_BoundsOfOptionsPass(t *testing.T) {
	t.Parallel()
	s := start(t, memstore.New())
	low := `"duplicateDetectionHistoryTimeWindow":"20s","duplicateHistoryMaxEntries":"1","forgetOnCancel":false,"enablePartitioning":false,"redeliveryDelay":"0s","expireDeferred":false,"deadLetterTtl":"1s"`
	high := `"duplicateDetectionHistoryTimeWindow":"604800s","duplicateHistoryMaxEntries":"9223372036854775807","forgetOnCancel":true,"enablePartitioning":true,"redeliveryDelay":"604800s","expireDeferred":true,"deadLetterTtl":"315360000s"`
	for name, options := range map[string]string{"low": low, "high": high} {
		a := s.call(t, http.MethodPut, "/v1/queues/"+name, "{"+options+"}")
		if a.status != http.StatusOK || !strings.Contains(a.body, options) {
			t.Errorf("%s: got %d %s", name, a.status, a.body)
		}
	}
	a := s.call(t, http.MethodPatch, "/v1/queues/high", `{"enablePartitioning":true,"requiresDuplicateDetection":false,"deadLetterTtl":"never","redeliveryDelay":null}`)
	if a.status != http.StatusOK || strings.Contains(a.body, "deadLetterTtl") || !strings.Contains(a.body, `"redeliveryDelay":"0s"`) {
		t.Errorf("ENT-7: got %d %s", a.status, a.body)
	}
	a = s.call(t, http.MethodPatch, "/v1/queues/high?updateMask=enable_partitioning", `{}`) // back to the default
	if reason, field := a.reason(t); a.status != http.StatusConflict || reason != "PROPERTY_IMMUTABLE" || field != "enablePartitioning" {
		t.Errorf("ENT-16: got %d %s", a.status, a.body)
	}
	if a := s.call(t, http.MethodPut, "/v1/queues/high", `{"requiresDuplicateDetection":true,"redeliveryDelay":"1s"}`); !strings.Contains(a.body,
		`"differences":[{"option":"requiresDuplicateDetection","present":"false","asked":"true"},{"option":"redeliveryDelay","present":"0s","asked":"1s"}]`) {
		t.Errorf("ENT-6: got %s", a.body)
	}
}
