package verbs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/settings"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/terminal"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
	"github.com/sidebus/sidebus/semantics"
)

type entityApplyCommand struct {
	File string `name:"file" short:"f" required:"" placeholder:"FILE" help:"Entities and rules as YAML or JSON, or Config.json of the Service Bus emulator. - reads stdin."`

	DryRun bool `name:"dry-run" help:"Show what would be changed and change nothing. The exit code is 1 if there is something to change."`
	progressFlag

	Update bool `name:"update" help:"Also change options and rules that differ."`

	clientSettings
}

// Run makes what a file has and the sidecar has not, after it has shown what that is.
func (e *entityApplyCommand) Run(ctx context.Context, to terminal.Streams, from *settings.Sources) error {
	return e.operate(ctx, to, func(ctx context.Context, o *operator) error {
		set, err := e.read(ctx, o, from)
		if err != nil {
			return err
		}
		if err := set.Check(ctx); err != nil {
			return err
		}
		for _, note := range set.Notes {
			o.note("%s", client.OneLine(note))
		}
		plan, err := e.plan(ctx, o, set)
		if err != nil {
			return err
		}
		return e.carryOut(ctx, o, plan)
	})
}

func (e *entityApplyCommand) read(ctx context.Context, o *operator, from *settings.Sources) (*entities.Set, error) {
	open := func() (yamlfile.Node, error) { return yamlfile.Read("--file", e.File) }
	if e.File == "-" {
		open = func() (yamlfile.Node, error) { return yamlfile.Load("stdin", o.Stdin) }
	}
	top, err := await(ctx, open)
	if err != nil {
		return nil, err
	}
	return entities.Read(top, from.IsSetting)
}

// api is the management of the sidecar with patience for its rate limit, which a large file would else break on.
func (o *operator) api() sidebusv1.AdminClient {
	return sidebusv1.NewAdminClient(
		client.Patient(o.Conn(), func(f *client.Failure) bool { return f.Reason == semantics.Throttled }),
	)
}

// plan compares the file with the sidecar and shows the result.
func (e *entityApplyCommand) plan(ctx context.Context, o *operator, set *entities.Set) (*entities.Plan, error) {
	reading := o.progress(e.progressFlag, "read", "answer", 0)
	plan, err := set.Plan(ctx, o.api(), func(n, of int) {
		reading.total = int64(of)
		reading.tell(int64(n))
	})
	reading.end()
	if err != nil {
		return nil, err
	}
	if e.Update {
		if err := errors.Join(plan.Immutable()...); err != nil {
			return nil, fmt.Errorf("%w\nnothing was changed", err)
		}
	}
	if o.asJSON {
		return plan, nil
	}
	for _, change := range plan.Changes {
		for _, line := range changeLines(change) {
			if err := o.say("%s", line); err != nil {
				return nil, err
			}
		}
	}
	if plan.Unchanged > 0 {
		if err := o.say("= %d unchanged", plan.Unchanged); err != nil {
			return nil, err
		}
	}
	if plan.Others > 0 {
		return plan, o.say("%s", othersText(plan.Others))
	}
	return plan, o.flush()
}

func othersText(n int) string {
	if n == 1 {
		return "1 other entity is not in the file"
	}
	return fmt.Sprintf("%d other entities are not in the file", n)
}

// changeLines show what is to be done with one entity.
func changeLines(c *entities.Change) []string {
	what := fmt.Sprintf("%s %s", client.Kind(c.Entity.Resource), shortName(c.Entity.Resource))
	if c.IsNew {
		return []string{"+ " + what + givenText(c)}
	}
	var lines []string
	for _, d := range c.Options {
		line := fmt.Sprintf("~ %s: %s %s -> %s", what, d.Option, valueText(d.Present), valueText(d.Asked))
		if semantics.Immutable(d.Option) {
			line += " (set at creation only)"
		}
		lines = append(lines, line)
	}
	for _, r := range c.Rules {
		rule := fmt.Sprintf("rule %s/rules/%s: ", shortName(c.Entity.Resource), client.OneLine(r.Name()))
		switch {
		case r.Present == nil:
			lines = append(lines, "+ "+rule+client.RuleText(r.Asked))
		case r.Asked == nil:
			lines = append(lines, "- "+rule+client.RuleText(r.Present))
		default:
			lines = append(lines, "~ "+rule+client.RuleText(r.Present)+" -> "+client.RuleText(r.Asked))
		}
	}
	return lines
}

// shortName is the name of an entity whose kind stands before it.
func shortName(resource string) string {
	if client.Kind(resource) == semantics.TopicKind {
		return strings.TrimPrefix(resource, "topics/")
	}
	return client.Name(resource)
}

// valueText shows the value of an option.
func valueText(value string) string {
	if value == "" {
		return `""`
	}
	return client.Brief(value)
}

