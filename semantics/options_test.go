package semantics_test

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

func TestENT_11_OptionBounds(t *testing.T) {
	t.Parallel()
	if err := semantics.DefaultOptions().Validate(semantics.QueueKind); err != nil {
		t.Errorf("the defaults are refused: %v", err)
	}
	cases := []struct {
		field string
		want  semantics.Code
		set   func(o *semantics.Options)
	}{
		{"lockDuration", "", func(o *semantics.Options) { o.LockDuration = 5 * time.Second }},
		{"lockDuration", "", func(o *semantics.Options) { o.LockDuration = 5 * time.Minute }},
		{"lockDuration", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.LockDuration = 5*time.Second - 1 }},
		{"lockDuration", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.LockDuration = 5*time.Minute + 1 }},
		{"maxDeliveryCount", "", func(o *semantics.Options) { o.MaxDeliveryCount = 1 }},
		{"maxDeliveryCount", "", func(o *semantics.Options) { o.MaxDeliveryCount = math.MaxInt32 }},
		{"maxDeliveryCount", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.MaxDeliveryCount = 0 }},
		{"maxDeliveryCount", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.MaxDeliveryCount = math.MaxInt32 + 1 }},
		{"maxSizeInMegabytes", "", func(o *semantics.Options) { o.MaxSizeInMegabytes = 81920 }},
		{"maxSizeInMegabytes", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.MaxSizeInMegabytes = 81921 }},
		{"maxMessageSizeInKilobytes", "", func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 102400 }},
		{"maxMessageSizeInKilobytes", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.MaxMessageSizeInKilobytes = 102401 }},
		{"maxMessageCount", "", func(o *semantics.Options) { o.MaxMessageCount = 0 }},
		{"maxMessageCount", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.MaxMessageCount = -1 }},
		{"defaultMessageTimeToLive", "", func(o *semantics.Options) { o.DefaultMessageTimeToLive = time.Second }},
		{"defaultMessageTimeToLive", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.DefaultMessageTimeToLive = time.Second - 1 }},
		{"duplicateDetectionHistoryTimeWindow", "", func(o *semantics.Options) { o.DuplicateDetectionHistoryTimeWindow = 20 * time.Second }},
		{"duplicateDetectionHistoryTimeWindow", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.DuplicateDetectionHistoryTimeWindow = 20*time.Second - 1 }},
		{"duplicateDetectionHistoryTimeWindow", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.DuplicateDetectionHistoryTimeWindow = 7*24*time.Hour + 1 }},
		{"duplicateHistoryMaxEntries", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.DuplicateHistoryMaxEntries = 0 }},
		{"redeliveryDelay", "", func(o *semantics.Options) { o.RedeliveryDelay = 7 * 24 * time.Hour }},
		{"redeliveryDelay", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.RedeliveryDelay = 7*24*time.Hour + 1 }},
		{"redeliveryDelay", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.RedeliveryDelay = -1 }},
		{"deadLetterTtl", "", func(o *semantics.Options) { o.DeadLetterTTL = time.Second }},
		{"deadLetterTtl", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.DeadLetterTTL = time.Second - 1 }},
		{"sessionInFlight", "", func(o *semantics.Options) { o.SessionInFlight = 1000 }},
		{"sessionInFlight", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.SessionInFlight = 0 }},
		{"sessionInFlight", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.SessionInFlight = 1001 }},
		{"sessionStateTtl", "", func(o *semantics.Options) { o.SessionStateTTL = time.Second }},
		{"sessionStateTtl", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.SessionStateTTL = time.Second - 1 }},
		{"onDisconnect", semantics.InvalidArgument, func(o *semantics.Options) { o.OnDisconnect = 2 }},
		{"sessionExpiryMode", semantics.InvalidArgument, func(o *semantics.Options) { o.SessionExpiryMode = 2 }},
		{"sessionOnDeadLetter", semantics.InvalidArgument, func(o *semantics.Options) { o.SessionOnDeadLetter = 2 }},
		{"acceptNext", semantics.InvalidArgument, func(o *semantics.Options) { o.AcceptNext = 2 }},
		{"overflow", semantics.InvalidArgument, func(o *semantics.Options) { o.Overflow = 3 }},
		{"autoDeleteOnIdle", "", func(o *semantics.Options) { o.AutoDeleteOnIdle = 5 * time.Minute }},
		{"autoDeleteOnIdle", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.AutoDeleteOnIdle = 5*time.Minute - 1 }},
		{"status", "", func(o *semantics.Options) { o.Status = semantics.StatusReceiveDisabled }},
		{"status", semantics.InvalidArgument, func(o *semantics.Options) { o.Status = 4 }},
		{"userMetadata", "", func(o *semantics.Options) { o.UserMetadata = strings.Repeat("\U0001D11E", 512) }},
		{"userMetadata", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.UserMetadata = strings.Repeat("\U0001D11E", 512) + "x" }},
		{"durability", "", func(o *semantics.Options) { o.Durability = semantics.AtReplica }},
		{"durability", semantics.InvalidArgument, func(o *semantics.Options) { o.Durability = semantics.AtReplica + 1 }},
		{"partitions", "", func(o *semantics.Options) { o.Partitions = 64 }},
		{"partitions", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.Partitions = 0 }},
		{"partitions", semantics.ArgumentOutOfRange, func(o *semantics.Options) { o.Partitions = 65 }},
		{"userMetadata", semantics.InvalidArgument, func(o *semantics.Options) { o.UserMetadata = "\xff" }},
	}
	refused := map[string]bool{}
	for _, c := range cases {
		o := semantics.DefaultOptions()
		c.set(&o)
		err := o.Validate(semantics.QueueKind)
		wantCode(t, c.field, err, c.want)
		if err != nil && semantics.AsError(err).Details[semantics.DetailField] != c.field {
			t.Errorf("%v does not name %s", semantics.AsError(err).Details, c.field)
		}
		refused[c.field] = refused[c.field] || err != nil
	}
	for _, option := range semantics.AllOptions() {
		_, isBool := option.Value.(semantics.BoolOption)
		text, _ := option.Value.(semantics.TextOption)
		if !isBool && !text.IsPath && !refused[option.Name] {
			t.Errorf("no value of %s is refused here", option.Name)
		}
	}
}

