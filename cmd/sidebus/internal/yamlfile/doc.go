// Package yamlfile reads files of settings in YAML or JSON, and whatever is wrong with them it says where.
package yamlfile
