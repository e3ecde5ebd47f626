package account

import "github.com/sidebus/sidebus/semantics"

// Group is what is settled together: messages of one session, or of none.
type Group struct {
	Source semantics.Source
	Tokens []semantics.LockToken
	Places []int // of the tokens in the call

	unsettled []*message // those of the tokens that are unsettled
}

// newGroup returns a group for at most n tokens. Without sessions, most are in it.
func (a *Account) newGroup(source semantics.Source, n int) Group {
	if a.BySession {
		return Group{Source: source}
	}
	return Group{
		Source: source, Tokens: make([]semantics.LockToken, 0, n), Places: make([]int, 0, n),
		unsettled: make([]*message, 0, n),
	}
}

// add takes a message into the group; m is nil for one that is not unsettled here.
func (g *Group) add(t semantics.LockToken, m *message) {
	g.Tokens = append(g.Tokens, t)
	if m != nil {
		m.settling++
		g.unsettled = append(g.unsettled, m)
	}
}

// doubt is a settlement whose answer was lost, so that it is not known whether it took effect (ERR-6).
type doubt struct {
	source semantics.Source
	verb   semantics.Settlement
}

// Doubt is such a settlement with all messages that it is to be repeated for.
type Doubt struct {
	Group
	Verb semantics.Settlement
}

// Settling finds out where messages are to be settled, and returns the codes of those that cannot be settled anywhere.
// Settled must be called for each group.
func (a *Account) Settling(tokens []semantics.LockToken) ([]semantics.Code, []Group) {
	a.mu.Lock()
	defer a.mu.Unlock()
	codes, groups, at := make([]semantics.Code, len(tokens)), []Group{}, map[semantics.Source]int{}
	var g *Group
	for i, t := range tokens {
		source, m := a.Source, a.unsettled[t]
		switch {
		case m != nil:
			source = m.source
		case a.gone.has(t):
			codes[i] = semantics.SessionLockLost
			continue
		case a.BySession:
			codes[i] = semantics.MessageLockLost
			continue
		default: // it may have been received by a call
		}
		if g == nil || g.Source != source { // most are of the same as the one before
			if _, ok := at[source]; !ok {
				at[source] = len(groups)
				groups = append(groups, a.newGroup(source, len(tokens)-i))
			}
			g = &groups[at[source]]
		}
		g.add(t, m)
		g.Places = append(g.Places, i)
	}
	return codes, groups
}

// Settled notes the outcome of a group's settlement.
func (a *Account) Settled(g Group, verb semantics.Settlement, codes []semantics.Code, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range g.unsettled {
		m.settling--
	}
	what := &doubt{source: g.Source, verb: verb}
	if err != nil {
		if semantics.IsOutcomeUnknown(err) {
			for _, m := range g.unsettled {
				m.doubt = what
			}
		}
		return
	}
	for i, code := range codes {
		switch code {
		case "", semantics.DurabilityNotMet, semantics.MessageLockLost:
			a.drop(g.Tokens[i])
		case semantics.SessionLockLost:
			if p := a.sessions[g.Source.SessionLock]; p != nil {
				p.lose()
			}
		case semantics.StoreUnavailable: // of a partition whose server is away (PART-7)
			if m := a.unsettled[g.Tokens[i]]; m != nil {
				m.doubt = what
			}
		default: // the lock holds, so there is nothing in doubt
			if m := a.unsettled[g.Tokens[i]]; m != nil {
				m.doubt = nil
			}
		}
	}
	a.freed()
}

// Doubts returns the settlements in doubt whose messages no call is settling now. Settled must be called for each.
func (a *Account) Doubts() []Doubt {
	a.mu.Lock()
	defer a.mu.Unlock()
	var doubts []Doubt
	at := map[*doubt]int{}
	for token, m := range a.unsettled {
		if m.doubt == nil || m.settling > 0 {
			continue
		}
		if _, ok := at[m.doubt]; !ok {
			at[m.doubt] = len(doubts)
			doubts = append(doubts, Doubt{Group: Group{Source: m.doubt.source}, Verb: m.doubt.verb})
		}
		doubts[at[m.doubt]].add(token, m)
	}
	return doubts
}

// goneTokens are the tokens of the last MaxCredits messages that the client had not settled when their sessions ended.
type goneTokens struct {
	order []semantics.LockToken
	set   map[semantics.LockToken]bool
}

func (g *goneTokens) add(t semantics.LockToken) {
	if g.set == nil {
		g.set = map[semantics.LockToken]bool{}
	}
	if len(g.order) == MaxCredits {
		delete(g.set, g.order[0])
		g.order = g.order[1:]
	}
	g.order, g.set[t] = append(g.order, t), true
}

func (g *goneTokens) has(t semantics.LockToken) bool { return g.set[t] }
