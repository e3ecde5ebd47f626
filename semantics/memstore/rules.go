package memstore

import (
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/sidebus/sidebus/semantics"
)

// CreateRule implements semantics.Topics.
func (s *Store) CreateRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	sub, now, unlock, err := s.openKind(ctx, semantics.SubscriptionKind, subscription)
	defer unlock()
	if err != nil {
		return semantics.Rule{}, err
	}
	if _, taken := sub.rules[semantics.Fold(rule.Name)]; taken {
		return semantics.Rule{}, semantics.RuleExists(sub.name, rule.Name)
	}
	if err := s.checkRules(sub.topic, rule); err != nil {
		return semantics.Rule{}, err
	}
	sub.routesChanged()
	sub.accessedAt = now // IDLE-4
	return sub.addRule(rule, now), nil
}

// ReplaceRule implements semantics.Topics.
func (s *Store) ReplaceRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	sub, old, unlock, err := s.openRule(ctx, subscription, rule.Name)
	defer unlock()
	if err != nil {
		return semantics.Rule{}, err
	}
	delete(sub.rules, semantics.Fold(rule.Name)) // it does not count
	if err := s.checkRules(sub.topic, rule); err != nil {
		sub.rules[semantics.Fold(rule.Name)] = old
		return semantics.Rule{}, err
	}
	sub.routesChanged()
	sub.used(s.now()) // IDLE-4
	return sub.addRule(rule, old.CreatedAt), nil
}

// addRule keeps a rule of its own and returns another copy of it.
func (q *queue) addRule(rule semantics.Rule, now time.Time) semantics.Rule {
	rule.CreatedAt = now
	q.rules[semantics.Fold(rule.Name)] = cloneRule(rule)
	return cloneRule(rule)
}

// GetRule implements semantics.Topics.
func (s *Store) GetRule(ctx context.Context, subscription, name string) (semantics.Rule, error) {
	_, rule, unlock, err := s.openRule(ctx, subscription, name)
	defer unlock()
	return cloneRule(rule), err
}

// DeleteRule implements semantics.Topics.
func (s *Store) DeleteRule(ctx context.Context, subscription, name string) error {
	sub, _, unlock, err := s.openRule(ctx, subscription, name)
	defer unlock()
	if err != nil {
		return err
	}
	delete(sub.rules, semantics.Fold(name))
	sub.routesChanged()
	sub.used(s.now()) // IDLE-4
	return nil
}

func (s *Store) openRule(ctx context.Context, subscription, name string) (*queue, semantics.Rule, func(), error) {
	sub, _, unlock, err := s.openKind(ctx, semantics.SubscriptionKind, subscription)
	if err != nil {
		return nil, semantics.Rule{}, unlock, err
	}
	rule, ok := sub.rules[semantics.Fold(name)]
	if !ok {
		return nil, rule, unlock, semantics.RuleUnknown(sub.name, name)
	}
	return sub, rule, unlock, nil
}

// ListRules implements semantics.Topics.
func (s *Store) ListRules(
	ctx context.Context, subscription, after string, limit int,
) (page []semantics.Rule, more bool, err error) {
	sub, _, unlock, err := s.openKind(ctx, semantics.SubscriptionKind, subscription)
	defer unlock()
	if err != nil {
		return nil, false, err
	}
	for _, name := range slices.Sorted(maps.Keys(sub.rules)) {
		if name <= after {
			continue
		}
		if len(page) == limit {
			return page, true, nil
		}
		page = append(page, cloneRule(sub.rules[name]))
	}
	return page, false, nil
}

// countFilters returns how many of the rules have an SQL filter, and how many a correlation filter.
func countFilters(rules iter.Seq[semantics.Rule]) (sql, correlations int) {
	for rule := range rules {
		switch {
		case rule.Filter.SQL != nil:
			sql++
		case rule.Filter.Correlation != nil:
			correlations++
		}
	}
	return sql, correlations
}

// cloneRule returns a rule that shares nothing with the one given.
func cloneRule(rule semantics.Rule) semantics.Rule {
	rule.Filter.SQL, rule.Action = cloneText(rule.Filter.SQL), cloneText(rule.Action)
	if filter := rule.Filter.Correlation; filter != nil {
		c := *filter
		for _, field := range []**string{
			&c.ContentType, &c.CorrelationID, &c.MessageID, &c.ReplyTo, &c.ReplyToSessionID, &c.SessionID, &c.Subject,
			&c.To,
		} {
			*field = cloneValue(*field)
		}
		c.Properties = maps.Clone(c.Properties)
		rule.Filter.Correlation = &c
	}
	return rule
}

func cloneText(text *semantics.SQLText) *semantics.SQLText {
	text = cloneValue(text)
	if text != nil {
		text.Parameters = maps.Clone(text.Parameters)
	}
	return text
}

func cloneValue[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
