package redisstore_test

import (
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidebus/sidebus/redisstore"
	"github.com/sidebus/sidebus/semantics"
)

// unlikeDefaults are options of which none has its default.
var unlikeDefaults = semantics.Options{
	LockDuration: 5001 * time.Millisecond, MaxSizeInMegabytes: 3, MaxMessageSizeInKilobytes: 257,
	DefaultMessageTimeToLive: 1002 * time.Millisecond, DeadLetteringOnMessageExpiration: true, MaxDeliveryCount: 4,
	MaxMessageCount: 5, Status: semantics.StatusSendDisabled, UserMetadata: "ü\n", EnableBatchedOperations: false,
	RequiresDuplicateDetection: true, DuplicateDetectionHistoryTimeWindow: 20_003 * time.Millisecond, DuplicateHistoryMaxEntries: 6,
	ForgetOnCancel: true, EnablePartitioning: true, RedeliveryDelay: 1004 * time.Millisecond, ExpireDeferred: true,
	DeadLetterTTL: 1005 * time.Millisecond, RequiresSession: true, SessionInFlight: 7, OnDisconnect: semantics.ReleaseOnDisconnect,
	SessionExpiryMode: semantics.ExpireSession, SessionOnDeadLetter: semantics.BlockSession, AcceptNext: semantics.AcceptNextForbidden,
	SessionStateTTL: 1006 * time.Millisecond, SupportOrdering: false, FailIfUnmatched: true, AutoDeleteOnIdle: 300_007 * time.Millisecond,
	AutoDeleteKeepsDeadLetters: true, ForwardTo: "a/b", ForwardDeadLetteredMessagesTo: "c", UnmatchedTo: "d", Partitions: 1,
	DeadLetteringOnFilterEvaluationExceptions: false, Overflow: semantics.DropOldestOverflow, Durability: semantics.AtMemory,
}

// storedUnlikeDefaults is how Redis keeps them. Sidecars of other versions read and write the same fields.
var storedUnlikeDefaults = map[semantics.Kind]map[string]string{
	semantics.QueueKind: {
		"lock_duration_ms": "5001", "max_bytes": "3145728", "max_message_bytes": "263168", "max_batch_bytes": "1048576",
		"default_ttl_ms": "1002", "dead_letter_expired": "1", "max_delivery_count": "4", "max_message_count": "5",
		"status": "SEND_DISABLED", "user_metadata": "ü\n", "batched_operations": "0", "requires_duplicate_detection": "1",
		"duplicate_window_ms": "20003", "duplicate_max_entries": "6", "forget_on_cancel": "1", "partitioned": "1",
		"redelivery_delay_ms": "1004", "expire_deferred": "1", "dead_letter_ttl_ms": "1005", "requires_session": "1",
		"session_in_flight": "7", "on_disconnect": "RELEASE", "session_expiry_mode": "SESSION", "session_on_dead_letter": "BLOCK",
		"accept_next": "FORBIDDEN", "session_state_ttl_ms": "1006", "idle_ms": "300007", "idle_keeps_dead": "1",
		"forward_to": "a/b", "forward_dead_to": "c", "partitions": "1", "durability": "MEMORY",
	},
	semantics.TopicKind: {
		"max_bytes": "3145728", "max_message_bytes": "263168", "max_batch_bytes": "1048576", "default_ttl_ms": "1002",
		"status": "SEND_DISABLED", "user_metadata": "ü\n", "batched_operations": "0", "requires_duplicate_detection": "1",
		"duplicate_window_ms": "20003", "duplicate_max_entries": "6", "forget_on_cancel": "1", "partitioned": "1",
		"support_ordering": "0", "fail_if_unmatched": "1", "unmatched_to": "d", "idle_ms": "300007", "idle_keeps_dead": "1",
		"durability": "MEMORY",
		"partitions": "1",
	},
	semantics.SubscriptionKind: {
		"lock_duration_ms": "5001", "default_ttl_ms": "1002", "dead_letter_expired": "1", "dead_letter_failures": "0",
		"max_delivery_count": "4", "max_message_count": "5", "overflow": "DROP_OLDEST", "status": "SEND_DISABLED", "user_metadata": "ü\n",
		"batched_operations": "0", "redelivery_delay_ms": "1004", "expire_deferred": "1", "dead_letter_ttl_ms": "1005",
		"requires_session": "1", "session_in_flight": "7", "on_disconnect": "RELEASE", "session_expiry_mode": "SESSION",
		"session_on_dead_letter": "BLOCK", "accept_next": "FORBIDDEN", "session_state_ttl_ms": "1006", "idle_ms": "300007",
		"idle_keeps_dead": "1", "forward_to": "a/b", "forward_dead_to": "c", "durability": "MEMORY",
	},
}