// givenText shows with which options, where they are not the defaults, and with which rules an entity is created.
func givenText(c *entities.Change) string {
	var given []string
	e := c.Entity
	for _, option := range c.Unusual {
		given = append(given, option+" "+valueText(client.OptionValue(e.Description, option)))
	}
	var rules []string
	for _, rule := range e.Rules() {
		rules = append(rules, rule.GetName())
	}
	switch {
	case len(rules) == 1:
		given = append(given, "rule "+rules[0])
	case len(rules) > 1:
		given = append(given, "rules "+strings.Join(rules, " "))
	case e.HasRules:
		given = append(given, "no rules")
	}
	if len(given) == 0 {
		return ""
	}
	return " (" + strings.Join(given, ", ") + ")"
}

// applied is what was done, or with dryRun what would be. It is also the JSON of the answer.
type applied struct {
	DryRun      bool                `json:"dryRun"`
	Created     []string            `json:"created"`
	Updated     []string            `json:"updated"`
	Differences []appliedDifference `json:"differences"` // that remain
	Unchanged   int                 `json:"unchanged"`
	Others      int                 `json:"others"`

	differing int // entities that differ still
}

// appliedDifference is an option, or a rule as "rules[name]", that is not as the file has it. A rule that there is not
// has no text.
type appliedDifference struct {
	Resource string `json:"resource"`
	Option   string `json:"option"`
	Present  string `json:"present"`
	Asked    string `json:"asked"`
}

// take notes what came of one entity.
func (a *applied) take(c entities.Change) {
	differences := a.differences(&c)
	switch {
	case c.IsNew:
		a.Created = append(a.Created, c.Entity.Resource)
	case len(differences) == 0:
		a.Updated = append(a.Updated, c.Entity.Resource)
	default:
		a.Differences = append(a.Differences, differences...)
		a.differing++
	}
}

func (a *applied) differences(c *entities.Change) []appliedDifference {
	var all []appliedDifference
	for _, d := range c.Options {
		all = append(all, appliedDifference{c.Entity.Resource, d.Option, d.Present, d.Asked})
	}
	for _, r := range c.Rules {
		d := appliedDifference{Resource: c.Entity.Resource, Option: "rules[" + r.Name() + "]"}
		if r.Present != nil {
			d.Present = client.RuleText(r.Present)
		}
		if r.Asked != nil {
			d.Asked = client.RuleText(r.Asked)
		}
		all = append(all, d)
	}
	return all
}

// carryOut runs the plan and returns what was done, also after a failure.
func (e *entityApplyCommand) carryOut(ctx context.Context, o *operator, plan *entities.Plan) error {
	done := &applied{
		DryRun: e.DryRun, Created: []string{}, Updated: []string{}, Differences: []appliedDifference{},
		Unchanged: plan.Unchanged, Others: plan.Others,
	}
	var err error
	if e.DryRun {
		for _, change := range plan.Changes {
			if e.Update && !change.IsNew {
				change = &entities.Change{Entity: change.Entity}
			}
			done.take(*change)
		}
	} else {
		working, n := o.progress(e.progressFlag, "created or changed", "entity", int64(len(plan.Changes))), int64(0)
		err = plan.CarryOut(ctx, o.api(), e.Update, func(c entities.Change) {
			n++
			done.take(c)
			working.tell(n)
		})
		working.end()
	}
	if told := done.tell(o, e.File); told != nil {
		return errors.Join(err, told)
	}
	if err != nil {
		return fmt.Errorf("%w; the rest of the file was not applied, so apply the file again", err)
	}
	return done.verdict(e)
}

// tell says what was done.
func (a *applied) tell(o *operator, file string) error {
	if o.asJSON {
		encoder := json.NewEncoder(o.out)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(a)
	}
	created, updated := client.Count(len(a.Created), "entity"), client.Count(len(a.Updated), "entity")
	switch {
	case a.DryRun:
		return nil
	case len(a.Created) > 0 && len(a.Updated) > 0:
		return o.say("created %s, updated %s", created, updated)
	case len(a.Created) > 0:
		return o.say("created %s", created)
	case len(a.Updated) > 0:
		return o.say("updated %s", updated)
	case a.differing == 0 && a.Unchanged == 0:
		return o.say("%s has no entities; nothing to do", file)
	default:
		return nil
	}
}

// verdict is a failure when not all is as the file says.
func (a *applied) verdict(e *entityApplyCommand) error {
	switch {
	case a.DryRun && len(a.Created)+len(a.Updated)+a.differing > 0:
		return errors.New("nothing was changed: this is a dry run")
	case a.differing == 0:
		return nil
	case e.Update:
		return fmt.Errorf("%s: another client created it meanwhile; apply the file again", differText(a.differing))
	default:
		return fmt.Errorf("%s; --update changes what can be changed", differText(a.differing))
	}
}

func differText(n int) string {
	if n == 1 {
		return "1 entity differs from the file and was not changed"
	}
	return fmt.Sprintf("%d entities differ from the file and were not changed", n)
}
