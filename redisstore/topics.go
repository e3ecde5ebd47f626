package redisstore

import (
	"context"

	"github.com/sidebus/sidebus/semantics"
)

func (s *Store) CreateSubscription(ctx context.Context, path string, options semantics.Options, rules []semantics.Rule) (entity semantics.Entity, created bool, err error) {
	panic("not built")
}
func (s *Store) CreateRule(ctx context.Context, subscription string, rule semantics.Rule) (semantics.Rule, error) {
	panic("not built")
}
func (s *Store) GetRule(ctx context.Context, subscription, name string) (semantics.Rule, error) {
	panic("not built")
}
func (s *Store) ListRules(ctx context.Context, subscription, after string, limit int) (rules []semantics.Rule, more bool, err error) {
	panic("not built")
}
func (s *Store) DeleteRule(ctx context.Context, subscription, name string) error { panic("not built") }
func (s *Store) Routes(ctx context.Context, topic string) (semantics.Routes, error) {
	panic("not built")
}
func (s *Store) Publish(ctx context.Context, topic string, version int64, calls [][]semantics.Publication) []semantics.SendOutcome {
	panic("not built")
}
func (s *Store) Due(ctx context.Context, topic string, limit int) ([]*semantics.Received, error) {
	panic("not built")
}
func (s *Store) Activate(ctx context.Context, topic string, version int64, activations []semantics.Activation) error {
	panic("not built")
}
