package entities

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// userConfig is the key at the top of the Service Bus emulator's Config.json.
const userConfig = "UserConfig"

// emulatorDefaults are what the emulator takes for what its file does not say, where that is not what Sidebus takes.
var emulatorDefaults = map[string]string{
	"defaultMessageTimeToLive": "1h", "duplicateDetectionHistoryTimeWindow": "20s", "maxDeliveryCount": "3",
}

// window is the one option with values that the emulator permits and Sidebus does not: it goes down to 5 s there.
const window = "duplicateDetectionHistoryTimeWindow"

// pick returns the values of a mapping by their keys as they are listed; the file may write them in another case, as
// the emulator's own parser takes them. What is null is the same as absent.
func (r *reader) pick(n yamlfile.Node, keys ...string) (map[string]yamlfile.Node, error) {
	canonical := func(key string) string {
		at := slices.IndexFunc(keys, func(known string) bool { return strings.EqualFold(known, key) })
		if at < 0 {
			return ""
		}
		return keys[at]
	}
	fields, err := r.mapping(n, strings.Join(keys, ", "), func(key string) (bool, string) {
		return canonical(key) != "", "; keys are " + strings.Join(keys, ", ")
	})
	if err != nil {
		return nil, err
	}
	found := map[string]yamlfile.Node{}
	for _, field := range fields {
		key := canonical(field.Key)
		if other, twice := found[key]; twice {
			return nil, field.Errorf("stands already at %s", other.Place)
		}
		if !field.IsNull() {
			found[key] = field
		}
	}
	return found, nil
}

// need returns one of the values that pick has found.
func need(of yamlfile.Node, found map[string]yamlfile.Node, key string) (yamlfile.Node, error) {
	n, ok := found[key]
	if !ok {
		return n, of.Errorf("must have %s", key)
	}
	return n, nil
}

// eachOf reads the items of a list that pick may have found.
func eachOf(found map[string]yamlfile.Node, key string, read func(yamlfile.Node) error) error {
	if n, ok := found[key]; ok {
		return each(n, key, read)
	}
	return nil
}

// emulator reads Config.json.
func (r *reader) emulator(top yamlfile.Node) error {
	outer, err := r.pick(top, userConfig)
	if err != nil {
		return err
	}
	config, err := need(top, outer, userConfig)
	if err != nil {
		return err
	}
	parts, err := r.pick(config, "Namespaces", "Logging")
	if err != nil {
		return err
	}
	list, err := need(config, parts, "Namespaces")
	if err != nil {
		return err
	}
	namespaces, err := list.List("namespaces")
	if err != nil {
		return err
	}
	if len(namespaces) != 1 {
		return list.Errorf("has %d namespaces, must have one", len(namespaces))
	}
	if logging, ok := parts["Logging"]; ok {
		r.note(logging, "is ignored: the flags of serve say what is logged")
	}
	return r.emulatedNamespace(namespaces[0])
}

// note keeps what the user should know although it is not an error.
func (r *reader) note(n yamlfile.Node, format string, args ...any) {
	r.set.Notes = append(r.set.Notes, n.Errorf(format, args...).Error())
}

func (r *reader) emulatedNamespace(n yamlfile.Node) error {
	parts, err := r.pick(n, "Name", "Queues", "Topics")
	if err != nil {
		return err
	}
	if name, ok := parts["Name"]; ok {
		r.note(name, "is ignored: --namespace of serve says which one it is")
	}
	err = eachOf(parts, "Queues", func(item yamlfile.Node) error {
		_, _, err := r.emulated(item, &sidebusv1.Queue{}, "", "")
		return err
	})
	if err != nil {
		return err
	}
	return eachOf(parts, "Topics", func(item yamlfile.Node) error {
		topic, below, err := r.emulated(item, &sidebusv1.Topic{}, "", "Subscriptions")
		if err != nil {
			return err
		}
		return eachOf(
			below, "Subscriptions",
			func(item yamlfile.Node) error { return r.emulatedSubscription(topic, item) },
		)
	})
}

func (r *reader) emulatedSubscription(topic *Entity, n yamlfile.Node) error {
	subscription, below, err := r.emulated(n, &sidebusv1.Subscription{}, topic.Resource, "Rules")
	if err != nil {
		return err
	}
	err = eachOf(below, "Rules", func(item yamlfile.Node) error { return r.emulatedRule(subscription, item) })
	subscription.HasRules = len(subscription.Rules()) > 0 // an empty list is none: it gets $Default
	return err
}

// emulated reads an entity with its Name and Properties, and returns what stands there besides.
func (r *reader) emulated(
	n yamlfile.Node, d client.Description, topic, list string,
) (*Entity, map[string]yamlfile.Node, error) {
	keys := []string{"Name", "Properties"}
	if list != "" {
		keys = append(keys, list)
	}
	parts, err := r.pick(n, keys...)
	if err != nil {
		return nil, nil, err
	}
	var fields []yamlfile.Node
	if name, ok := parts["Name"]; ok {
		name.Key = "name"
		fields = append(fields, name)
	}
	if properties, ok := parts["Properties"]; ok {
		options, err := r.emulatedOptions(properties, d)
		if err != nil {
			return nil, nil, err
		}
		fields = append(fields, options...)
	}
	e, err := r.entity(n, d, topic, fields)
	if err != nil {
		return nil, nil, err
	}
	return e, parts, r.completeEmulated(e)
}

