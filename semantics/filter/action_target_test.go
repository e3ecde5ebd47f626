package filter_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

func TestACT_3_SettableSystemProperties(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"ContentType", "CorrelationId", "Label", "MessageId", "ReplyTo", "ReplyToSessionId", "SessionId", "To", "PartitionKey",
	} {
		onOrder(t, nil, []effect{{`SET sys.` + name + ` = 'new'`, "sys." + name + " new"}})
		onOrder(t, nil, []effect{{`SET SYS.[` + strings.ToUpper(name) + `] = 'new'; REMOVE sys.` + name, removed(name)}})
	}
	onOrder(t, nil, []effect{
		{`SET sys.Subject = 'new'`, "sys.Label new"},
		{`SET sys.TimeToLive = '5s'`, "sys.TimeToLive 5s"},
	})
}

// removed tells what the difference is when a text property of the order is cleared: none if it is not set.
func removed(name string) string {
	m := order().Message
	if fields(&m)["sys."+name] == "" {
		return ""
	}
	return "sys." + name
}

func TestACT_3_OthersAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{
		"DeliveryCount", "EnqueuedSequenceNumber", "EnqueuedTimeUtc", "ExpiresAtUtc", "SequenceNumber", "Size", "ViaPartitionKey",
	} {
		message := `sys.` + name + ` is assigned by the broker and cannot be changed`
		wantActionInvalid(t, `SET sys.`+name+` = 1`, nil, `column 5: `+message)
		wantActionInvalid(t, `SET a = 1; REMOVE SYS.`+strings.ToLower(name), nil, `column 19: `+message)
	}
	wantActionInvalid(t, `SET sys.LockToken = 'x'`, nil, `column 9: LockToken is not a system property`)
	wantActionInvalid(t, `REMOVE sys.State`, nil, `column 12: State is not a system property`)
}

func TestACT_4_WithoutScopeItIsAnApplicationProperty(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET CorrelationId = 'x'`, "CorrelationId string x"},
		{`SET user.CorrelationId = 'x'`, "CorrelationId string x"},
		{`SET TimeToLive = '5s'`, "TimeToLive string 5s"},
		{`SET SequenceNumber = 5`, "SequenceNumber int64 5"},
		// a property of that name, which the table of differences shows in its place
		{`SET [sys.To] = 'x'`, "sys.To string x"},
		{`REMOVE Label`, ""},
	})
}

func TestACT_6_UnknownAndNull(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET fresh = lost`, "fresh null"},
		{`SET fresh = NULL`, "fresh null"},
		{`SET fresh = nothing`, "fresh null"},
		{`SET fresh = lost + 1`, "fresh null"},
		{`SET fresh = 'a' + 1`, "fresh null"},
		{`SET fresh = -color`, "fresh null"},
		{`SET fresh = p('lost')`, "fresh null"},
		{`SET fresh = p(qty)`, "fresh null"},
		{`SET fresh = sys.CorrelationId`, "fresh null"}, // listed but unset: null (SQL-4)
		{`SET fresh = sys.SequenceNumber`, "fresh null"},
		{`SET qty = lost`, "qty null"}, // null has no type to convert to
		{`SET qty = NULL; SET qty = 'x'`, "qty string x"},
		{`SET nothing = 5`, "nothing int64 5"},
		{`SET sys.Label = lost`, "sys.Label"},
		{`SET sys.Label = NULL`, "sys.Label"},
		{`SET sys.Label = ''`, "sys.Label"},
		{`SET sys.SessionId = sys.CorrelationId`, "sys.SessionId"},
		{`SET sys.MessageId = NULL`, "sys.MessageId"},
		{`SET sys.TimeToLive = NULL`, "-sys.TimeToLive"},
		{`SET sys.TimeToLive = lost * 2`, "-sys.TimeToLive"},
		{`SET color = 'sys.Lost'; SET fresh = p(color)`, E}, // a name that is not listed
		{`SET color = 'sys.To'; SET fresh = p(color)`, "Color string sys.To; fresh string S5"},
	})
}

func TestACT_7_Remove(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`REMOVE lost`, ""},
		{`REMOVE GRÖßE`, "-Größe"},
		{`REMOVE [my-prop]; REMOVE [my-prop]`, "-My-Prop"},
		{`REMOVE nothing`, "-nothing"},
		{`REMOVE raw`, "-raw"},
		{`REMOVE sys.Label`, "sys.Label"},
		{`REMOVE sys.ReplyTo`, ""},
		{`REMOVE sys.TimeToLive`, "-sys.TimeToLive"},
		{`REMOVE sys.To; SET fresh = sys.To`, "fresh null; sys.To"},
	})
}

