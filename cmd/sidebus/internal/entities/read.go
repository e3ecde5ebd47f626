package entities

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Key is the key under which entities stand in a file.
const Key = "entities"

// maxValues bounds what a file may hold, so that a small one that refers to itself many times is not a large one.
const maxValues = 1_000_000

// times are what the sidecar says of an entity besides, and what is ignored on input.
var times = []string{"createdAt", "updatedAt", "accessedAt"}

// Read reads a file of entities: the emulator's Config.json, or queues and topics with or without the key "entities"
// above them. Beside that key there may be others that isOther knows; they are left alone.
func Read(top yamlfile.Node, isOther func(key string) bool) (*Set, error) {
	r := newReader()
	top = top.WithColumns()
	if top.IsNull() {
		return r.set, nil
	}
	keys := map[string]bool{}
	fields, err := top.Mapping("queues and topics", func(key string) (bool, string) {
		keys[key] = true
		return true, ""
	})
	switch {
	case err != nil:
		return nil, err
	case slices.ContainsFunc(fields, func(f yamlfile.Node) bool { return strings.EqualFold(f.Key, userConfig) }):
		return r.set, r.emulator(top)
	case !keys[Key]:
		return r.set, r.section(top)
	}
	for _, field := range fields {
		switch {
		case field.Key == Key:
			err = r.section(field)
		case !isOther(field.Key):
			err = fmt.Errorf("%s: unknown key %q beside %q", field.Place, field.Key, Key)
		}
		if err != nil {
			return nil, err
		}
	}
	return r.set, nil
}

// Section reads what stands under the key "entities".
func Section(n yamlfile.Node) (*Set, error) {
	r := newReader()
	return r.set, r.section(n.WithColumns())
}

// reader makes a Set of a file.
type reader struct {
	set  *Set
	left int // how many values may still come
}

func newReader() *reader { return &reader{set: &Set{}, left: maxValues} }

// mapping is Mapping that counts.
func (r *reader) mapping(n yamlfile.Node, what string, isKnown func(string) (bool, string)) ([]yamlfile.Node, error) {
	fields, err := n.Mapping(what, isKnown)
	if err != nil {
		return nil, err
	}
	if r.left -= 1 + len(fields); r.left < 0 {
		return nil, n.Errorf(
			"is one value too many; at most %d are read, those that are referred to again included", maxValues,
		)
	}
	return fields, nil
}

// each reads the items of a list, which may be absent.
func each(n yamlfile.Node, what string, read func(yamlfile.Node) error) error {
	if n.IsNull() {
		return nil
	}
	items, err := n.List(what)
	for _, item := range items {
		if err = read(item); err != nil {
			return err
		}
	}
	return err
}

