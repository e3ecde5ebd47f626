package redisstore

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// appendOptions adds the fields under which the named options are kept, with their values.
func appendOptions(args []any, o semantics.Options, names []string) []any {
	for _, name := range names {
		switch name {
		case "lockDuration":
			args = append(args, "lock_duration_ms", o.LockDuration.Milliseconds())
		case "maxSizeInMegabytes":
			args = append(args, "max_bytes", o.MaxBytes())
		case "maxMessageSizeInKilobytes":
			args = append(args, "max_message_bytes", o.MaxMessageBytes(), "max_batch_bytes", o.MaxBatchBytes())
		case "defaultMessageTimeToLive":
			args = append(args, "default_ttl_ms", ttlMillis(&o.DefaultMessageTimeToLive))
		case "deadLetteringOnMessageExpiration":
			args = append(args, "dead_letter_expired", flag(o.DeadLetteringOnMessageExpiration))
		case "maxDeliveryCount":
			args = append(args, "max_delivery_count", o.MaxDeliveryCount)
		case "maxMessageCount":
			args = append(args, "max_message_count", o.MaxMessageCount)
		case "status":
			args = append(args, "status", o.Status.String())
		case "userMetadata":
			args = append(args, "user_metadata", o.UserMetadata)
		case "enableBatchedOperations":
			args = append(args, "batched_operations", flag(o.EnableBatchedOperations))
		case "requiresDuplicateDetection":
			args = append(args, "requires_duplicate_detection", flag(o.RequiresDuplicateDetection))
		case "duplicateDetectionHistoryTimeWindow":
			args = append(args, "duplicate_window_ms", o.DuplicateDetectionHistoryTimeWindow.Milliseconds())
		case "duplicateHistoryMaxEntries":
			args = append(args, "duplicate_max_entries", o.DuplicateHistoryMaxEntries)
		case "forgetOnCancel":
			args = append(args, "forget_on_cancel", flag(o.ForgetOnCancel))
		case "enablePartitioning":
			args = append(args, "partitioned", flag(o.EnablePartitioning))
		case "redeliveryDelay":
			args = append(args, "redelivery_delay_ms", o.RedeliveryDelay.Milliseconds())
		case "expireDeferred":
			args = append(args, "expire_deferred", flag(o.ExpireDeferred))
		case "deadLetterTtl":
			args = append(args, "dead_letter_ttl_ms", ttlMillis(&o.DeadLetterTTL))
		case "requiresSession":
			args = append(args, "requires_session", flag(o.RequiresSession))
		case "sessionInFlight":
			args = append(args, "session_in_flight", o.SessionInFlight)
		case "onDisconnect":
			args = append(args, "on_disconnect", o.OnDisconnect.String())
		case "sessionExpiryMode":
			args = append(args, "session_expiry_mode", o.SessionExpiryMode.String())
		case "sessionOnDeadLetter":
			args = append(args, "session_on_dead_letter", o.SessionOnDeadLetter.String())
		case "acceptNext":
			args = append(args, "accept_next", o.AcceptNext.String())
		case "sessionStateTtl":
			args = append(args, "session_state_ttl_ms", ttlMillis(&o.SessionStateTTL))
		case "supportOrdering":
			args = append(args, "support_ordering", flag(o.SupportOrdering))
		case "failIfUnmatched":
			args = append(args, "fail_if_unmatched", flag(o.FailIfUnmatched))
		case "deadLetteringOnFilterEvaluationExceptions":
			args = append(args, "dead_letter_failures", flag(o.DeadLetteringOnFilterEvaluationExceptions))
		case "overflow":
			args = append(args, "overflow", o.Overflow.String())
		case "autoDeleteOnIdle":
			args = append(args, "idle_ms", ttlMillis(&o.AutoDeleteOnIdle))
		case "autoDeleteKeepsDeadLetters":
			args = append(args, "idle_keeps_dead", flag(o.AutoDeleteKeepsDeadLetters))
		case "forwardTo":
			args = append(args, "forward_to", o.ForwardTo)
		case "forwardDeadLetteredMessagesTo":
			args = append(args, "forward_dead_to", o.ForwardDeadLetteredMessagesTo)
		case "unmatchedTo":
			args = append(args, "unmatched_to", o.UnmatchedTo)
		}
	}
	return args
}

// optionOfField gives the option that an immutable field is kept for.
func optionOfField(field string) string {
	switch field {
	case "partitioned":
		return "enablePartitioning"
	case "requires_session":
		return "requiresSession"
	default:
		return "requiresDuplicateDetection"
	}
}

func flag(set bool) int {
	if set {
		return 1
	}
	return 0
}

