package grpcapi

import (
	"context"

	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/proxy/wire"
	"github.com/sidebus/sidebus/semantics"
)

// EnsureRule creates a rule if its name is free (ENT-6). If an existing rule is deleted before it can be compared,
// EnsureRule creates it again.
func (a *Admin) EnsureRule(
	ctx context.Context, request *sidebusv1.EnsureRuleRequest,
) (*sidebusv1.EnsureRuleResponse, error) {
	subscription, rule, err := ruleToEnsure(request)
	if err != nil {
		return nil, err
	}
	for {
		made, warnings, err := a.broker.CreateRule(ctx, subscription, rule)
		if err == nil {
			return &sidebusv1.EnsureRuleResponse{Created: true, Resource: wire.RuleFrom(made, warnings...)}, nil
		}
		if semantics.CodeOf(err) != semantics.RuleAlreadyExists {
			return nil, err
		}
		present, err := a.broker.GetRule(ctx, subscription, rule.Name)
		if semantics.CodeOf(err) == semantics.RuleNotFound && ctx.Err() == nil {
			continue
		}
		if err != nil {
			return nil, err
		}
		return &sidebusv1.EnsureRuleResponse{
			Resource:    wire.RuleFrom(present),
			Differences: ruleDifferences(present, rule),
		}, nil
	}
}

// ruleToEnsure translates the request of an ensure: the path of a subscription, and its rule.
func ruleToEnsure(request *sidebusv1.EnsureRuleRequest) (string, semantics.Rule, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return "", semantics.Rule{}, err
	}
	subscription, name, err := rulePath("name", request.GetName())
	if err != nil {
		return "", semantics.Rule{}, err
	}
	if err := checkSameName(name, request.GetRule()); err != nil {
		return "", semantics.Rule{}, err
	}
	rule, err := wire.RuleOf(request.GetRule())
	rule.Name = name
	return subscription, rule, err
}

func ruleDifferences(present, asked semantics.Rule) []*sidebusv1.Difference {
	var differences []*sidebusv1.Difference
	if is, wanted := filterText(present.Filter), filterText(asked.Filter); is != wanted {
		differences = append(differences, &sidebusv1.Difference{Option: "filter", Present: is, Asked: wanted})
	}
	if is, wanted := actionText(present.Action), actionText(asked.Action); is != wanted {
		differences = append(differences, &sidebusv1.Difference{Option: "action", Present: is, Asked: wanted})
	}
	return differences
}

// compareRules returns the differences between the rules of a subscription and the requested rules: rules that are
// missing, rules that differ, and rules that were not requested, such as $Default. It stops after MaxPageSize rules
// that were not requested; then it does not report missing rules.
func (a *Admin) compareRules(
	ctx context.Context, subscription string, asked []semantics.Rule,
) ([]*sidebusv1.Difference, error) {
	missing := make(map[string]semantics.Rule, len(asked))
	for _, rule := range asked {
		missing[semantics.Fold(rule.Name)] = rule
	}
	var differences []*sidebusv1.Difference
	token := ""
	for unasked := 0; unasked < semantics.MaxPageSize; {
		rules, next, err := a.broker.ListRules(ctx, subscription, 0, token)
		if err != nil {
			return nil, err
		}
		for _, present := range rules {
			name := semantics.Fold(present.Name)
			wanted, isAsked := missing[name]
			delete(missing, name)
			is, want := ruleText(present), ""
			if isAsked {
				want = ruleText(wanted)
			} else {
				unasked++
			}
			if is != want {
				differences = append(differences, ruleDifference(present.Name, is, want))
			}
		}
		if token = next; token == "" {
			break
		}
	}
	if token == "" {
		for _, rule := range asked {
			if _, ok := missing[semantics.Fold(rule.Name)]; ok {
				differences = append(differences, ruleDifference(rule.Name, "", ruleText(rule)))
			}
		}
	}
	return differences, nil
}

func ruleDifference(name, present, asked string) *sidebusv1.Difference {
	return &sidebusv1.Difference{Option: "rules[" + name + "]", Present: present, Asked: asked}
}

// CreateRule adds a rule to a subscription; see broker.Broker.CreateRule.
func (a *Admin) CreateRule(ctx context.Context, request *sidebusv1.CreateRuleRequest) (*sidebusv1.Rule, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	subscription, err := pathOf(semantics.SubscriptionKind, "subscription", request.GetSubscription())
	if err != nil {
		return nil, err
	}
	rule, err := wire.RuleOf(request.GetRule())
	if err != nil {
		return nil, err
	}
	made, warnings, err := a.broker.CreateRule(ctx, subscription, rule)
	if err != nil {
		return nil, err
	}
	return wire.RuleFrom(made, warnings...), nil
}

// GetRule reads a rule; see broker.Broker.GetRule.
func (a *Admin) GetRule(ctx context.Context, request *sidebusv1.GetRuleRequest) (*sidebusv1.Rule, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	subscription, name, err := rulePath("name", request.GetName())
	if err != nil {
		return nil, err
	}
	rule, err := a.broker.GetRule(ctx, subscription, name)
	if err != nil {
		return nil, err
	}
	return wire.RuleFrom(rule), nil
}

// ListRules returns one page of a subscription's rules; see broker.Broker.ListRules.
func (a *Admin) ListRules(
	ctx context.Context, request *sidebusv1.ListRulesRequest,
) (*sidebusv1.ListRulesResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	subscription, err := pathOf(semantics.SubscriptionKind, "subscription", request.GetSubscription())
	if err != nil {
		return nil, err
	}
	rules, next, err := a.broker.ListRules(ctx, subscription, int(request.GetPageSize()), request.GetPageToken())
	if err != nil {
		return nil, err
	}
	response := &sidebusv1.ListRulesResponse{Rules: make([]*sidebusv1.Rule, len(rules)), NextPageToken: next}
	for i, rule := range rules {
		response.Rules[i] = wire.RuleFrom(rule)
	}
	return response, nil
}

// DeleteRule removes a rule; see broker.Broker.DeleteRule.
func (a *Admin) DeleteRule(
	ctx context.Context, request *sidebusv1.DeleteRuleRequest,
) (*sidebusv1.DeleteRuleResponse, error) {
	if err := wire.RefuseUnknown("request", request); err != nil {
		return nil, err
	}
	subscription, name, err := rulePath("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if err := a.broker.DeleteRule(ctx, subscription, name); err != nil {
		return nil, err
	}
	return &sidebusv1.DeleteRuleResponse{}, nil
}
