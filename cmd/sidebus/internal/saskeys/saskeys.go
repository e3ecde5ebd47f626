// Package saskeys reads the rules of shared access from a file, and again when it changes.
package saskeys

import (
	"fmt"
	"log/slog"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/reread"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
	"github.com/sidebus/sidebus/proxy/access"
)

// Open reads the rules of shared access from a file, and returns a function that returns them as the file has them now.
// It returns nil for no file.
func Open(path string, logger *slog.Logger) (access.SAS, error) {
	if path == "" {
		return nil, nil
	}
	current, err := reread.Open("the file of shared access keys", logger, func(access.Keys) (access.Keys, []string, error) {
		keys, err := read(path)
		return keys, []string{path}, err
	})
	return access.SAS(current), err
}

// read reads rules from YAML: a mapping of their names. An error names the place and no key.
func read(path string) (access.Keys, error) {
	top, err := yamlfile.Read("--sas-keys-file", path)
	if err != nil {
		return nil, err
	}
	if top.IsNull() {
		return nil, fmt.Errorf("--sas-keys-file: %s has no rules, so no client could do anything; add a rule", path)
	}
	rules, err := top.Mapping("rules by their names", func(string) (bool, string) { return true, "" })
	if err != nil {
		return nil, err
	}
	keys := access.Keys{}
	for _, rule := range rules {
		key, err := readKey(rule)
		if err != nil {
			return nil, err
		}
		if err := key.Check(rule.Key); err != nil {
			return nil, rule.Errorf("%s", err.Error())
		}
		keys[rule.Key] = key
	}
	return keys, nil
}

func readKey(rule yamlfile.Node) (access.Key, error) {
	var key access.Key
	fields, err := rule.Mapping(
		"primaryKey, claims and so on", yamlfile.OneOf("primaryKey", "secondaryKey", "claims", "entity"),
	)
	if err != nil {
		return key, err
	}
	texts := map[string]*string{"primaryKey": &key.Primary, "secondaryKey": &key.Secondary, "entity": &key.Entity}
	for _, field := range fields {
		if to := texts[field.Key]; to != nil {
			if *to, err = field.Plain(); err != nil {
				return key, err
			}
			continue
		}
		claims, err := field.List("claims")
		if err != nil {
			return key, err
		}
		for _, claim := range claims {
			text, err := claim.Plain()
			if err != nil {
				return key, err
			}
			one, err := access.ParseClaim(text)
			if err != nil {
				return key, claim.Errorf("%s", err.Error())
			}
			key.Claims |= one
		}
	}
	return key, nil
}
