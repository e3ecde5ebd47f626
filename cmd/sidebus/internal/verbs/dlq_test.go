package verbs

import (
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

func TestDeadLetterVerbs(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.ok(t, "entity", "create", "other")
	s.deadLetter(t, "Late", "a", "b", "c")
	s.deadLetter(t, "Bad", "d", "e")
	if got := s.ok(t, "dlq", "orders", "count"); got != "5\n" {
		t.Errorf("count: got %q", got)
	}
	if got := s.ok(t, "dlq", "orders", "count", "-o", "json"); got != `{"deadLetterMessageCount":"5"}`+"\n" {
		t.Errorf("count as JSON: got %q", got)
	}
	s.verb(t, nil, "dlq", "orders", "list", "--max=1").wants(t, cli.Clean, "REASON", "Late", "--from 2")
	if got := decoded(t, s.ok(t, "dlq", "orders", "list", "-o", "json")); len(got) != 5 || got[4]["deadLetterReason"] != "Bad" {
		t.Errorf("list as JSON: got %v", got)
	}
	s.verb(t, nil, "dlq", "orders", "resubmit", "--number=1,99").
		wants(t, cli.Failure, "99        -    not resubmitted: MESSAGE_NOT_FOUND", "resubmitted 1 message to queues/orders, 1 not resubmitted", "1 message not resubmitted: MESSAGE_NOT_FOUND: 99")
	s.wantTexts(t, []string{"a"}, "orders")
	got := decoded(t, s.ok(t, "dlq", "orders", "resubmit", "--number=2", "--to=queues/other", "--new-ids", "-o", "json"))
	if len(got) != 1 || got[0]["sequenceNumber"] != "2" || got[0]["newSequenceNumber"] != "1" {
		t.Errorf("resubmit as JSON: got %v", got)
	}
	s.verb(t, nil, "dlq", "orders", "resubmit", "--filter=DeadLetterReason = 'Late'", "--to", "other").
		wants(t, cli.Clean, "resubmitted 1 message to queues/other")
	s.wantTexts(t, []string{"b", "c"}, "other")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--filter=no sql").wants(t, cli.Failure, "FILTER_INVALID")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all").wants(t, cli.Usage, "--yes")
	s.verb(t, typing("no\n"), "dlq", "orders", "resubmit", "--all").wants(t, cli.Failure, "sends 2 dead letters of queues/orders to queues/orders", "not confirmed")
	s.verb(t, typing("y\n"), "dlq", "orders", "resubmit", "--all", "--keep-expiry", "--bypass-duplicates").wants(t, cli.Clean, "resubmitted 2 messages")
	s.verb(t, typing(""), "dlq", "orders", "resubmit", "--all").wants(t, cli.Clean, "resubmitted 0 messages")
	s.wantTexts(t, []string{"a", "d", "e"}, "orders")

	s.ok(t, "purge", "orders", "--yes")
	s.deadLetter(t, "Late", "f", "g", "h", "i")
	s.verb(t, nil, "dlq", "orders", "delete", "--number=99").wants(t, cli.Failure, "99", "not removed: MESSAGE_NOT_FOUND: 99")
	first := decoded(t, s.ok(t, "dlq", "orders", "list", "-o", "json"))[0]["sequenceNumber"].(string)
	s.verb(t, nil, "dlq", "orders", "delete", "--number", first).wants(t, cli.Clean, "removed")
	s.verb(t, nil, "dlq", "orders", "delete", "--all").wants(t, cli.Usage, "--yes")
	s.verb(t, typing("orders\n"), "dlq", "orders", "delete", "--all").wants(t, cli.Clean, "up to 3 messages", "removed 3 messages from the dead-letter queue of queues/orders")
	s.verb(t, nil, "dlq", "orders", "resubmit").wants(t, cli.Usage, "--number, --filter or --all")
	s.verb(t, nil, "dlq", "orders", "delete").wants(t, cli.Usage, "--number or --all")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all", "--number=1").wants(t, cli.Usage, "--number")
}

// strand puts texts into the transfer dead-letter queue of "orders", whose destination takes nothing meanwhile.
func (s *served) strand(t *testing.T, texts ...string) {
	t.Helper()
	s.ok(t, "entity", "ensure", "bin")
	s.ok(t, "entity", "update", "bin", "--set", "status=DISABLED")
	s.ok(t, "entity", "update", "orders", "--set", "forwardTo=bin")
	s.ok(t, append([]string{"send", "orders"}, texts...)...)
	if err := s.broker.Forward(t.Context(), semantics.Source{Path: "orders"}); err != nil {
		t.Fatal(err)
	}
	s.ok(t, "entity", "update", "orders", "--set", "forwardTo=")
}

