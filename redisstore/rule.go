package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/semantics"
)

// A rule is stored in the form of lua/lib/topic/rule_member.lua: "<subscription>\0<rule>\0<letter><created,
// ms>:<blob>", both names folded.

// CreateRule implements semantics.Topics.
func (s *Store) CreateRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	return s.putRule(ctx, "create_rule", subscription, rule)
}

// ReplaceRule implements semantics.Topics.
func (s *Store) ReplaceRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	return s.putRule(ctx, "replace_rule", subscription, rule)
}

func (s *Store) putRule(
	ctx context.Context, script, subscription string, rule semantics.Rule,
) (semantics.Rule, error) {
	blob, err := encodeRule(rule)
	if err != nil {
		return semantics.Rule{}, err
	}
	topic, name, _ := semantics.SplitSubscription(subscription)
	limits := s.options.TopicLimits
	r, err := s.run(
		ctx, script, s.keys(subscription), s.now(), semantics.Fold(name), semantics.Fold(rule.Name),
		ruleLetter(rule), blob, limits.sqlFilters(), limits.correlationFilters(), newMark(),
	)
	if err != nil {
		return semantics.Rule{}, err
	}
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return semantics.Rule{}, semantics.NotFound(subscription)
	case semantics.RuleAlreadyExists:
		return semantics.Rule{}, semantics.RuleExists(subscription, rule.Name)
	case semantics.RuleNotFound:
		return semantics.Rule{}, semantics.RuleUnknown(subscription, rule.Name)
	case semantics.QuotaExceeded:
		return semantics.Rule{}, limits.over(topic, r)
	default: // OK
		rule, err = decodeRule(blob) // so that it shares no memory with the caller's
		rule.CreatedAt = r.instant()
		return rule, cmp.Or(err, r.failure())
	}
}

// GetRule implements semantics.Topics.
func (s *Store) GetRule(ctx context.Context, subscription, name string) (semantics.Rule, error) {
	_, of, _ := semantics.SplitSubscription(subscription)
	prefix := semantics.Fold(of) + "\x00" + semantics.Fold(name)
	rules, err := s.rulesBetween(ctx, subscription, prefix+"\x00", prefix+"\x01", 1)
	if err != nil {
		return semantics.Rule{}, err
	}
	if len(rules) == 0 {
		return semantics.Rule{}, semantics.RuleUnknown(subscription, name)
	}
	return rules[0], nil
}

// ListRules implements semantics.Topics.
func (s *Store) ListRules(ctx context.Context, subscription, after string, limit int) ([]semantics.Rule, bool, error) {
	_, of, _ := semantics.SplitSubscription(subscription)
	prefix := semantics.Fold(of)
	from := prefix + "\x00"
	if after != "" {
		from += after + "\x01"
	}
	rules, err := s.rulesBetween(ctx, subscription, from, prefix+"\x01", limit+1)
	if err != nil || len(rules) <= limit {
		return rules, false, err
	}
	return rules[:limit], true, nil
}

// rulesBetween reads the rules of a subscription whose stored form is not before the first bound and before the second.
func (s *Store) rulesBetween(ctx context.Context, subscription, from, to string, limit int) ([]semantics.Rule, error) {
	r, err := s.run(ctx, "list_rules", s.keys(subscription), from, to, limit)
	if err != nil {
		return nil, err
	}
	if r.status != "OK" {
		return nil, semantics.NotFound(subscription)
	}
	var rules []semantics.Rule
	for r.more() {
		_, rule, err := readRule(r.text())
		if err != nil {
			return nil, err
		}
		rules = append(rules, rule)
	}
	return rules, r.failure()
}

// readRule reads a rule from its stored form, and the folded name of its subscription.
func readRule(member string) (subscription string, rule semantics.Rule, err error) {
	parts := strings.SplitN(member, "\x00", 3)
	if len(parts) < 3 || parts[2] == "" {
		return "", rule, unreadableRule(fmt.Errorf("no two names"))
	}
	created, blob, _ := strings.Cut(parts[2][1:], ":")
	ms, err := strconv.ParseInt(created, 10, 64)
	if err != nil {
		return "", rule, unreadableRule(err)
	}
	rule, err = decodeRule(blob)
	rule.CreatedAt = instantOf(ms)
	return parts[0], rule, err
}

