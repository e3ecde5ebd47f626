package atom

import (
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// counted is an entity and its counts.
type counted struct {
	semantics.Entity
	semantics.Runtime

	host string // for the addresses of what it forwards to
}

// names of the descriptions by kind.
var descriptions = map[semantics.Kind]string{
	semantics.QueueKind: "QueueDescription", semantics.TopicKind: "TopicDescription",
	semantics.SubscriptionKind: "SubscriptionDescription",
}

// field is an element of a description. It is that of an option if there is one of its name.
type field struct {
	name  string
	write func(d *document, c *counted) // nil: it is an option
}

// option returns a field for each name of an option.
func option(names ...string) (fields []field) {
	for _, name := range names {
		fields = append(fields, field{name: name})
	}
	return fields
}

// always returns a field that Service Bus has and Sidebus does not, with the value that fits.
func always(name, text string) field {
	return field{name, func(d *document, _ *counted) { d.text(name, text) }}
}

var (
	sizeInBytes = field{"SizeInBytes", func(d *document, c *counted) { d.integer("SizeInBytes", c.SizeInBytes) }}
	total       = field{"MessageCount", func(d *document, c *counted) { d.integer("MessageCount", c.Total()) }}
	times       = field{"CreatedAt", func(d *document, c *counted) {
		d.time("CreatedAt", c.Entity.CreatedAt)
		d.time("UpdatedAt", c.Entity.UpdatedAt)
		d.time("AccessedAt", c.Entity.AccessedAt)
	}}
	counts        = field{"CountDetails", writeCounts}
	subscriptions = field{"SubscriptionCount", func(d *document, c *counted) {
		d.integer("SubscriptionCount", c.Subscriptions)
	}}
	available = always("EntityAvailabilityStatus", "Available")
	noExpress = always("EnableExpress", "false")
	noName    = always("IsAnonymousAccessible", "false")
)

// fieldsOf are the elements of descriptions in the order of Service Bus, on which some clients rely.
var fieldsOf = map[semantics.Kind][]field{
	semantics.QueueKind: join(
		option(
			"LockDuration", "MaxSizeInMegabytes", "RequiresDuplicateDetection", "RequiresSession",
			"DefaultMessageTimeToLive", "DeadLetteringOnMessageExpiration", "DuplicateDetectionHistoryTimeWindow",
			"MaxDeliveryCount", "EnableBatchedOperations",
		),
		[]field{sizeInBytes, total, noName}, option("Status", "ForwardTo", "UserMetadata"),
		[]field{times, always("SupportOrdering", "true"), counts},
		option("AutoDeleteOnIdle", "EnablePartitioning", "ForwardDeadLetteredMessagesTo"),
		[]field{available, noExpress}, option("MaxMessageSizeInKilobytes"),
	),
	semantics.TopicKind: join(
		option(
			"DefaultMessageTimeToLive", "MaxSizeInMegabytes", "RequiresDuplicateDetection",
			"DuplicateDetectionHistoryTimeWindow", "EnableBatchedOperations",
		),
		[]field{sizeInBytes, always("FilteringMessagesBeforePublishing", "false"), noName},
		option("Status", "UserMetadata"), []field{times}, option("SupportOrdering"), []field{counts, subscriptions},
		option("AutoDeleteOnIdle", "EnablePartitioning"),
		[]field{available, always("EnableSubscriptionPartitioning", "false"), noExpress},
		option("MaxMessageSizeInKilobytes"),
	),
	semantics.SubscriptionKind: join(
		option(
			"LockDuration", "RequiresSession", "DefaultMessageTimeToLive", "DeadLetteringOnMessageExpiration",
			"DeadLetteringOnFilterEvaluationExceptions",
		),
		[]field{total}, option("MaxDeliveryCount", "EnableBatchedOperations", "Status", "ForwardTo"),
		[]field{times}, option("UserMetadata"), []field{counts},
		option("AutoDeleteOnIdle", "ForwardDeadLetteredMessagesTo"), []field{available},
	),
}

func join(groups ...[]field) (all []field) {
	for _, group := range groups {
		all = append(all, group...)
	}
	return all
}

// writeCounts writes the counts of messages. The element has one attribute, from which the SDK for JavaScript learns
// the prefix.
func writeCounts(d *document, c *counted) {
	d.element("CountDetails", func() {
		for _, one := range []struct {
			name  string
			count int64
		}{
			{"ActiveMessageCount", c.Active},
			{"DeadLetterMessageCount", c.DeadLetter},
			{"ScheduledMessageCount", c.Scheduled},
			{"TransferMessageCount", c.Transfer},
			{"TransferDeadLetterMessageCount", c.TransferDeadLetter},
		} {
			d.integer("d2p1:"+one.name, one.count)
		}
	}, "xmlns:d2p1", countsNamespace)
}

// describe writes the description of an entity.
func (c *counted) describe(d *document) {
	d.description(descriptions[c.Kind], func() {
		for _, f := range fieldsOf[c.Kind] {
			if f.write != nil {
				f.write(d, c)
				continue
			}
			if text, isSet := c.option(f.name); isSet {
				d.text(f.name, text)
			}
		}
	})
}

// optionOf returns the option of an element.
func optionOf(name string) (semantics.Option, bool) {
	return semantics.OptionNamed(strings.ToLower(name[:1]) + name[1:])
}

// elementOf returns the element of an option.
func elementOf(option string) string { return strings.ToUpper(option[:1]) + option[1:] }

// option returns the text of an option. An empty one is not set.
func (c *counted) option(name string) (text string, isSet bool) {
	o, _ := optionOf(name)
	switch value := o.Value.(type) {
	case semantics.DurationOption:
		return formatDuration(*value.At(&c.Options)), true
	case semantics.IntegerOption:
		return formatInteger(*value.At(&c.Options)), true
	case semantics.BoolOption:
		return formatBool(*value.At(&c.Options)), true
	case semantics.WordOption:
		return formatWord(value.Words[value.Get(&c.Options)]), true
	case semantics.TextOption:
		text = *value.At(&c.Options)
		if value.IsPath && text != "" {
			text = "https://" + c.host + "/" + text
		}
		return text, text != ""
	default:
		return "", false
	}
}

// parseOptions returns the options of a description, and the names of those that are given. What is not an option is
// ignored: clients return what they have read.
func parseOptions(kind semantics.Kind, description *element) (options semantics.Options, given []string, err error) {
	options = semantics.DefaultOptions()
	for _, f := range fieldsOf[kind] {
		text, isGiven := description.textOf(f.name)
		o, isOption := optionOf(f.name)
		if !isGiven || !isOption || f.write != nil {
			continue
		}
		if err := parseOption(&options, o, strings.TrimSpace(text)); err != nil {
			return options, nil, err
		}
		given = append(given, o.Name)
	}
	return options, given, nil
}

func parseOption(options *semantics.Options, o semantics.Option, text string) (err error) {
	switch value := o.Value.(type) {
	case semantics.DurationOption:
		*value.At(options), err = parseDuration(o.Name, text)
	case semantics.IntegerOption:
		*value.At(options), err = parseInteger(o.Name, text)
	case semantics.BoolOption:
		*value.At(options), err = parseBool(o.Name, text)
	case semantics.WordOption:
		var word uint8
		word, err = parseWord(o.Name, text, value.Words)
		value.Set(options, word)
	case semantics.TextOption:
		if value.IsPath {
			text = pathOf(text)
		}
		*value.At(options) = text
	}
	return err
}

// changed returns the names of the options that an update sets: all that a description can have, so that those which
// are absent go back to their defaults (ENT-7). Those that cannot change stay, if they are absent.
func changed(kind semantics.Kind, given []string) []string {
	names := given
	for _, f := range fieldsOf[kind] {
		o, isOption := optionOf(f.name)
		if isOption && f.write == nil && !o.Immutable && !contains(given, o.Name) {
			names = append(names, o.Name)
		}
	}
	return names
}
