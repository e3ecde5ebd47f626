package verbs

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/cli"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/client"
	sidebusv1 "github.com/sidebus/sidebus/proto/sidebus/v1"
)

// ruleFlags describe a rule. One without a filter is not described.
type ruleFlags struct {
	SQL         string   `name:"sql" xor:"filter" placeholder:"SQL" help:"Select messages for which this SQL filter is true, such as \"color = 'red' AND sys.Label LIKE 'a%'\"."`
	Correlation []string `name:"correlation" xor:"filter" sep:"none" placeholder:"NAME[:TYPE]=VALUE" help:"Select messages with this value of an application property, such as color=red, or a system property, such as sys.Subject=hello. Can be repeated."`
	All         bool     `name:"all" xor:"filter" help:"Select every message."`
	None        bool     `name:"none" xor:"filter" help:"Select no message."`
	Action      string   `name:"action" placeholder:"SQL" help:"Change the copy of the message, such as \"SET priority = 1; REMOVE color\"."`
	Parameter   []string `name:"parameter" sep:"none" placeholder:"NAME[:TYPE]=VALUE" help:"Value of @NAME in the filter and the action. Can be repeated."`
}

// isGiven reports whether there is a filter.
func (r *ruleFlags) isGiven() bool { return r.SQL != "" || len(r.Correlation) > 0 || r.All || r.None }

// isEmpty reports whether nothing is given at all.
func (r *ruleFlags) isEmpty() bool { return !r.isGiven() && r.Action == "" && len(r.Parameter) == 0 }

// rule returns the rule that the flags describe.
func (r *ruleFlags) rule(name string) (*sidebusv1.Rule, error) {
	if !r.isGiven() {
		return nil, cli.Misuse("specify what the rule selects: --sql, --correlation, --all or --none")
	}
	parameters := map[string]*sidebusv1.Value{}
	if err := readValues("--parameter", r.Parameter, parameters); err != nil {
		return nil, err
	}
	for name := range parameters {
		if !uses(r.SQL, name) && !uses(r.Action, name) {
			return nil, cli.Misuse("--parameter %s is in neither --sql nor --action", name)
		}
	}
	rule := &sidebusv1.Rule{Name: name, Filter: &sidebusv1.Rule_Filter{}}
	switch {
	case r.SQL != "":
		rule.Filter.Kind = &sidebusv1.Rule_Filter_Sql{Sql: sqlOf(r.SQL, parameters)}
	case r.All:
		rule.Filter.Kind = &sidebusv1.Rule_Filter_All{All: &sidebusv1.Rule_All{}}
	case r.None:
		rule.Filter.Kind = &sidebusv1.Rule_Filter_None{None: &sidebusv1.Rule_None{}}
	default:
		correlation, err := r.correlation()
		if err != nil {
			return nil, err
		}
		rule.Filter.Kind = &sidebusv1.Rule_Filter_Correlation{Correlation: correlation}
	}
	if r.Action != "" {
		rule.Action = &sidebusv1.Rule_Action{Sql: sqlOf(r.Action, parameters)}
	}
	return rule, nil
}

// sqlOf returns an SQL text with those of the parameters that it uses.
func sqlOf(text string, parameters map[string]*sidebusv1.Value) *sidebusv1.Rule_Sql {
	sql := &sidebusv1.Rule_Sql{Expression: text}
	for name, value := range parameters {
		if uses(text, name) {
			if sql.Parameters == nil {
				sql.Parameters = map[string]*sidebusv1.Value{}
			}
			sql.Parameters[name] = value
		}
	}
	return sql
}

// uses reports whether an SQL text has a parameter, which has no case and may be named with its @.
func uses(text, parameter string) bool {
	return strings.Contains(strings.ToLower(text), "@"+strings.ToLower(strings.TrimPrefix(parameter, "@")))
}

// systemPrefix is before the names of the broker's properties, as in SQL.
const systemPrefix = "sys."

func (r *ruleFlags) correlation() (*sidebusv1.Rule_Correlation, error) {
	c := &sidebusv1.Rule_Correlation{}
	fields := map[string]**string{
		"contenttype": &c.ContentType, "correlationid": &c.CorrelationId, "messageid": &c.MessageId,
		"replyto":          &c.ReplyTo,
		"replytosessionid": &c.ReplyToSessionId, "sessionid": &c.SessionId, "subject": &c.Subject, "label": &c.Subject,
		"to": &c.To,
	}
	var properties []string
	for _, given := range r.Correlation {
		name, value, hasValue := strings.Cut(given, "=")
		if len(name) < len(systemPrefix) || !strings.EqualFold(name[:len(systemPrefix)], systemPrefix) {
			properties = append(properties, given)
			continue
		}
		field := fields[strings.ToLower(name[len(systemPrefix):])]
		switch {
		case field == nil || !hasValue:
			return nil, cli.Misuse(
				"--correlation %q must be sys.NAME=VALUE with ContentType, CorrelationId, MessageId, ReplyTo, "+
					"ReplyToSessionId, SessionId, Subject or To",
				given,
			)
		case *field != nil:
			return nil, cli.Misuse("--correlation %s appears twice", name)
		}
		*field = proto.String(value)
	}
	c.Properties = map[string]*sidebusv1.Value{}
	return c, readValues("--correlation", properties, c.Properties)
}

// readValues reads values of the form name[:type]=value. flag is the name they were given under.
func readValues(flag string, given []string, into map[string]*sidebusv1.Value) error {
	for _, text := range given {
		name, value, err := client.Property(text)
		if err != nil {
			return cli.Misuse("%s %w", flag, err)
		}
		if into[name] != nil {
			return cli.Misuse("%s %s appears twice", flag, name)
		}
		into[name] = value
	}
	return nil
}

// firstRule is the rule that a subscription is created with.
type firstRule struct {
	ruleFlags

	Rule string `name:"rule" default:"$$Default" placeholder:"NAME" help:"Name of the first rule of a subscription."`
}

// putInto adds the rule, if there is one, to the description of a subscription.
func (f *firstRule) putInto(d client.Description) error {
	if f.isEmpty() {
		return nil
	}
	subscription, ok := d.(*sidebusv1.Subscription)
	if !ok {
		return cli.Misuse("only a subscription has rules")
	}
	rule, err := f.rule(f.Rule)
	if err == nil {
		subscription.Rules = []*sidebusv1.Rule{rule}
	}
	return err
}