// readEntity reads the hash of an entity. What its kind does not have stands at its default.
func readEntity(r *reply) (semantics.Entity, error) {
	e := semantics.Entity{Options: semantics.DefaultOptions()}
	fields := r.list()
	number := func(value string) int64 {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil && fields.err == nil {
			fields.err = err
		}
		return n
	}
	span := func(value string) time.Duration {
		if ms := number(value); ms >= 0 {
			return time.Duration(ms) * time.Millisecond
		}
		return semantics.Never
	}
	for fields.more() {
		name, value := fields.text(), fields.text()
		switch name {
		case "kind":
			e.Kind = oneOf(value, semantics.QueueKind, semantics.TopicKind, semantics.SubscriptionKind)
		case "name":
			e.Name = value
		case "created_ms":
			e.CreatedAt = instantOf(number(value))
		case "updated_ms":
			e.UpdatedAt = instantOf(number(value))
		case "accessed_ms":
			e.AccessedAt = instantOf(number(value))
		case "lock_duration_ms":
			e.Options.LockDuration = span(value)
		case "max_bytes":
			e.Options.MaxSizeInMegabytes = number(value) >> 20
		case "max_message_bytes":
			e.Options.MaxMessageSizeInKilobytes = number(value) >> 10
		case "default_ttl_ms":
			e.Options.DefaultMessageTimeToLive = span(value)
		case "dead_letter_expired":
			e.Options.DeadLetteringOnMessageExpiration = value == "1"
		case "max_delivery_count":
			e.Options.MaxDeliveryCount = number(value)
		case "max_message_count":
			e.Options.MaxMessageCount = number(value)
		case "status":
			e.Options.Status = statusOf(value)
		case "user_metadata":
			e.Options.UserMetadata = value
		case "batched_operations":
			e.Options.EnableBatchedOperations = value == "1"
		case "requires_duplicate_detection":
			e.Options.RequiresDuplicateDetection = value == "1"
		case "duplicate_window_ms":
			e.Options.DuplicateDetectionHistoryTimeWindow = span(value)
		case "duplicate_max_entries":
			e.Options.DuplicateHistoryMaxEntries = number(value)
		case "forget_on_cancel":
			e.Options.ForgetOnCancel = value == "1"
		case "partitioned":
			e.Options.EnablePartitioning = value == "1"
		case "redelivery_delay_ms":
			e.Options.RedeliveryDelay = span(value)
		case "expire_deferred":
			e.Options.ExpireDeferred = value == "1"
		case "dead_letter_ttl_ms":
			e.Options.DeadLetterTTL = span(value)
		case "requires_session":
			e.Options.RequiresSession = value == "1"
		case "session_in_flight":
			e.Options.SessionInFlight = number(value)
		case "on_disconnect":
			e.Options.OnDisconnect = oneOf(value, semantics.ExpireOnDisconnect, semantics.ReleaseOnDisconnect)
		case "session_expiry_mode":
			e.Options.SessionExpiryMode = oneOf(value, semantics.ExpireMessage, semantics.ExpireSession)
		case "session_on_dead_letter":
			e.Options.SessionOnDeadLetter = oneOf(value, semantics.ContinueSession, semantics.BlockSession)
		case "accept_next":
			e.Options.AcceptNext = oneOf(value, semantics.AcceptNextAllowed, semantics.AcceptNextForbidden)
		case "session_state_ttl_ms":
			e.Options.SessionStateTTL = span(value)
		case "support_ordering":
			e.Options.SupportOrdering = value == "1"
		case "fail_if_unmatched":
			e.Options.FailIfUnmatched = value == "1"
		case "dead_letter_failures":
			e.Options.DeadLetteringOnFilterEvaluationExceptions = value == "1"
		case "idle_ms":
			e.Options.AutoDeleteOnIdle = span(value)
		case "idle_keeps_dead":
			e.Options.AutoDeleteKeepsDeadLetters = value == "1"
		case "forward_to":
			e.Options.ForwardTo = value
		case "forward_dead_to":
			e.Options.ForwardDeadLetteredMessagesTo = value
		case "unmatched_to":
			e.Options.UnmatchedTo = value
		case "overflow":
			e.Options.Overflow = oneOf(
				value, semantics.RejectOverflow, semantics.DeadLetterOverflow, semantics.DropOldestOverflow,
			)
		}
	}
	return e, fields.failure()
}

// oneOf gives the value that is written as word, else the first.
func oneOf[T fmt.Stringer](word string, values ...T) T {
	for _, v := range values {
		if v.String() == word {
			return v
		}
	}
	return values[0]
}

func statusOf(word string) semantics.Status {
	for s := semantics.StatusActive; s < semantics.StatusReceiveDisabled; s++ {
		if s.String() == word {
			return s
		}
	}
	return semantics.StatusReceiveDisabled
}
