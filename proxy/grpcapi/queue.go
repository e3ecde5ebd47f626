package grpcapi

import (
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// optionsOf gives the options of a queue with defaults for those that are absent, and the names of those that are not.
func optionsOf(q *sidebusv1.Queue) (options semantics.Options, given []string, err error) {
	options = semantics.DefaultOptions()
	if q == nil {
		return options, nil, nil
	}
	if err := refuseUnknown("queue", q); err != nil {
		return options, nil, err
	}
	durations := []struct {
		name string
		from *durationpb.Duration
		to   *time.Duration
	}{
		{"lockDuration", q.GetLockDuration(), &options.LockDuration},
		{"defaultMessageTimeToLive", q.GetDefaultMessageTimeToLive(), &options.DefaultMessageTimeToLive},
		{"duplicateDetectionHistoryTimeWindow", q.GetDuplicateDetectionHistoryTimeWindow(), &options.DuplicateDetectionHistoryTimeWindow},
		{"redeliveryDelay", q.GetRedeliveryDelay(), &options.RedeliveryDelay},
		{"deadLetterTtl", q.GetDeadLetterTtl(), &options.DeadLetterTTL},
		{"sessionStateTtl", q.GetSessionStateTtl(), &options.SessionStateTTL},
	}
	for _, d := range durations {
		if d.from == nil {
			continue
		}
		if *d.to, err = duration(d.name, d.from); err != nil {
			return options, nil, err
		}
		given = append(given, d.name)
	}
	numbers := []struct {
		name string
		from *int64
		to   *int64
	}{
		{"maxSizeInMegabytes", widened(q.MaxSizeInMegabytes), &options.MaxSizeInMegabytes},
		{"maxMessageSizeInKilobytes", widened(q.MaxMessageSizeInKilobytes), &options.MaxMessageSizeInKilobytes},
		{"maxDeliveryCount", widened(q.MaxDeliveryCount), &options.MaxDeliveryCount},
		{"maxMessageCount", q.MaxMessageCount, &options.MaxMessageCount},
		{"duplicateHistoryMaxEntries", q.DuplicateHistoryMaxEntries, &options.DuplicateHistoryMaxEntries},
		{"sessionInFlight", widened(q.SessionInFlight), &options.SessionInFlight},
	}
	for _, n := range numbers {
		if n.from != nil {
			*n.to, given = *n.from, append(given, n.name)
		}
	}
	flags := []struct {
		name string
		from *bool
		to   *bool
	}{
		{"deadLetteringOnMessageExpiration", q.DeadLetteringOnMessageExpiration, &options.DeadLetteringOnMessageExpiration},
		{"enableBatchedOperations", q.EnableBatchedOperations, &options.EnableBatchedOperations},
		{"requiresDuplicateDetection", q.RequiresDuplicateDetection, &options.RequiresDuplicateDetection},
		{"forgetOnCancel", q.ForgetOnCancel, &options.ForgetOnCancel},
		{"enablePartitioning", q.EnablePartitioning, &options.EnablePartitioning},
		{"expireDeferred", q.ExpireDeferred, &options.ExpireDeferred},
		{"requiresSession", q.RequiresSession, &options.RequiresSession},
	}
	for _, f := range flags {
		if f.from != nil {
			*f.to, given = *f.from, append(given, f.name)
		}
	}
	for _, err := range []error{
		takeWord("status", q.Status, &options.Status, &given),
		takeWord("onDisconnect", q.OnDisconnect, &options.OnDisconnect, &given),
		takeWord("sessionExpiryMode", q.SessionExpiryMode, &options.SessionExpiryMode, &given),
		takeWord("sessionOnDeadLetter", q.SessionOnDeadLetter, &options.SessionOnDeadLetter, &given),
		takeWord("acceptNext", q.AcceptNext, &options.AcceptNext, &given),
	} {
		if err != nil {
			return options, nil, err
		}
	}
	if text := q.UserMetadata; text != nil {
		options.UserMetadata, given = *text, append(given, "userMetadata")
	}
	return options, given, nil
}

// takeWord translates a word of an option, nil for absent. The words of both sides have the same names and numbers.
func takeWord[From wordOnWire, To ~uint8](name string, from *From, to *To, given *[]string) error {
	if from == nil {
		return nil
	}
	words := (*from).Descriptor().Values()
	if words.ByNumber((*from).Number()) == nil {
		names := make([]protoreflect.Name, words.Len())
		for i := range names {
			names[i] = words.Get(i).Name()
		}
		return fieldError(name, "must be one of %v", names)
	}
	*to, *given = To((*from).Number()), append(*given, name)
	return nil
}

// wordOnWire is an enum of Queue.
type wordOnWire interface {
	~int32
	protoreflect.Enum
}

// wordFrom is the opposite of takeWord.
func wordFrom[To wordOnWire, From ~uint8](word From) *To {
	to := To(word)
	return &to
}

func widened(n *int32) *int64 {
	if n == nil {
		return nil
	}
	wide := int64(*n)
	return &wide
}

// queueFrom is the opposite of optionsOf, with all options present but those that say "no bound".
func queueFrom(q semantics.Entity) *sidebusv1.Queue { //nolint:gosec // the bounds of the options are within int32
	o := q.Options
	size, messageSize, deliveries := int32(o.MaxSizeInMegabytes), int32(o.MaxMessageSizeInKilobytes), int32(o.MaxDeliveryCount)
	inFlight := int32(o.SessionInFlight)
	queue := &sidebusv1.Queue{
		Name:                             q.Name,
		LockDuration:                     durationpb.New(o.LockDuration),
		MaxSizeInMegabytes:               &size,
		MaxMessageSizeInKilobytes:        &messageSize,
		DeadLetteringOnMessageExpiration: &o.DeadLetteringOnMessageExpiration,
		MaxDeliveryCount:                 &deliveries,
		Status:                           wordFrom[sidebusv1.Queue_Status](o.Status),
		UserMetadata:                     &o.UserMetadata,
		EnableBatchedOperations:          &o.EnableBatchedOperations,
		CreatedAt:                        timestamp(q.CreatedAt),
		UpdatedAt:                        timestamp(q.UpdatedAt),
		AccessedAt:                       timestamp(q.AccessedAt),

		RequiresDuplicateDetection:          &o.RequiresDuplicateDetection,
		DuplicateDetectionHistoryTimeWindow: durationpb.New(o.DuplicateDetectionHistoryTimeWindow),
		DuplicateHistoryMaxEntries:          &o.DuplicateHistoryMaxEntries,
		ForgetOnCancel:                      &o.ForgetOnCancel,
		EnablePartitioning:                  &o.EnablePartitioning,
		RedeliveryDelay:                     durationpb.New(o.RedeliveryDelay),
		ExpireDeferred:                      &o.ExpireDeferred,

		RequiresSession:     &o.RequiresSession,
		SessionInFlight:     &inFlight,
		OnDisconnect:        wordFrom[sidebusv1.Queue_OnDisconnect](o.OnDisconnect),
		SessionExpiryMode:   wordFrom[sidebusv1.Queue_SessionExpiryMode](o.SessionExpiryMode),
		SessionOnDeadLetter: wordFrom[sidebusv1.Queue_SessionOnDeadLetter](o.SessionOnDeadLetter),
		AcceptNext:          wordFrom[sidebusv1.Queue_AcceptNext](o.AcceptNext),
	}
	if o.DefaultMessageTimeToLive < semantics.Never {
		queue.DefaultMessageTimeToLive = durationpb.New(o.DefaultMessageTimeToLive)
	}
	if o.DeadLetterTTL < semantics.Never {
		queue.DeadLetterTtl = durationpb.New(o.DeadLetterTTL)
	}
	if o.SessionStateTTL < semantics.Never {
		queue.SessionStateTtl = durationpb.New(o.SessionStateTTL)
	}
	if o.MaxMessageCount > 0 {
		queue.MaxMessageCount = &o.MaxMessageCount
	}
	return queue
}

// notOptions are the fields of Queue that no update changes. A mask may name them, as one made from what was read does;
// that is ignored, as AIP-161 asks for.
var notOptions = []string{"name", "createdAt", "updatedAt", "accessedAt"}

// maskOf translates the paths of a field mask, in snake_case or lowerCamelCase, to names of options. A path that is no
// field of Queue stays as it is, for the Broker to refuse.
func maskOf(paths []string) []string {
	fields := (&sidebusv1.Queue{}).ProtoReflect().Descriptor().Fields()
	var names []string
	for _, path := range paths {
		name := strings.TrimSpace(path)
		if field := fields.ByTextName(name); field != nil {
			name = field.JSONName()
		}
		if name != "" && !slices.Contains(notOptions, name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