func TestENT_7_Merge(t *testing.T) {
	t.Parallel()
	other := semantics.Options{
		LockDuration: 1, MaxSizeInMegabytes: 2, MaxMessageSizeInKilobytes: 3, DefaultMessageTimeToLive: 4,
		DeadLetteringOnMessageExpiration: true, MaxDeliveryCount: 5, MaxMessageCount: 6, Status: semantics.StatusDisabled, UserMetadata: "7",
		RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 8, DuplicateHistoryMaxEntries: 9, ForgetOnCancel: true,
		EnablePartitioning: true, RedeliveryDelay: 10, ExpireDeferred: true, DeadLetterTTL: 11,
		RequiresSession: true, SessionInFlight: 12, OnDisconnect: semantics.ReleaseOnDisconnect,
		SessionExpiryMode: semantics.ExpireSession, SessionOnDeadLetter: semantics.BlockSession,
		AcceptNext: semantics.AcceptNextForbidden, SessionStateTTL: 13,
		AutoDeleteOnIdle: 14, AutoDeleteKeepsDeadLetters: true, ForwardTo: "15", ForwardDeadLetteredMessagesTo: "16", UnmatchedTo: "17", Partitions: 18, Durability: semantics.AtReplica,
	}
	defaults := semantics.DefaultOptions()
	other.SupportOrdering, other.FailIfUnmatched = false, true
	other.DeadLetteringOnFilterEvaluationExceptions, other.Overflow = false, semantics.DropOldestOverflow
	// Each option by itself changes, and all of them together make the other.
	all := allOptionNames()
	for _, name := range all {
		got, err := defaults.Merge(other, []string{name})
		if diff := got.Differences(defaults, all); err != nil || len(diff) != 1 || diff[0].Option != name {
			t.Errorf("Merge of %s changed %v, %v", name, diff, err)
		}
	}
	got, err := defaults.Merge(other, all)
	if err != nil || got != other {
		t.Errorf("Merge of all = %+v, %v", got, err)
	}
	_, err = defaults.Merge(other, []string{"unknown"})
	wantCode(t, "unknown name", err, semantics.InvalidArgument)
}

func TestENT_16_Immutable(t *testing.T) {
	t.Parallel()
	for _, name := range append(allOptionNames(), "unknown") {
		want := name == "requiresDuplicateDetection" || name == "enablePartitioning" || name == "requiresSession" || name == "partitions"
		if got := semantics.Immutable(name); got != want {
			t.Errorf("Immutable(%s) = %v, want %v", name, got, want)
		}
	}
	e := semantics.ImmutableChanged("orders", "enablePartitioning")
	if e.Code != semantics.PropertyImmutable || e.Details[semantics.DetailEntity] != "orders" || e.Details[semantics.DetailField] != "enablePartitioning" {
		t.Errorf("ImmutableChanged = %+v", e)
	}
}