func TestSCHED_11_ActionsDoNotSchedule(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, action := range []string{
		`SET sys.ScheduledEnqueueTimeUtc = '2030-01-01T00:00:00Z'`, `SET sys.ScheduledEnqueueTimeUtc = 1 / zero`,
		`SET sys.ScheduledEnqueueTimeUtc = NULL`, `REMOVE sys.ScheduledEnqueueTimeUtc`,
	} {
		m := order().Message
		m.ScheduledAt = when
		if got := effectOf(t, action, nil, &m); got != "" {
			t.Errorf("%s changes %s", action, got)
		}
		if warnings := parseAction(t, action, nil).Warnings(); len(warnings) == 0 || !strings.HasSuffix(warnings[len(warnings)-1], "is without effect: an action cannot schedule a message") {
			t.Errorf("%s warns %q", action, warnings)
		}
	}
}

func TestACT_8_IDsChangeFreely(t *testing.T) {
	t.Parallel()
	onOrder(t, nil, []effect{
		{`SET sys.MessageId = 'm-1-' + color`, "sys.MessageId m-1-red"},
		{`SET sys.SessionId = color`, "sys.SessionId red"}, // although the partition key is another
		{`SET sys.PartitionKey = color`, "sys.PartitionKey red"},
		{`SET sys.SessionId = 5`, "sys.SessionId 5"},
		{`SET sys.MessageId = '` + strings.Repeat("x", 128) + `'`, "sys.MessageId " + strings.Repeat("x", 128)},
		{`SET sys.MessageId = '` + strings.Repeat("x", 129) + `'`, E},
		{`SET sys.SessionId = '` + strings.Repeat("😀", 64) + `'`, "sys.SessionId " + strings.Repeat("😀", 64)},
		{`SET sys.SessionId = '` + strings.Repeat("😀", 64) + `x'`, E}, // counted as MSG-2 does
		{`SET sys.CorrelationId = '` + strings.Repeat("ä", 129) + `'`, E},
		{`SET sys.PartitionKey = '` + strings.Repeat("ä", 129) + `'`, E},
		{`SET sys.ReplyToSessionId = '` + strings.Repeat("ä", 129) + `'`, E},
		{`SET sys.Label = '` + strings.Repeat("ä", 129) + `'`, "sys.Label " + strings.Repeat("ä", 129)},
	})
}

func TestACT_9_CheckHeaders(t *testing.T) {
	t.Parallel()
	m := &semantics.Message{Properties: values{"t": semantics.String(strings.Repeat("x", 32<<10))}}
	for action, field := range map[string]string{
		`SET a = 'b'`:                  "",
		`SET t = t + 'x'`:              "properties[t]",
		`SET sys.To = t; SET a = 'b'`:  "headers and properties",
		`SET sys.To = t + t`:           "headers and properties",
		`SET sys.To = t + t; REMOVE t`: "",
	} {
		changed, err := parseAction(t, action, nil).Apply(m)
		if err != nil {
			t.Errorf("%s fails with %v; limits are for the caller", action, err)
			continue
		}
		err = changed.CheckHeaders()
		if e := semantics.AsError(err); field == "" && err != nil || field != "" && (e == nil || e.Code != semantics.MessageSizeExceeded || e.Details[semantics.DetailField] != field) {
			t.Errorf("%s: %v, want %q", action, err, field)
		}
		if want := changed.Validate(); semantics.CodeOf(want) != semantics.CodeOf(err) {
			t.Errorf("%s: Validate gives %v, CheckHeaders %v", action, want, err)
		}
	}
}

func TestACT_3_Warnings(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`SET a = 1; REMOVE a; SET user.To = 1; SET sys.To = color; SET Size = 1; SET sys.TimeToLive = color`: nil,
		`SET CorrelationId = 'x'`:               {`column 1: SET CorrelationId = 'x' is about an application property; write sys.CorrelationId for that of the broker`},
		`REMOVE a; REMOVE [subject]`:            {`column 11: REMOVE subject is about an application property; write sys.Label for that of the broker`},
		`SET rulename = 'x'`:                    {`column 1: SET rulename = 'x' is without effect: every copy that an action makes has the name of the rule there`},
		`SET sys.TimeToLive = 5`:                {`column 1: SET sys.TimeToLive = 5 is always a failure: an int64 of this value does not convert to timespan`},
		`SET sys.TimeToLive = '0s'`:             {`column 1: SET sys.TimeToLive = '0s' is always a failure: the time to live is not at least 1ms`},
		`SET a = 1 / 0`:                         {`column 9: 1 / 0 is always a failure: division of an integer by zero`},
		`SET a = 'x' + 1`:                       {`column 9: 'x' + 1 is always unknown, because a string and a number do not go together with +`},
		`SET sys.ScheduledEnqueueTimeUtc = @at`: {`column 1: SET sys.ScheduledEnqueueTimeUtc = @at is without effect: an action cannot schedule a message`},
	} {
		got := parseAction(t, text, values{"at": typed(semantics.TypeDateTime, "2026-01-02T00:00:00Z")}).Warnings()
		if len(got)+len(want) > 0 && !reflect.DeepEqual(got, want) {
			t.Errorf("%s warns\n%q, want\n%q", text, got, want)
		}
	}
}
