// Package policy reads the policy file: who may do what (AUTH-4).
package policy

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/reread"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/proxy/access"
)

const flag = "--policy-file"

// Limits of a policy.
const (
	maxIdentities = 10_000
	minToken      = 16      // characters
	maxToken      = 4 << 10 // bytes of a file with a token
)

// Authorizer returns the Authorizer of a policy file and of shared access rules, both of which may be missing. keys are
// the rules, nil for none. The file is read again when it, or a file with a token, changes.
func Authorizer(path string, keys access.SAS, logger *slog.Logger) (access.Authorizer, error) {
	switch {
	case path == "" && keys == nil:
		return access.AllowAll{}, nil
	case path == "":
		return keys, nil
	}
	current, err := reread.Open("the policy", logger, func(before *access.Policy) (*access.Policy, []string, error) {
		identities, files, err := read(path)
		if err != nil {
			return nil, files, err
		}
		return access.NewPolicy(identities, keys, before), files, nil
	})
	if err != nil {
		return nil, err
	}
	return access.Policies(current), nil
}

// read reads a policy, and returns all files that it has tried to read, also with an error.
func read(path string) ([]access.Identity, []string, error) {
	r := &reader{folder: filepath.Dir(path), files: []string{path}, places: map[string]string{}}
	identities, err := r.identities(path)
	return identities, r.files, err
}

// reader reads the identities of one file.
type reader struct {
	folder string // relative paths begin here
	files  []string
	places map[string]string // of the identities, by their names
}

func (r *reader) identities(path string) ([]access.Identity, error) {
	top, err := yamlfile.Read(flag, path)
	if err != nil {
		return nil, err
	}
	fields, err := top.Mapping("identities", yamlfile.OneOf("identities"))
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, fmt.Errorf("%s: %s has no identities, so no caller could do anything; add one", flag, path)
	}
	rows, err := fields[0].List("identities")
	if err != nil {
		return nil, err
	}
	if len(rows) > maxIdentities {
		return nil, fields[0].Errorf("has %d identities, at most %d are allowed", len(rows), maxIdentities)
	}
	identities := make([]access.Identity, len(rows))
	for i, row := range rows {
		if identities[i], err = r.identity(row); err != nil {
			return nil, err
		}
	}
	return identities, nil
}

func (r *reader) identity(row yamlfile.Node) (access.Identity, error) {
	var identity access.Identity
	fields, err := row.Mapping("name, grants and so on", yamlfile.OneOf(
		"name", "uids", "certificates", "tokenFiles", "sasRules", "handlers", "grants",
	))
	if err != nil {
		return identity, err
	}
	for _, field := range fields {
		if err := r.field(&identity, field); err != nil {
			return identity, err
		}
	}
	before, isTwice := r.places[identity.Name]
	r.places[identity.Name] = row.Place
	switch {
	case identity.Name == "":
		return identity, row.Errorf("must have a name")
	case isTwice:
		return identity, row.Errorf("has the name %q, which the identity at %s has already", identity.Name, before)
	case len(identity.UIDs)+len(identity.Certificates)+len(identity.Tokens)+len(identity.SASRules) == 0 &&
		!identity.Handlers:
		return identity, row.Errorf("no caller can be it; add uids, certificates, tokenFiles, sasRules or handlers")
	}
	return identity, nil
}

func (r *reader) field(identity *access.Identity, field yamlfile.Node) error {
	switch field.Key {
	case "name":
		var err error
		identity.Name, err = nameOf(field)
		return err
	case "handlers":
		text, err := field.Plain()
		if err != nil {
			return err
		}
		if identity.Handlers, err = strconv.ParseBool(text); err != nil {
			return field.Errorf("is %q, must be true or false", text)
		}
		return nil
	case "grants":
		return each(field, func(item yamlfile.Node) error {
			grant, err := grantOf(item)
			identity.Grants = append(identity.Grants, grant)
			return err
		})
	}
	return each(field, func(item yamlfile.Node) error {
		text, err := item.Plain()
		if err != nil {
			return err
		}
		if text == "" {
			return item.Errorf("is empty")
		}
		switch field.Key {
		case "uids":
			uid, err := strconv.ParseUint(text, 10, 32)
			if err != nil {
				return item.Errorf("is %q, must be the number of a user", text)
			}
			identity.UIDs = append(identity.UIDs, int(uid)) //nolint:gosec // it has 32 bits
		case "certificates":
			identity.Certificates = append(identity.Certificates, text)
		case "sasRules":
			identity.SASRules = append(identity.SASRules, text)
		default:
			token, err := r.token(item, text)
			if err != nil {
				return err
			}
			identity.Tokens = append(identity.Tokens, token)
		}
		return nil
	})
}

// each calls do with the items of a list.
func each(list yamlfile.Node, do func(item yamlfile.Node) error) error {
	items, err := list.List(list.Key)
	if err != nil {
		return err
	}
	for _, item := range items {
		if err := do(item); err != nil {
			return err
		}
	}
	return nil
}

// nameOf reads the name of an identity, which log lines show.
func nameOf(field yamlfile.Node) (string, error) {
	text, err := field.Plain()
	if err == nil && (text == "" || len(text) > 128 || strings.ContainsFunc(text, isUnfit)) {
		err = field.Errorf("is %q, must have 1 to 128 characters, and no spaces", text)
	}
	return text, err
}

func isUnfit(c rune) bool { return c <= ' ' || c == 0x7f }

// token reads the file of a token. A relative path begins at the folder of the policy.
func (r *reader) token(item yamlfile.Node, path string) (access.Token, error) {
	if !filepath.IsAbs(path) {
		path = filepath.Join(r.folder, path)
	}
	r.files = append(r.files, path)
	data, err := os.ReadFile(path) //nolint:gosec // the operator names the file
	text := strings.TrimSpace(string(data))
	switch {
	case err != nil:
		return access.Token{}, item.Errorf("cannot be read: %s", err.Error())
	case len(data) > maxToken:
		return access.Token{}, item.Errorf("has a token of %d bytes, at most %d are allowed", len(data), maxToken)
	case len(text) < minToken:
		return access.Token{}, item.Errorf("has a token of %d characters, must have at least %d", len(text), minToken)
	case strings.ContainsFunc(text, isUnfit):
		return access.Token{}, item.Errorf("has a token with spaces or several lines")
	}
	return access.NewToken(text), nil
}

func grantOf(item yamlfile.Node) (access.Grant, error) {
	var grant access.Grant
	fields, err := item.Mapping("entities and claims", yamlfile.OneOf("entities", "claims"))
	if err != nil {
		return grant, err
	}
	for _, field := range fields {
		err := each(field, func(item yamlfile.Node) error {
			text, err := item.Plain()
			if err != nil {
				return err
			}
			if field.Key == "claims" {
				claim, err := access.ParseClaim(text)
				if err != nil {
					return item.Errorf("%s", err.Error())
				}
				grant.Claims |= claim
				return nil
			}
			pattern, err := access.ParsePattern(text)
			if err != nil {
				return item.Errorf("%s", err.Error())
			}
			grant.Entities = append(grant.Entities, pattern)
			return nil
		})
		if err != nil {
			return grant, err
		}
	}
	if len(grant.Entities) == 0 || grant.Claims == 0 {
		return grant, item.Errorf("must have entities and claims")
	}
	if grant.Claims&access.Manage != 0 && grant.Claims != access.Send|access.Listen|access.Manage {
		return grant, item.Errorf("has the claim Manage, so it must list Send and Listen too")
	}
	return grant, nil
}