// DeleteRule implements semantics.Topics.
func (s *Store) DeleteRule(ctx context.Context, subscription, name string) error {
	_, of, _ := semantics.SplitSubscription(subscription)
	r, err := s.run(
		ctx, "delete_rule", s.keys(subscription), s.now(), semantics.Fold(of), semantics.Fold(name), newMark(),
	)
	if err != nil {
		return err
	}
	switch semantics.Code(r.status) {
	case semantics.EntityNotFound:
		return semantics.NotFound(subscription)
	case semantics.RuleNotFound:
		return semantics.RuleUnknown(subscription, name)
	default:
		return nil
	}
}

// maxRoutesRules is how many rules one script reads, so that it stays short.
const maxRoutesRules = 500

// Routes implements semantics.Topics. If one script does not return all, further ones follow; if the routes change
// meanwhile, it begins again.
func (s *Store) Routes(ctx context.Context, topic string) (semantics.Routes, error) {
	for {
		routes, changed, err := s.readRoutes(ctx, topic)
		if err != nil || !changed {
			return routes, err
		}
	}
}

// Roster implements semantics.Topics.
func (s *Store) Roster(ctx context.Context, topic string) (semantics.Routes, error) {
	r, err := s.run(ctx, "routes", s.keys(topic), "", 0)
	if err != nil {
		return semantics.Routes{}, err
	}
	if r.status != "OK" {
		return semantics.Routes{}, semantics.NotFound(topic)
	}
	version, unmatchedTo, subscriptions := r.number(), r.text(), r.list()
	roster := semantics.Routes{
		Version: version, Subscriptions: readSubscriptions(subscriptions), KeepsUnmatched: unmatchedTo != "",
	}
	r.adopt(subscriptions)
	return roster, r.failure()
}

// SetVersion implements semantics.Topics.
func (s *Store) SetVersion(ctx context.Context, topic string, from, to int64) error {
	r, err := s.run(ctx, "set_version", s.keys(topic), from, to)
	switch {
	case err != nil:
		return err
	case r.status == "ROUTES_CHANGED":
		return semantics.ErrRoutesChanged
	case r.status != "OK":
		return semantics.NotFound(topic)
	default:
		return nil
	}
}

// Level implements semantics.Topics.
func (*Store) Level(context.Context, string) error { return nil }

func (s *Store) readRoutes(ctx context.Context, topic string) (routes semantics.Routes, changed bool, err error) {
	rules, after := map[string][]semantics.Rule{}, ""
	for first := true; ; first = false {
		r, err := s.run(ctx, "routes", s.keys(topic), after, maxRoutesRules)
		if err != nil {
			return semantics.Routes{}, false, err
		}
		if r.status != "OK" {
			return semantics.Routes{}, false, semantics.NotFound(topic)
		}
		version, unmatchedTo, subscriptions, members := r.number(), r.text(), r.list(), r.list()
		if first {
			routes = semantics.Routes{
				Version:        version,
				Subscriptions:  readSubscriptions(subscriptions),
				KeepsUnmatched: unmatchedTo != "",
			}
		}
		r.adopt(subscriptions)
		if err := r.failure(); err != nil {
			return semantics.Routes{}, false, err
		}
		if version != routes.Version {
			return semantics.Routes{}, true, nil
		}
		read := 0
		for ; members.more(); read++ {
			after = members.text()
			subscription, rule, err := readRule(after)
			if err != nil {
				return semantics.Routes{}, false, err
			}
			rules[subscription] = append(rules[subscription], rule)
		}
		if err := members.failure(); err != nil {
			return semantics.Routes{}, false, err
		}
		if read < maxRoutesRules {
			break
		}
	}
	for i := range routes.Subscriptions {
		routes.Subscriptions[i].Rules = rules[routes.Subscriptions[i].Subscription]
	}
	return routes, false, nil
}
