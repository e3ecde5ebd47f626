package filter

// Report is an Explanation without the copy, as JSON. The command line and the console show it.
type Report struct {
	Matches bool           `json:"matches"`
	Failure string         `json:"failure,omitempty"`
	Steps   []ReportStep   `json:"steps"`
	Changes []ReportChange `json:"changes"`
}

// ReportStep is a Step of a Report.
type ReportStep struct {
	Depth   int          `json:"depth"`
	Text    string       `json:"text"`
	Outcome string       `json:"outcome"`
	Failure string       `json:"failure,omitempty"`
	Seen    []ReportSeen `json:"seen"`
}

// ReportSeen is a property that a step has read, and its value as text.
type ReportSeen struct {
	Property string `json:"property"`
	Value    string `json:"value"`
}

// ReportChange is a Change of a Report, with the values as text.
type ReportChange struct {
	Statement string `json:"statement"`
	Property  string `json:"property"`
	Before    string `json:"before"`
	After     string `json:"after"`
}

// Report returns the explanation as JSON. Its lists are never nil.
func (e *Explanation) Report() Report {
	r := Report{Matches: e.Matches, Failure: errorText(e.Failure), Steps: []ReportStep{}, Changes: []ReportChange{}}
	for _, s := range e.Steps {
		step := ReportStep{
			Depth: s.Depth, Text: s.Text, Outcome: s.Truth.String(), Failure: errorText(s.Err), Seen: []ReportSeen{},
		}
		for _, seen := range s.Seen {
			step.Seen = append(step.Seen, ReportSeen{seen.Property, seen.String()})
		}
		r.Steps = append(r.Steps, step)
	}
	for _, c := range e.Changes {
		r.Changes = append(r.Changes, ReportChange{c.Statement, c.Before.Property, c.Before.String(), c.After.String()})
	}
	return r
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