func TestTransferDeadLetterVerbs(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	s.deadLetter(t, "Late", "an ordinary one")
	s.strand(t, "a", "b", "c", "d", "e", "f")
	if got := s.ok(t, "dlq", "orders", "count", "--transfer"); got != "6\n" {
		t.Errorf("count: got %q", got)
	}
	if got := s.ok(t, "dlq", "orders", "--transfer", "count", "-o", "json"); got != `{"transferDeadLetterMessageCount":"6"}`+"\n" {
		t.Errorf("count as JSON: got %q", got)
	}
	s.verb(t, nil, "stats", "orders", "--wide").wants(t, cli.Clean, "DEAD  TRANSFER  TRANSFER DEAD", "1     0         6")
	s.verb(t, nil, "dlq", "orders", "list", "--transfer", "--max=1").wants(t, cli.Clean, "REASON", "TransferDestinationDisabled", "--from")
	s.wantTexts(t, []string{"a", "b", "c", "d", "e", "f"}, "orders", "--transfer-dlq")
	s.wantTexts(t, []string{"a", "b", "c", "d", "e", "f"}, "orders", "--transfer")
	s.wantTexts(t, []string{"an ordinary one"}, "orders", "--dlq")
	s.verb(t, nil, "receive", "orders", "--transfer-dlq", "--complete").wants(t, cli.Clean, "TransferDestinationDisabled", "  a")
	s.verb(t, nil, "receive", "orders", "--transfer-dlq", "--max=9").wants(t, cli.Clean, "  f", "released 5 messages")
	s.verb(t, typing("no\n"), "dlq", "orders", "resubmit", "--transfer", "--all").
		wants(t, cli.Failure, "This sends 5 dead letters of the transfer dead-letter queue of queues/orders to queues/orders.")
	s.ok(t, "entity", "update", "bin", "--set", "status=")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--transfer", "--filter=DeadLetterReason LIKE 'Transfer%' AND sys.SequenceNumber < 4", "--to=bin").
		wants(t, cli.Clean, "resubmitted 1 message to queues/bin")
	s.wantTexts(t, []string{"b"}, "bin")
	third := decoded(t, s.ok(t, "peek", "orders", "--transfer-dlq", "-o", "json"))[0]["sequenceNumber"].(string)
	s.verb(t, nil, "rule", "test", "--all", "--peek=orders", "--transfer-dlq", "--number", third).wants(t, cli.Clean, "matches")
	s.verb(t, nil, "dlq", "orders", "delete", "--transfer", "--number", third).wants(t, cli.Clean, "removed")
	s.verb(t, nil, "dlq", "orders", "delete", "--transfer", "--number=999").wants(t, cli.Failure, "not removed: MESSAGE_NOT_FOUND: 999")
	s.verb(t, typing("orders\n"), "purge", "orders", "--transfer-dlq").
		wants(t, cli.Clean, "up to 3 messages of the transfer dead-letter queue of queues/orders permanently: 3 not forwarded", "removed 3 messages")
	s.strand(t, "g")
	s.verb(t, typing("orders\n"), "dlq", "orders", "delete", "--all", "--transfer").wants(t, cli.Clean, "removed 1 message from the transfer dead-letter queue of queues/orders")
	s.strand(t, "h")
	s.verb(t, typing("no\n"), "entity", "delete", "orders").wants(t, cli.Failure, "with 2 messages in it, 2 of them dead-lettered")
	for _, verb := range []string{"receive", "peek", "purge"} {
		s.verb(t, nil, verb, "orders", "--dlq", "--transfer-dlq").wants(t, cli.Usage, "--dlq", "--transfer-dlq")
		s.verb(t, nil, verb, "orders", "--session=s", "--transfer-dlq").wants(t, cli.Usage, "dead letters belong to no session")
	}
	s.verb(t, nil, "receive", "orders", "--transfer-dlq").wants(t, cli.Clean, "  h")
	s.verb(t, nil, "entity", "create", "q", "--set", "forwardTo=none").wants(t, cli.Failure, "FORWARD_DESTINATION_INVALID: forwardTo")
	if got := decoded(t, s.ok(t, "entity", "create", "q", "--set", "forwardTo=bin", "-o", "json"))[0]["forwardTo"]; got != "bin" {
		t.Errorf("got %v", got)
	}
	s.verb(t, nil, "receive", "q").wants(t, cli.Failure, "INVALID_OPERATION", "bin")
}

func TestResubmitEndsWhenNothingMoves(t *testing.T) {
	t.Parallel()
	calls := 0
	s := serveFake(t, &fake{
		counts: &sidebusv1.QueueRuntime{DeadLetterMessageCount: 5},
		resubmit: func(*sidebusv1.ResubmitRequest) (*sidebusv1.ResubmitResponse, error) {
			calls++
			answer := &sidebusv1.ResubmitResponse{More: true, Results: []*sidebusv1.ResubmitResponse_Result{
				{SequenceNumber: 1, Reason: proto.String("ENTITY_FULL")},
			}}
			if calls == 1 {
				answer.Results = append(answer.Results, &sidebusv1.ResubmitResponse_Result{SequenceNumber: 2, NewSequenceNumber: proto.Int64(9)},
					&sidebusv1.ResubmitResponse_Result{SequenceNumber: 3, NewSequenceNumber: proto.Int64(8), Deduplicated: true})
			}
			return answer, nil
		},
	})
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all", "--yes").wants(t, cli.Failure,
		"resubmitted 1 message to queues/orders, 1 duplicate dropped, 1 not resubmitted", "1 message not resubmitted: ENTITY_FULL: 1")
	if calls != 2 {
		t.Errorf("got %d calls, want 2", calls)
	}
}

