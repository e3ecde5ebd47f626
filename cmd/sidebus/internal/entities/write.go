package entities

import (
	"bytes"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/semantics"
)

// JSON returns a Set in the form that Read reads, in one line: {"entities":{"queues":[...],"topics":[...]}}.
func (s *Set) JSON() []byte {
	var queues, topics [][]byte
	below := map[string][][]byte{} // subscriptions by topic
	for _, e := range s.Entities {
		switch client.Kind(e.Resource) {
		case semantics.QueueKind:
			queues = append(queues, client.JSON(e.Description))
		case semantics.SubscriptionKind:
			text := client.JSON(e.Description)
			if e.HasRules && len(e.Rules()) == 0 {
				text = with(text, "rules", nil)
			}
			topic, _ := client.TopicOf(e.Resource)
			below[topic] = append(below[topic], text)
		default:
		}
	}
	for _, e := range s.Entities {
		if client.Kind(e.Resource) != semantics.TopicKind {
			continue
		}
		text := client.JSON(e.Description)
		if subscriptions := below[e.Resource]; subscriptions != nil {
			text = with(text, "subscriptions", subscriptions)
		}
		topics = append(topics, text)
	}
	document := []byte("{}")
	if queues != nil {
		document = with(document, "queues", queues)
	}
	if topics != nil {
		document = with(document, "topics", topics)
	}
	return append(append([]byte(`{"`+Key+`":`), document...), '}')
}

// with adds a list to an object.
func with(object []byte, key string, list [][]byte) []byte {
	object = object[:len(object)-1]
	if len(object) > 1 {
		object = append(object, ',')
	}
	object = append(append(object, `"`+key+`":[`...), bytes.Join(list, []byte(","))...)
	return append(object, "]}"...)
}

// WriteYAML writes a Set in the form that Read reads.
func (s *Set) WriteYAML(to io.Writer) error {
	top, err := yamlfile.FromJSON(s.JSON())
	if err != nil {
		return err
	}
	section := value(top, Key)
	for _, queue := range items(value(section, "queues")) {
		tidy(queue)
	}
	for _, topic := range items(value(section, "topics")) {
		tidy(topic)
		for _, subscription := range items(value(topic, "subscriptions")) {
			tidy(subscription)
		}
	}
	return yamlfile.Write(to, top)
}

// value returns the value of a key of a mapping, nil if there is none.
func value(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; mapping != nil && i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}

func items(list *yaml.Node) []*yaml.Node {
	if list == nil {
		return nil
	}
	return list.Content
}

// tidy rewrites an entity so that it is easier to read: numbers as numbers, durations as 30d, and no empty lists of
// values.
func tidy(entity *yaml.Node) {
	for _, option := range semantics.AllOptions() { // JSON has numbers of 64 bits as texts, because it may cut them
		_, isInteger := option.Value.(semantics.IntegerOption)
		if number := value(entity, option.Name); isInteger && number != nil {
			number.Tag, number.Style = "!!int", 0
		}
	}
	for i := 0; i+1 < len(entity.Content); i += 2 {
		if option, text := entity.Content[i].Value, entity.Content[i+1]; text.Kind == yaml.ScalarNode {
			text.Value = client.OptionText("queues/q", option, text.Value) // a queue has all durations that there are
		}
	}
	for _, rule := range items(value(entity, "rules")) {
		filter := value(rule, "filter")
		dropEmpty(value(filter, "sql"), "parameters")
		dropEmpty(value(filter, "correlation"), "properties")
		dropEmpty(value(value(rule, "action"), "sql"), "parameters")
	}
}

func dropEmpty(mapping *yaml.Node, key string) {
	if found := value(mapping, key); found == nil || len(found.Content) > 0 {
		return
	}
	for i := 0; i < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			mapping.Content = append(mapping.Content[:i], mapping.Content[i+2:]...)
			return
		}
	}
}