// storedDefaults are the fields of options that have their default.
var storedDefaults = map[string]string{
	"lock_duration_ms": "60000", "max_bytes": "1073741824", "max_message_bytes": "262144", "max_batch_bytes": "262144",
	"default_ttl_ms": "-1", "dead_letter_expired": "0", "max_delivery_count": "10", "max_message_count": "0", "status": "ACTIVE",
	"user_metadata": "", "batched_operations": "1", "requires_duplicate_detection": "0", "duplicate_window_ms": "600000",
	"duplicate_max_entries": "1000000", "forget_on_cancel": "0", "partitioned": "0", "redelivery_delay_ms": "0", "expire_deferred": "0",
	"dead_letter_ttl_ms": "-1", "requires_session": "0", "session_in_flight": "100", "on_disconnect": "EXPIRE",
	"session_expiry_mode": "MESSAGE", "session_on_dead_letter": "CONTINUE", "accept_next": "ALLOWED", "session_state_ttl_ms": "-1",
	"support_ordering": "1", "fail_if_unmatched": "0", "dead_letter_failures": "1", "overflow": "REJECT", "idle_ms": "-1",
	"idle_keeps_dead": "0", "forward_to": "", "forward_dead_to": "", "unmatched_to": "", "partitions": "1", "durability": "SIDECAR",
}

// notOptions are the other fields of an entity.
var notOptions = []string{
	"kind", "name", "incarnation", "created_ms", "updated_ms", "accessed_ms", "alarm_ms", "keyed", "version", "about",
	"schema", "ticket",
}

// storedEntity makes an entity and returns its key and what Redis keeps of its options.
func (s *swept) storedEntity(t *testing.T, kind semantics.Kind, path string, options semantics.Options) (string, map[string]string) {
	t.Helper()
	var err error
	if kind == semantics.SubscriptionKind {
		_, _, err = s.CreateSubscription(t.Context(), path, options, nil)
	} else {
		_, _, err = s.CreateEntity(t.Context(), kind, path, options)
	}
	if err != nil {
		t.Fatal(err)
	}
	key := s.keyOf(path, "entity")
	if topic, name, ok := semantics.SplitSubscription(path); ok {
		key = s.keyOf(topic, "subscriptions/"+name+":entity")
	}
	fields := s.raw.HGetAll(t.Context(), key).Val()
	maps.DeleteFunc(fields, func(field, _ string) bool { return slices.Contains(notOptions, field) })
	return key, fields
}

func TestStoredOptions(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	for _, c := range []struct {
		kind               semantics.Kind
		changed, unchanged string
	}{
		{semantics.QueueKind, "orders", "plain"},
		{semantics.TopicKind, "news", "old"},
		{semantics.SubscriptionKind, semantics.SubscriptionPath("old", "eu"), semantics.SubscriptionPath("old", "us")},
	} {
		names := semantics.OptionNames(c.kind)
		want, err := semantics.DefaultOptions().Merge(unlikeDefaults, names)
		if err != nil {
			t.Fatal(err)
		}
		_, fields := s.storedEntity(t, c.kind, c.changed, unlikeDefaults)
		if diff := cmp.Diff(storedUnlikeDefaults[c.kind], fields); diff != "" {
			t.Errorf("%s (-want +got)\n%s", c.kind, diff)
		}
		if got, err := s.GetEntity(t.Context(), c.kind, c.changed); err != nil || got.Options != want {
			t.Errorf("%s: read as %+v, %v, want %+v", c.kind, got.Options, err, want)
		}

		key, fields := s.storedEntity(t, c.kind, c.unchanged, semantics.DefaultOptions())
		defaults := maps.Clone(storedDefaults)
		maps.DeleteFunc(defaults, func(field, _ string) bool { _, has := storedUnlikeDefaults[c.kind][field]; return !has })
		if diff := cmp.Diff(defaults, fields); diff != "" {
			t.Errorf("%s by default (-want +got)\n%s", c.kind, diff)
		}
		// What another version has stored is read the same, whatever it was before.
		s.raw.HSet(t.Context(), key, storedUnlikeDefaults[c.kind])
		if got, err := s.GetEntity(t.Context(), c.kind, c.unchanged); err != nil || got.Options != want {
			t.Errorf("%s: of another version, read as %+v, %v, want %+v", c.kind, got.Options, err, want)
		}
	}
}

