package entities

import (
	"errors"
	"fmt"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

// Set are entities as they are to be, each name once, in the order of their file. Subscriptions come after their topic.
type Set struct {
	Entities []*Entity
	Notes    []string // what the file says besides and means nothing here

	byKey map[string]*Entity
}

// Entity is a queue, topic or subscription as it is to be.
type Entity struct {
	Resource    string
	Description client.Description // with the options that are given, and no others
	// a subscription has these rules and no others, maybe none; otherwise nothing is said about them
	HasRules bool

	node   yamlfile.Node            // where it stands; that of an entity from elsewhere is empty
	places map[string]yamlfile.Node // of its options, and of its rules as "rules[0]"
}

// Rules are the rules of a subscription.
func (e *Entity) Rules() []*sidebusv1.Rule {
	if s, ok := e.Description.(*sidebusv1.Subscription); ok {
		return s.GetRules()
	}
	return nil
}

// Count returns how many entities of each kind there are.
func (s *Set) Count() (queues, topics, subscriptions int) {
	for _, e := range s.Entities {
		switch client.Kind(e.Resource) {
		case semantics.TopicKind:
			topics++
		case semantics.SubscriptionKind:
			subscriptions++
		default:
			queues++
		}
	}
	return queues, topics, subscriptions
}

// keyOf returns what must be unique: queues and topics share one name space (ENT-2).
func keyOf(resource string) string {
	switch client.Kind(resource) {
	case semantics.SubscriptionKind:
		return semantics.Fold(resource)
	case semantics.TopicKind:
		return destinationKey(resource[len("topics/"):])
	default:
		return destinationKey(client.Name(resource))
	}
}

// destinationKey is keyOf of what an option names, which is a queue or a topic.
func destinationKey(name string) string { return "/" + semantics.Fold(name) }

// find returns the entity with a key, nil if there is none.
func (s *Set) find(key string) *Entity { return s.byKey[key] }

func (s *Set) add(e *Entity) error {
	key := keyOf(e.Resource)
	if other := s.byKey[key]; other != nil {
		return e.node.Errorf("has the name of %s, which stands already at %s", other.Resource, other.node.Place)
	}
	if s.byKey == nil {
		s.byKey = map[string]*Entity{}
	}
	s.byKey[key] = e
	s.Entities = append(s.Entities, e)
	return nil
}

// located adds to a failure where in the file stands what it is about.
func (e *Entity) located(err error) error {
	if e.node.Place == "" {
		return fmt.Errorf("%s: %w", e.Resource, err)
	}
	node := e.node
	var failure *client.Failure
	if errors.As(err, &failure) {
		for _, part := range []string{
			"rules[" + failure.Details[semantics.DetailIndex] + "]",
			failure.Details[semantics.DetailField],
		} {
			if found, ok := e.places[part]; ok {
				node = found
				break
			}
		}
	}
	return fmt.Errorf("%s: %s: %w", node.Place, node.Name, err)
}
