package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/redisstore/redistest"
	"github.com/sidebus/sidebus/semantics"
)

// Two sidecars carry one transfer of two messages, of which only one of them can read the first: to the other one its
// key is lost. What the first sidecar brought to the destination, before it was killed, the second one takes for
// neither less nor more, whichever of them is first.
func TestCRYPT_4_ATransferOfSidecarsThatReadDifferentMessages(t *testing.T) {
	t.Parallel()
	orders, archive := semantics.Source{Path: "orders"}, semantics.Source{Path: "archive"}
	dead := semantics.Source{Path: "orders", SubQueue: semantics.DeadLetterQueue}
	refused := semantics.Source{Path: "orders", SubQueue: semantics.TransferDeadLetterQueue}
	for name, is := range map[string]struct {
		lostFirst bool
		room      int64 // of archive
		want      map[semantics.Source]string
	}{
		"the second reads fewer, one was refused": {room: 1, want: map[semantics.Source]string{archive: "1 ", dead: "1 ", refused: "2 "}},
		"the second reads more":                   {lostFirst: true, room: 2, want: map[semantics.Source]string{archive: "2 1 "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			options := redisstore.Options{Namespace: redistest.NamespaceUntil(t, redistest.URL(t))}
			with := openSealed(t, options, payloadKeys(t, "new", "other"))
			lost := openSealed(t, options, losing(t, payloadKeys(t, "other"), "new"))
			ctx := t.Context()
			must(t, makeQueue(t, with.Store, "archive", func(o *semantics.Options) { o.MaxMessageCount = is.room }))
			must(t, makeQueue(t, with.Store, "orders", func(o *semantics.Options) { o.ForwardTo = "archive" }))
			for i, s := range []sealedSidecar{with, lost} { // each seals with its own key
				_, err := s.Store.Send(ctx, "orders", messagesNamed(fmt.Sprint(i+1)))
				must(t, err)
			}
			first, second := with, lost
			if is.lostFirst {
				first, second = lost, with
			}
			killed := brokerOver(dying{first.Store})
			t.Cleanup(killed.Close)
			if err := killed.Forward(ctx, orders); err == nil {
				t.Fatal("it was not killed")
			}
			must(t, second.Broker.Forward(ctx, orders))
			for _, source := range []semantics.Source{archive, orders, dead, refused} {
				found, err := with.Broker.Peek(ctx, source, 1, 10, semantics.ShowAll)
				must(t, err)
				ids := ""
				for _, m := range found {
					ids += m.MessageID + " "
				}
				if ids != is.want[source] {
					t.Errorf("%s has %q, want %q", source, ids, is.want[source])
				}
			}
		})
	}
}