// Every word of an enumeration is read as what it says. A word that this version does not know is the first one, and of
// the status the one that is not for receivers.
func TestStoredWords(t *testing.T) {
	t.Parallel()
	s := openSwept(t, redisstore.Options{})
	const path = "news/subscriptions/eu"
	s.storedEntity(t, semantics.TopicKind, "news", semantics.DefaultOptions())
	key, _ := s.storedEntity(t, semantics.SubscriptionKind, path, semantics.DefaultOptions())
	for _, c := range []struct {
		field, word string
		want        semantics.Options
	}{
		{"status", "ACTIVE", semantics.Options{}},
		{"status", "DISABLED", semantics.Options{Status: semantics.StatusDisabled}},
		{"status", "SEND_DISABLED", semantics.Options{Status: semantics.StatusSendDisabled}},
		{"status", "RECEIVE_DISABLED", semantics.Options{Status: semantics.StatusReceiveDisabled}},
		{"status", "of another version", semantics.Options{Status: semantics.StatusReceiveDisabled}},
		{"on_disconnect", "EXPIRE", semantics.Options{}},
		{"on_disconnect", "RELEASE", semantics.Options{OnDisconnect: semantics.ReleaseOnDisconnect}},
		{"on_disconnect", "of another version", semantics.Options{}},
		{"session_expiry_mode", "MESSAGE", semantics.Options{}},
		{"session_expiry_mode", "SESSION", semantics.Options{SessionExpiryMode: semantics.ExpireSession}},
		{"session_expiry_mode", "of another version", semantics.Options{}},
		{"session_on_dead_letter", "CONTINUE", semantics.Options{}},
		{"session_on_dead_letter", "BLOCK", semantics.Options{SessionOnDeadLetter: semantics.BlockSession}},
		{"session_on_dead_letter", "of another version", semantics.Options{}},
		{"accept_next", "ALLOWED", semantics.Options{}},
		{"accept_next", "FORBIDDEN", semantics.Options{AcceptNext: semantics.AcceptNextForbidden}},
		{"accept_next", "of another version", semantics.Options{}},
		{"overflow", "REJECT", semantics.Options{}},
		{"overflow", "DEAD_LETTER", semantics.Options{Overflow: semantics.DeadLetterOverflow}},
		{"overflow", "DROP_OLDEST", semantics.Options{Overflow: semantics.DropOldestOverflow}},
		{"overflow", "of another version", semantics.Options{}},
	} {
		s.raw.HSet(t.Context(), key, c.field, c.word)
		got, err := s.GetEntity(t.Context(), semantics.SubscriptionKind, path)
		words := semantics.Options{
			Status: got.Options.Status, OnDisconnect: got.Options.OnDisconnect, SessionExpiryMode: got.Options.SessionExpiryMode,
			SessionOnDeadLetter: got.Options.SessionOnDeadLetter, AcceptNext: got.Options.AcceptNext, Overflow: got.Options.Overflow,
		}
		if err != nil || words != c.want {
			t.Errorf("%s %q is read as %+v, %v", c.field, c.word, words, err)
		}
		s.raw.HSet(t.Context(), key, c.field, storedDefaults[c.field])
	}
	for field, value := range storedDefaults { // what is no number is an error, not a zero
		if _, isNumber := strconv.Atoi(value); isNumber != nil || value == "1" || value == "0" || field == "max_batch_bytes" {
			continue
		}
		s.raw.HSet(t.Context(), key, field, "x")
		if _, err := s.GetEntity(t.Context(), semantics.SubscriptionKind, path); err == nil {
			t.Errorf("%s x is read", field)
		}
		s.raw.HSet(t.Context(), key, field, value)
	}
}