// emulatedOptions returns the properties of an entity under the names of the options. Beyond those that the emulator
// has, all of Sidebus may be given.
func (r *reader) emulatedOptions(n yamlfile.Node, d client.Description) ([]yamlfile.Node, error) {
	names := client.OptionNames(d)
	var keys []string
	for _, name := range names {
		keys = append(keys, strings.ToUpper(name[:1])+name[1:])
	}
	found, err := r.pick(n, keys...)
	if err != nil {
		return nil, err
	}
	var fields []yamlfile.Node
	for i, key := range keys {
		if field, ok := found[key]; ok {
			field.Key = names[i]
			fields = append(fields, field)
		}
	}
	return fields, nil
}

// completeEmulated sets the emulator's defaults on an entity.
func (r *reader) completeEmulated(e *Entity) error {
	for option, value := range emulatorDefaults {
		if has, _ := client.HasOption(e.Description)(option); !has || client.IsGiven(e.Description, option) {
			continue
		}
		if err := client.SetOption(e.Description, option, value); err != nil {
			return err
		}
	}
	given, ok := e.Description.(interface{ GetDuplicateDetectionHistoryTimeWindow() *durationpb.Duration })
	if ok && given.GetDuplicateDetectionHistoryTimeWindow().AsDuration() < semantics.MinDuplicateWindow {
		r.note(e.places[window], "is raised to %s, the least that Sidebus has", semantics.MinDuplicateWindow)
		return client.SetOption(e.Description, window, semantics.MinDuplicateWindow.String())
	}
	return nil
}

func (r *reader) emulatedRule(subscription *Entity, n yamlfile.Node) error {
	parts, err := r.pick(n, "Name", "Properties")
	if err != nil {
		return err
	}
	properties, err := need(n, parts, "Properties")
	if err != nil {
		return err
	}
	rule, err := r.emulatedDefinition(properties)
	if err != nil {
		return err
	}
	if name, ok := parts["Name"]; ok {
		if rule.Name, err = name.Plain(); err != nil {
			return err
		}
	}
	return subscription.addRule(n, rule)
}

// emulatedDefinition reads what a rule selects and changes.
func (r *reader) emulatedDefinition(n yamlfile.Node) (*sidebusv1.Rule, error) {
	parts, err := r.pick(n, "FilterType", "CorrelationFilter", "SqlFilter", "Action")
	if err != nil {
		return nil, err
	}
	filter, err := r.emulatedFilter(n, parts)
	if err != nil {
		return nil, err
	}
	rule := &sidebusv1.Rule{Filter: filter}
	action, ok := parts["Action"]
	if !ok {
		return rule, nil
	}
	sql, err := r.emulatedSQL(action)
	if sql.GetExpression() != "" {
		rule.Action = &sidebusv1.Rule_Action{Sql: sql}
	}
	return rule, err
}

// emulatedFilter reads the filter that FilterType says it is.
func (r *reader) emulatedFilter(n yamlfile.Node, parts map[string]yamlfile.Node) (*sidebusv1.Rule_Filter, error) {
	filterType, err := need(n, parts, "FilterType")
	if err != nil {
		return nil, err
	}
	kind, err := filterType.Plain()
	if err != nil {
		return nil, err
	}
	used, other := "SqlFilter", "CorrelationFilter"
	switch strings.ToLower(kind) {
	case "sql":
	case "correlation":
		used, other = other, used
	default:
		return nil, filterType.Errorf("is %q, must be Correlation or Sql", kind)
	}
	if unused, ok := parts[other]; ok {
		r.note(unused, "is ignored, since FilterType is %s", kind)
	}
	filter, err := need(n, parts, used)
	if err != nil {
		return nil, err
	}
	if used == "SqlFilter" {
		sql, err := r.emulatedSQL(filter)
		return &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_Sql{Sql: sql}}, err
	}
	correlation, err := r.emulatedCorrelation(filter)
	return &sidebusv1.Rule_Filter{Kind: &sidebusv1.Rule_Filter_Correlation{Correlation: correlation}}, err
}

func (r *reader) emulatedSQL(n yamlfile.Node) (*sidebusv1.Rule_Sql, error) {
	parts, err := r.pick(n, "SqlExpression")
	if err != nil {
		return nil, err
	}
	expression, ok := parts["SqlExpression"]
	if !ok {
		return &sidebusv1.Rule_Sql{}, nil
	}
	text, err := expression.Plain()
	return &sidebusv1.Rule_Sql{Expression: text}, err
}

// emulatedCorrelation reads a correlation filter. What is empty is not asked for, as with ForwardTo.
func (r *reader) emulatedCorrelation(n yamlfile.Node) (*sidebusv1.Rule_Correlation, error) {
	c := &sidebusv1.Rule_Correlation{}
	fields := map[string]**string{
		"ContentType": &c.ContentType, "CorrelationId": &c.CorrelationId, "Label": &c.Subject, "Subject": &c.Subject,
		"MessageId": &c.MessageId,
		"ReplyTo":   &c.ReplyTo, "ReplyToSessionId": &c.ReplyToSessionId, "SessionId": &c.SessionId, "To": &c.To,
	}
	parts, err := r.pick(
		n, "ContentType", "CorrelationId", "Label", "Subject", "MessageId", "ReplyTo", "ReplyToSessionId", "SessionId",
		"To", "Properties", "ApplicationProperties",
	)
	if err != nil {
		return nil, err
	}
	for key, field := range parts {
		to := fields[key]
		if to == nil {
			if c.Properties, err = r.values(field); err != nil {
				return nil, err
			}
			continue
		}
		text, err := field.Plain()
		if err != nil {
			return nil, err
		}
		if text != "" {
			*to = &text
		}
	}
	return c, nil
}