func TestENT_6_Differences(t *testing.T) {
	t.Parallel()
	present, asked := semantics.DefaultOptions(), semantics.DefaultOptions()
	asked.DefaultMessageTimeToLive, asked.LockDuration, asked.Status = 1500*time.Millisecond, 30*time.Second, semantics.StatusSendDisabled
	asked.AutoDeleteOnIdle = 14 * 24 * time.Hour
	want := []semantics.Difference{
		{Option: "defaultMessageTimeToLive", Present: "never", Asked: "1.5s"},
		{Option: "autoDeleteOnIdle", Present: "never", Asked: "1209600s"},
		{Option: "status", Present: "ACTIVE", Asked: "SEND_DISABLED"},
	}
	// not lockDuration
	got := present.Differences(asked, []string{"defaultMessageTimeToLive", "maxDeliveryCount", "autoDeleteOnIdle", "status"})
	if !slices.Equal(got, want) {
		t.Errorf("Differences = %v, want %v", got, want)
	}
}

func TestSTAT_2_Verbs(t *testing.T) {
	t.Parallel()
	for status, want := range map[semantics.Status][2]bool{
		semantics.StatusActive: {true, true}, semantics.StatusDisabled: {false, false},
		semantics.StatusSendDisabled: {false, true}, semantics.StatusReceiveDisabled: {true, false},
		9: {false, false},
	} {
		if got := [2]bool{status.CanSend(), status.CanReceive()}; got != want {
			t.Errorf("%s permits send and receive: %v, want %v", status, got, want)
		}
	}
}

func TestMSG_21_LimitsOfOptions(t *testing.T) {
	t.Parallel()
	for kilobytes, want := range map[int64]int64{1: 256 << 10, 256: 256 << 10, 257: 1 << 20, 102400: 1 << 20} {
		o := semantics.Options{MaxMessageSizeInKilobytes: kilobytes, MaxSizeInMegabytes: 3}
		if o.MaxBatchBytes() != want || o.MaxMessageBytes() != kilobytes<<10 || o.MaxBytes() != 3<<20 {
			t.Errorf("%d KB: batch %d, message %d, queue %d", kilobytes, o.MaxBatchBytes(), o.MaxMessageBytes(), o.MaxBytes())
		}
	}
}

func TestCNT_1_Total(t *testing.T) {
	t.Parallel()
	r := semantics.Runtime{Active: 1, Available: 100, Locked: 100, Deferred: 100, ExpiredPending: 100, Scheduled: 2, DeadLetter: 4, Transfer: 8, TransferDeadLetter: 16}
	if got := r.Total(); got != 31 {
		t.Errorf("Total() = %d, want 31", got)
	}
}

// allOptionNames gives the options of all kinds.
func allOptionNames() []string {
	var all []string
	for kind := semantics.QueueKind; kind <= semantics.SubscriptionKind; kind++ {
		all = append(all, semantics.OptionNames(kind)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestPART_1_EnablePartitioningAloneMeansSixteen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		set  semantics.Options
		want semantics.Options
	}{
		"":                              {semantics.Options{}, semantics.Options{Partitions: 1}},
		"enablePartitioning":            {semantics.Options{EnablePartitioning: true}, semantics.Options{EnablePartitioning: true, Partitions: 16}},
		"partitions":                    {semantics.Options{Partitions: 4}, semantics.Options{EnablePartitioning: true, Partitions: 4}},
		"enablePartitioning,partitions": {semantics.Options{EnablePartitioning: true, Partitions: 1}, semantics.Options{EnablePartitioning: true, Partitions: 1}},
		"partitions,enablePartitioning": {semantics.Options{Partitions: 1}, semantics.Options{Partitions: 1}},
	}
	for names, c := range cases {
		given := strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
		merged, err := semantics.DefaultOptions().Merge(c.set, given)
		if err != nil {
			t.Fatal(err)
		}
		got := merged.Partitioned(given)
		if got.Partitions != c.want.Partitions || got.EnablePartitioning != c.want.EnablePartitioning {
			t.Errorf("%q: got %d partitions, enabled %t; want %d, %t",
				names, got.Partitions, got.EnablePartitioning, c.want.Partitions, c.want.EnablePartitioning)
		}
	}
}