func TestPurge(t *testing.T) {
	t.Parallel()
	verbsInTurn(t)
	s := serveMemory(t)
	fill := func() {
		s.deadLetter(t, "Late", "dead")
		s.ok(t, "send", "orders", "a", "b")
		s.ok(t, "send", "orders", "--in=1h", "later")
	}
	fill()
	s.verb(t, nil, "purge", "orders").wants(t, cli.Usage, "--yes")
	s.verb(t, typing("\n"), "purge", "orders").wants(t, cli.Failure, "not confirmed; nothing was changed")
	s.verb(t, typing(""), "purge", "orders").wants(t, cli.Usage, "--yes")
	s.verb(t, nil, "purge", "orders", "--yes", "--before=1h").wants(t, cli.Clean, "removed 0 messages")
	s.verb(t, nil, "purge", "orders", "--yes", "--before=2001-02-03T04:05:06Z").wants(t, cli.Clean, "removed 0 messages", "before 2001-02-03T04:05:06Z")
	s.verb(t, typing("ORDERS\n"), "purge", "queues/orders").wants(t, cli.Clean, "up to 2 messages of queues/orders permanently: 2 available.", "removed 2 messages from queues/orders")
	s.verb(t, typing("queues/orders\n"), "purge", "orders", "--include=scheduled,deferred", "--include", "dead-letter").
		wants(t, cli.Clean, "up to 2 messages of queues/orders permanently: 0 available, 0 deferred, 1 scheduled, 1 dead-lettered.", "removed 2 messages")
	fill()
	got := decoded(t, s.ok(t, "purge", "orders", "--dlq", "--yes", "-o", "json"))
	if len(got) != 1 || got[0]["deleted"] != "1" || got[0]["more"] != false || got[0]["before"] == nil {
		t.Errorf("got %v", got)
	}
	s.wantTexts(t, []string{"a", "b", "later"}, "orders")
	s.verb(t, nil, "purge", "orders", "-y", "--before=soon").wants(t, cli.Usage, "--before")
}

func TestPurgeGoesOnWithTheSameInstant(t *testing.T) {
	t.Parallel()
	var requests []*sidebusv1.PurgeRequest
	answers := []*sidebusv1.PurgeResponse{{Deleted: 3, More: true}, {Deleted: 2, More: true}, {Deleted: 1}}
	s := serveFake(t, &fake{counts: &sidebusv1.QueueRuntime{AvailableCount: 6}, purge: func(r *sidebusv1.PurgeRequest) (*sidebusv1.PurgeResponse, error) {
		requests = append(requests, r)
		answer := proto.CloneOf(answers[len(requests)-1])
		if answer.Before = r.GetBefore(); answer.Before == nil {
			answer.Before = mustInstant(t, "2030-01-02T03:04:05Z")
		}
		return answer, nil
	}})
	s.verb(t, func(to *terminal.Streams) { to.ProgressEvery = time.Nanosecond }, "purge", "orders", "--yes", "--progress").
		wants(t, cli.Clean, "removed 3 of 6 messages (50 %), ", " left", "removed 6 messages from queues/orders, enqueued before 2030-01-02T03:04:05Z")
	if len(requests) != 3 || requests[0].GetBefore() != nil || requests[2].GetBefore().GetSeconds() != requests[1].GetBefore().GetSeconds() {
		t.Errorf("got %v, want the instant of the first answer in the later requests", requests)
	}
}

func TestDLQ_22_ResubmitToATopic(t *testing.T) {
	t.Parallel()
	s := serveMemory(t)
	s.ok(t, "entity", "create", "topics/again")
	s.ok(t, "entity", "create", "topics/again/subscriptions/all")
	s.ok(t, "entity", "update", "orders", "--set", "maxDeliveryCount=1")
	s.ok(t, "send", "orders", "a", "b")
	s.ok(t, "receive", "orders", "--max=2", "--abandon")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--number=2", "--to", "topics/again").
		wants(t, cli.Clean, "2         -    sent", "resubmitted 1 message to topics/again")
	s.verb(t, nil, "dlq", "orders", "resubmit", "--all", "-y", "--to", "topics/again").
		wants(t, cli.Clean, "resubmitted 1 message to topics/again")
	s.wantTexts(t, []string{"b", "a"}, "topics/again/subscriptions/all")
}
