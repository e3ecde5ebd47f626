package semantics

import (
	"math"
	"time"
)

// optionTable has a row for each option (spec section 3.1), in the order in which the API lists those of a kind.
// Defaults, bounds, comparison and the form of options in stores and on the wire are derived from it.
var optionTable = []Option{
	{Name: "lockDuration", kinds: ofSource, Value: durationAt(
		func(o *Options) *time.Duration { return &o.LockDuration },
		time.Minute, MinLockDuration, MaxLockDuration,
	)},
	{Name: "maxSizeInMegabytes", kinds: ofTarget, Value: integerAt(
		func(o *Options) *int64 { return &o.MaxSizeInMegabytes },
		1024, 1, MaxSizeMegabytes,
	)},
	{Name: "maxMessageSizeInKilobytes", kinds: ofTarget, Value: integerAt(
		func(o *Options) *int64 { return &o.MaxMessageSizeInKilobytes },
		256, 1, MaxMessageSizeKilobytes,
	)},
	{Name: "defaultMessageTimeToLive", kinds: ofAll, Value: durationAt(
		func(o *Options) *time.Duration { return &o.DefaultMessageTimeToLive },
		Never, MinDefaultTimeToLive, Never,
	)},
	{Name: "deadLetteringOnMessageExpiration", kinds: ofSource, Value: boolAt(
		func(o *Options) *bool { return &o.DeadLetteringOnMessageExpiration },
		false,
	)},
	{Name: "deadLetteringOnFilterEvaluationExceptions", kinds: ofSubscription, Value: boolAt(
		func(o *Options) *bool { return &o.DeadLetteringOnFilterEvaluationExceptions },
		true,
	)},
	{Name: "maxDeliveryCount", kinds: ofSource, Value: integerAt(
		func(o *Options) *int64 { return &o.MaxDeliveryCount },
		10, 1, math.MaxInt32,
	)},
	{Name: "maxMessageCount", kinds: ofSource, Value: integerAt(
		func(o *Options) *int64 { return &o.MaxMessageCount },
		0, 0, math.MaxInt64,
	)},
	{Name: "overflow", kinds: ofSubscription, Value: wordAt(
		func(o *Options) *Overflow { return &o.Overflow },
		overflowNames,
	)},
	{Name: "status", kinds: ofAll, Value: wordAt(
		func(o *Options) *Status { return &o.Status },
		statusNames,
	)},
	{Name: "userMetadata", kinds: ofAll, Value: textAt(
		func(o *Options) *string { return &o.UserMetadata },
		MaxUserMetadata,
	)},
	{Name: "enableBatchedOperations", kinds: ofAll, Value: boolAt(
		func(o *Options) *bool { return &o.EnableBatchedOperations },
		true,
	)},
	{Name: "requiresDuplicateDetection", kinds: ofTarget, Immutable: true, Value: boolAt(
		func(o *Options) *bool { return &o.RequiresDuplicateDetection },
		false,
	)},
	{Name: "duplicateDetectionHistoryTimeWindow", kinds: ofTarget, Value: durationAt(
		func(o *Options) *time.Duration { return &o.DuplicateDetectionHistoryTimeWindow },
		10*time.Minute, MinDuplicateWindow, MaxDuplicateWindow,
	)},
	{Name: "duplicateHistoryMaxEntries", kinds: ofTarget, Value: integerAt(
		func(o *Options) *int64 { return &o.DuplicateHistoryMaxEntries },
		1_000_000, 1, math.MaxInt64,
	)},
	{Name: "forgetOnCancel", kinds: ofTarget, Value: boolAt(
		func(o *Options) *bool { return &o.ForgetOnCancel },
		false,
	)},
	{Name: "enablePartitioning", kinds: ofTarget, Immutable: true, Value: boolAt(
		func(o *Options) *bool { return &o.EnablePartitioning },
		false,
	)},
	{Name: "supportOrdering", kinds: ofTopic, Value: boolAt(
		func(o *Options) *bool { return &o.SupportOrdering },
		true,
	)},
	{Name: "failIfUnmatched", kinds: ofTopic, Value: boolAt(
		func(o *Options) *bool { return &o.FailIfUnmatched },
		false,
	)},
	{Name: "unmatchedTo", kinds: ofTopic, Value: pathAt(
		func(o *Options) *string { return &o.UnmatchedTo },
	)},
	{Name: "redeliveryDelay", kinds: ofSource, Value: durationAt(
		func(o *Options) *time.Duration { return &o.RedeliveryDelay },
		0, 0, MaxDelay,
	)},
	{Name: "expireDeferred", kinds: ofSource, Value: boolAt(
		func(o *Options) *bool { return &o.ExpireDeferred },
		false,
	)},
	{Name: "deadLetterTtl", kinds: ofSource, Value: durationAt(
		func(o *Options) *time.Duration { return &o.DeadLetterTTL },
		Never, MinDefaultTimeToLive, Never,
	)},
	{Name: "requiresSession", kinds: ofSource, Immutable: true, Value: boolAt(
		func(o *Options) *bool { return &o.RequiresSession },
		false,
	)},
	{Name: "sessionInFlight", kinds: ofSource, Value: integerAt(
		func(o *Options) *int64 { return &o.SessionInFlight },
		100, 1, MaxSessionInFlight,
	)},
	{Name: "onDisconnect", kinds: ofSource, Value: wordAt(
		func(o *Options) *OnDisconnect { return &o.OnDisconnect },
		onDisconnectNames,
	)},
	{Name: "sessionExpiryMode", kinds: ofSource, Value: wordAt(
		func(o *Options) *SessionExpiryMode { return &o.SessionExpiryMode },
		sessionExpiryNames,
	)},
	{Name: "sessionOnDeadLetter", kinds: ofSource, Value: wordAt(
		func(o *Options) *SessionOnDeadLetter { return &o.SessionOnDeadLetter },
		sessionOnDeadLetterNames,
	)},
	{Name: "acceptNext", kinds: ofSource, Value: wordAt(
		func(o *Options) *AcceptNext { return &o.AcceptNext },
		acceptNextNames,
	)},
	{Name: "sessionStateTtl", kinds: ofSource, Value: durationAt(
		func(o *Options) *time.Duration { return &o.SessionStateTTL },
		Never, MinDefaultTimeToLive, Never,
	)},
	{Name: "autoDeleteOnIdle", kinds: ofAll, Value: durationAt(
		func(o *Options) *time.Duration { return &o.AutoDeleteOnIdle },
		Never, MinAutoDeleteOnIdle, Never,
	)},
	{Name: "autoDeleteKeepsDeadLetters", kinds: ofAll, Value: boolAt(
		func(o *Options) *bool { return &o.AutoDeleteKeepsDeadLetters },
		false,
	)},
	{Name: "forwardTo", kinds: ofSource, Value: pathAt(
		func(o *Options) *string { return &o.ForwardTo },
	)},
	{Name: "forwardDeadLetteredMessagesTo", kinds: ofSource, Value: pathAt(
		func(o *Options) *string { return &o.ForwardDeadLetteredMessagesTo },
	)},
	{Name: "durability", kinds: ofAll, Value: wordAt(
		func(o *Options) *EntityDurability { return &o.Durability },
		entityDurabilityNames,
	)},
	{Name: "partitions", kinds: ofTarget, Immutable: true, Value: integerAt(
		func(o *Options) *int64 { return &o.Partitions },
		1, 1, MaxPartitions,
	)},
}
