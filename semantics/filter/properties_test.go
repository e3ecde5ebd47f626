package filter_test

import (
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
	"github.com/sidebus/sidebus/semantics/filter"
)

func TestSQL_3_SystemProperties(t *testing.T) {
	t.Parallel()
	ofOrder(t, []outcome{
		{`sys.ContentType = 'application/json'`, T},
		{`sys.MessageId = 'm-1'`, T},
		{`sys.SessionId = 's-1'`, T},
		{`sys.PartitionKey = 's-1'`, T},
		{`sys.Label = 'the bus trip'`, T},
		{`sys.Subject = sys.Label`, T},
		{`sys.To = 'S5'`, T},
		{`sys.CorrelationId IS NULL`, T},
		{`sys.ReplyTo IS NULL`, T},
		{`sys.ReplyToSessionId IS NULL`, T},
		{`sys.SequenceNumber = 42`, T},
		{`sys.EnqueuedSequenceNumber = 41`, T},
		{`sys.DeliveryCount = 2`, T},
		{`sys.Size = 1234`, T},
		{`sys.EnqueuedTimeUtc = '2026-01-02T03:04:05.678Z'`, T},
		{`sys.ExpiresAtUtc > sys.EnqueuedTimeUtc`, T},
		{`sys.ExpiresAtUtc = '2026-01-02T04:04:05.678'`, T},
		{`sys.ExpiresAtUtc - sys.EnqueuedTimeUtc = sys.TimeToLive`, T},
		{`sys.ScheduledEnqueueTimeUtc IS NULL`, T},
		{`sys.ViaPartitionKey IS NULL`, T},
		{`SYS.sequencenumber = 42`, T},
		{`sys . [MESSAGEID] = 'm-1'`, T},
		{`Sys."label" LIKE '%trip'`, T},
		{`To = 'S5'`, U},
		{`user.To IS NULL`, T},
		{`user.Color = 'red'`, T},
		{`USER.color = 'red'`, T},
		{`COLOR = 'red'`, T},
		{`color = 'RED'`, F},
		{`größe = 'Ärger'`, T},
		{`GRÖSSE = 'Ärger'`, U},
		{`GRÖßE = 'Ärger'`, T},
	})
}

func TestSQL_3_AllFieldsOfAMessage(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{
		CorrelationID: "c", ReplyTo: "r", ReplyToSessionID: "rs", Body: []byte("12345"),
		ScheduledAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
	check(t, filter.Of(m), nil, []outcome{
		{`sys.ScheduledEnqueueTimeUtc = '2026-01-02T03:04:05Z'`, T},
		{`sys.CorrelationId = 'c'`, T},
		{`sys.ReplyTo = 'r'`, T},
		{`sys.ReplyToSessionId = 'rs'`, T},
		{`sys.ContentType IS NULL`, T},
		{`sys.MessageId IS NULL`, T},
		{`sys.TimeToLive IS NULL`, T},
		{`sys.Size = 9`, T},
		{`sys.DeliveryCount = 0`, T},
		{`sys.SequenceNumber IS NULL`, T},
		{`sys.EnqueuedSequenceNumber IS NULL`, T},
		{`sys.EnqueuedTimeUtc IS NULL`, T},
		{`sys.ExpiresAtUtc IS NULL`, T},
		{`EXISTS(anything)`, F},
	})
	never := semantics.Never
	stored := &semantics.Received{Message: semantics.Message{TimeToLive: &never}, EnqueuedAt: time.Date(10001, 1, 1, 0, 0, 0, 0, time.UTC)}
	check(t, filter.OfReceived(stored), nil, []outcome{
		{`sys.ExpiresAtUtc IS NULL`, T}, {`sys.EnqueuedTimeUtc IS NULL`, T}, {`sys.TimeToLive IS NOT NULL`, T},
	})
}

func TestSQL_3_NamesWithoutCase(t *testing.T) {
	t.Parallel()
	// long s and Kelvin sign: Validate takes "ſ" and "s" for two names, so do filters; "K" and "k" are one
	m := &semantics.Message{Properties: values{
		"s": semantics.Int64(1), "ſ": semantics.Int64(2), "\u212A": semantics.Int64(3), "Straße": semantics.Int64(4), "İ": semantics.Int64(5),
	}}
	if err := m.Validate(); err != nil {
		t.Fatal(err)
	}
	check(t, filter.Of(m), nil, []outcome{
		{`s = 1`, T}, {`S = 1`, T}, {`ſ = 2`, T}, {`k = 3`, T}, {`K = 3`, T}, {`STRAßE = 4`, T}, {`strasse = 4`, U}, {`property('STRAßE') = 4`, T}, {`İ = 5`, T},
	})
}

func TestSQL_3_OneNameInUpperCase(t *testing.T) {
	t.Parallel()
	for _, names := range [][]string{{"COLOR"}, {"COLOR", "a"}, {"a", "COLOR"}, {"Color", "A", "b"}} {
		m := &semantics.Message{Properties: values{}}
		for _, name := range names {
			m.Properties[name] = semantics.Int64(1)
		}
		check(t, filter.Of(m), nil, []outcome{{`color = 1`, T}, {`COLOR = 1`, T}})
	}
}

func TestSQL_4_UnsetAndMissing(t *testing.T) {
	t.Parallel()
	check(t, filter.Of(&semantics.Message{}), nil, []outcome{
		{`sys.Label = 'x'`, U}, {`sys.Label <> 'x'`, U}, {`sys.Label IS NULL`, T}, {`lost IS NULL`, T}, {`lost = 1`, U}, {`sys.PartitionKey IS NOT NULL`, F},
	})
}

func TestSQL_6_NamesInBracketsAndQuotes(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{Properties: values{
		"a b": semantics.Int64(1), "a-b": semantics.Int64(2), "a.b": semantics.Int64(3), "a]b": semantics.Int64(4), `a"b`: semantics.Int64(5),
		"and": semantics.Int64(6), "P": semantics.Int64(7), "user": semantics.Int64(8), "$id": semantics.Int64(9), "_x": semantics.Int64(10),
		"1st": semantics.Int64(11), "[": semantics.Int64(12), "user.a": semantics.Int64(13), "set": semantics.Int64(14), "x_1": semantics.Int64(15),
	}}
	check(t, filter.Of(m), nil, []outcome{
		{`[a b] = 1`, T},
		{`"a b" = 1`, T},
		{`[a-b] = 2`, T},
		{`"A-B" = 2`, T},
		{`[a.b] = 3`, T},
		{`[a]]b] = 4`, T},
		{`"a]b" = 4`, T},
		{`"a""b" = 5`, T},
		{`[a"b] = 5`, T},
		{`[AND] = 6`, T},
		{`"and" = 6`, T},
		{`[p] = 7`, T},
		{`user.[p] = 7`, T},
		{`[user] = 8`, T},
		{`user."user" = 8`, T},
		{`[$id] = 9`, T},
		{`[_x] = 10`, T},
		{`[1st] = 11`, T},
		{`[[] = 12`, T},
		{`[user.a] = 13`, T},
		{`set = 14`, T},
		{`x_1 = 15`, T},
		{`user.[user.a] = 13`, T},
		{`user.a = 13`, U},
	})
}

func TestRULE_5_BodyIsOutOfReach(t *testing.T) {
	t.Parallel()
	m := order()
	m.Properties = nil
	check(t, filter.OfReceived(m), nil, []outcome{{`color = 'blue'`, U}, {`EXISTS(body)`, F}})
}