func (r *reader) section(n yamlfile.Node) error {
	if n.IsNull() {
		return nil
	}
	fields, err := r.mapping(n, "queues and topics", yamlfile.OneOf("queues", "topics"))
	if err != nil {
		return err
	}
	for _, field := range fields {
		read := r.queue
		if field.Key == "topics" {
			read = r.topic
		}
		if err := each(field, field.Key, read); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) queue(n yamlfile.Node) error {
	fields, _, err := r.fields(n, &sidebusv1.Queue{}, "")
	if err != nil {
		return err
	}
	_, err = r.entity(n, &sidebusv1.Queue{}, "", fields)
	return err
}

func (r *reader) topic(n yamlfile.Node) error {
	fields, below, err := r.fields(n, &sidebusv1.Topic{}, "subscriptions")
	if err != nil {
		return err
	}
	topic, err := r.entity(n, &sidebusv1.Topic{}, "", fields)
	if err != nil || below == nil {
		return err
	}
	return each(*below, "subscriptions", func(item yamlfile.Node) error { return r.subscription(topic, item) })
}

func (r *reader) subscription(topic *Entity, n yamlfile.Node) error {
	fields, below, err := r.fields(n, &sidebusv1.Subscription{}, "rules")
	if err != nil {
		return err
	}
	subscription, err := r.entity(n, &sidebusv1.Subscription{}, topic.Resource, fields)
	if err != nil || below == nil || below.IsNull() {
		return err
	}
	subscription.HasRules = true
	return each(*below, "rules", func(item yamlfile.Node) error {
		rule := &sidebusv1.Rule{}
		if err := r.message(item, rule.ProtoReflect()); err != nil {
			return err
		}
		return subscription.addRule(item, rule)
	})
}

// fields returns the name and the options of an entity, and apart what stands under the key below.
func (r *reader) fields(
	n yamlfile.Node, d client.Description, below string,
) (own []yamlfile.Node, list *yamlfile.Node, err error) {
	isOption := client.HasOption(d)
	all, err := r.mapping(n, "name, options and so on", func(key string) (bool, string) {
		if key == "name" || below != "" && key == below || slices.Contains(times, key) {
			return true, ""
		}
		return isOption(key)
	})
	for _, field := range all {
		switch {
		case field.Key == below:
			list = &field
		case !slices.Contains(times, field.Key):
			own = append(own, field)
		}
	}
	return own, list, err
}

// entity adds an entity that has these fields. topic is the resource name of a subscription's.
func (r *reader) entity(n yamlfile.Node, d client.Description, topic string, fields []yamlfile.Node) (*Entity, error) {
	e := &Entity{Description: d, node: n, places: map[string]yamlfile.Node{}}
	for _, field := range fields {
		e.places[field.Key] = field
		if field.IsNull() {
			continue // the same as absent
		}
		text, err := field.Plain()
		switch {
		case err != nil:
		case field.Key == "name":
			e.Resource, err = resourceOf(field, d, topic, text)
		default:
			err = setOption(field, d, text)
		}
		if err != nil {
			return nil, err
		}
	}
	if e.Resource == "" {
		return nil, n.Errorf("must have a name")
	}
	return e, r.set.add(e)
}

// resourceOf checks a name, puts it into the description, and returns the name of the resource.
func resourceOf(field yamlfile.Node, d client.Description, topic, name string) (string, error) {
	var err error
	switch d := d.(type) {
	case *sidebusv1.Queue:
		d.Name, err = semantics.ParsePath(name)
		name = "queues/" + d.GetName()
	case *sidebusv1.Topic:
		d.Name, err = semantics.ParsePath(name)
		name = "topics/" + d.GetName()
	case *sidebusv1.Subscription:
		if strings.ContainsAny(name, `/\`) {
			return "", field.Errorf("is %q; only queues and topics may have a slash in their name", name)
		}
		d.Name = name
		_, err = semantics.ParseSourcePath(semantics.SubscriptionPath("topic", name))
		name = client.Subscription(topic, name)
	}
	return name, refused(field, err)
}

// refused returns what is wrong with a value.
func refused(field yamlfile.Node, err error) error {
	if err == nil {
		return nil
	}
	return field.Errorf("is refused: %s", semantics.AsError(err).Message)
}

func setOption(field yamlfile.Node, d client.Description, text string) error {
	if slices.Contains(semantics.DestinationOptions(), field.Key) && text != "" {
		path, err := semantics.ParsePath(text)
		if err != nil {
			return refused(field, err)
		}
		text = path
	}
	if err := client.SetOption(d, field.Key, text); err != nil {
		return field.Errorf("%s", err.Error())
	}
	return nil
}

// addRule adds a rule to a subscription.
func (e *Entity) addRule(n yamlfile.Node, rule *sidebusv1.Rule) error {
	s := e.Description.(*sidebusv1.Subscription)
	if rule.GetName() == "" {
		return n.Errorf("must have a name")
	}
	for i, other := range s.GetRules() {
		if semantics.Fold(other.GetName()) == semantics.Fold(rule.GetName()) {
			return n.Errorf("has the name of a rule that stands already at %s", e.places[rulePlace(i)].Place)
		}
	}
	e.places[rulePlace(len(s.GetRules()))] = n
	s.Rules = append(s.Rules, rule)
	return nil
}

func rulePlace(i int) string { return fmt.Sprintf("rules[%d]", i) }
