package broker

import (
	"context"
	"strconv"

	"github.com/sidebus/sidebus/semantics"
)

// CreateRule adds a rule to a subscription (RULE-2) and returns it with its time, and warnings about what is hardly
// meant so. A rule is never stored unless it is valid (RULE-7). INVALID_ARGUMENT, FILTER_INVALID, ACTION_INVALID,
// ENTITY_NOT_FOUND, RULE_ALREADY_EXISTS, QUOTA_EXCEEDED.
func (b *Broker) CreateRule(
	ctx context.Context, subscription string, rule semantics.Rule,
) (semantics.Rule, []string, error) {
	return b.putRule(ctx, subscription, rule, b.store.CreateRule)
}

// ReplaceRule replaces filter and action of a rule in one step, so that each message is decided by the old or by the
// new ones (RULE-10). It returns what CreateRule returns. INVALID_ARGUMENT, FILTER_INVALID, ACTION_INVALID,
// ENTITY_NOT_FOUND, RULE_NOT_FOUND, QUOTA_EXCEEDED; nothing is changed on failure.
func (b *Broker) ReplaceRule(
	ctx context.Context, subscription string, rule semantics.Rule,
) (semantics.Rule, []string, error) {
	return b.putRule(ctx, subscription, rule, b.store.ReplaceRule)
}

func (b *Broker) putRule(
	ctx context.Context, subscription string, rule semantics.Rule,
	put func(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error),
) (semantics.Rule, []string, error) {
	path, err := parseEntityPath(semantics.SubscriptionKind, subscription)
	if err != nil {
		return semantics.Rule{}, nil, err
	}
	compiled, err := b.checkRule(rule)
	if err != nil {
		return semantics.Rule{}, nil, err
	}
	if err := b.admit(managementCost); err != nil {
		return semantics.Rule{}, nil, err
	}
	rule, err = put(ctx, path, rule)
	return rule, compiled.Warnings(), err
}

// GetRule reads a rule. INVALID_ARGUMENT, ENTITY_NOT_FOUND, RULE_NOT_FOUND.
func (b *Broker) GetRule(ctx context.Context, subscription, name string) (semantics.Rule, error) {
	path, err := b.openRule(subscription, name)
	if err != nil {
		return semantics.Rule{}, err
	}
	return b.store.GetRule(ctx, path, name)
}

// DeleteRule removes a rule. INVALID_ARGUMENT, ENTITY_NOT_FOUND, RULE_NOT_FOUND.
func (b *Broker) DeleteRule(ctx context.Context, subscription, name string) error {
	path, err := b.openRule(subscription, name)
	if err != nil {
		return err
	}
	return b.store.DeleteRule(ctx, path, name)
}

// ListRules returns one page of a subscription's rules in order of name and the token of the next page, "" after the
// last (RULE-9). Errors as ListEntities.
func (b *Broker) ListRules(
	ctx context.Context, subscription string, pageSize int, pageToken string,
) ([]semantics.Rule, string, error) {
	path, err := parseEntityPath(semantics.SubscriptionKind, subscription)
	if err != nil {
		return nil, "", err
	}
	size, after, err := readPage(pageSize, pageToken)
	if err != nil {
		return nil, "", err
	}
	if err := b.admit(managementCost); err != nil {
		return nil, "", err
	}
	rules, more, err := b.store.ListRules(ctx, path, after, size)
	fitting := semantics.Fitting(rules, semantics.MaxAnswerBytes, semantics.Rule.AnswerSize)
	if fitting < len(rules) { // parameters may be large
		rules, more = rules[:fitting], true
	}
	if err != nil || !more || len(rules) == 0 {
		return rules, "", err
	}
	return rules, pageTokenAfter(rules[len(rules)-1].Name), nil
}

func (b *Broker) openRule(subscription, name string) (string, error) {
	path, err := parseEntityPath(semantics.SubscriptionKind, subscription)
	if err != nil {
		return "", err
	}
	if err := semantics.ParseRuleName(name); err != nil {
		return "", err
	}
	return path, b.admit(managementCost)
}

// firstRules returns the rules that a new subscription begins with.
func (b *Broker) firstRules(rules []semantics.Rule) ([]semantics.Rule, error) {
	if len(rules) == 0 {
		return []semantics.Rule{{Name: semantics.DefaultRule, Filter: semantics.RuleFilter{All: true}}}, nil
	}
	names := map[string]bool{}
	for i, rule := range rules {
		if _, err := b.checkRule(rule); err != nil {
			return nil, semantics.AsError(err).With(semantics.DetailIndex, strconv.Itoa(i))
		}
		if names[semantics.Fold(rule.Name)] {
			return nil, semantics.InvalidField("rules", "has two rules of the name %q; rename one", rule.Name)
		}
		names[semantics.Fold(rule.Name)] = true
	}
	return rules, nil
}

func (b *Broker) checkRule(rule semantics.Rule) (semantics.CompiledRule, error) {
	if err := semantics.ParseRuleName(rule.Name); err != nil {
		return nil, err
	}
	return b.compile(rule)
}
