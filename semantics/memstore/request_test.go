package memstore_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/encoded"
	"github.com/sidebus/sidebus/semantics/memstore"
)

// A store keeps nothing of the request that a message came in: it is there when the bytes of the request are others.
func TestMSG_13_NothingOfTheRequestIsKept(t *testing.T) {
	t.Parallel()
	s := memstore.New()
	sent := semantics.Message{
		MessageID: "id", PartitionKey: "partition", CorrelationID: "correlation", Subject: "subject", To: "to",
		ReplyTo: "reply", ReplyToSessionID: "reply session", ContentType: "text/plain",
		Properties: map[string]semantics.Value{"name": semantics.String("value")}, Body: []byte("body"),
	}
	request, ok := encoded.Append(nil, &sent)
	var message semantics.Message
	if !ok || !encoded.Decode(request, &message) {
		t.Fatal("cannot be encoded")
	}
	if _, _, err := s.CreateEntity(t.Context(), semantics.QueueKind, "orders", semantics.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Send(t.Context(), "orders", []*semantics.Message{&message}); err != nil {
		t.Fatal(err)
	}
	copy(request, slices.Repeat([]byte{'x'}, len(request)))
	got, err := s.Peek(t.Context(), semantics.Source{Path: "orders"}, 1, 1, semantics.ShowAll)
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	if diff := cmp.Diff(sent, got[0].Message, cmp.AllowUnexported(semantics.Value{})); diff != "" {
		t.Errorf("(-sent +got):\n%s", diff)
	}
}
