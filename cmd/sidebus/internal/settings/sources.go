package settings

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sidebus/sidebus/cmd/sidebus/internal/entities"
	"github.com/sidebus/sidebus/cmd/sidebus/internal/yamlfile"
)

// HandlersKey is the part of the file that says where the app is called.
const HandlersKey = "handlers"

// Sources returns the values of flags that are not on the command line: the environment first, then the file. The
// parser would rank them the other way round, so both are looked up here.
type Sources struct {
	file     map[string]entry
	Handlers *yamlfile.Node    // from the file alone, as it stands there
	Entities *entities.Set     // from the file alone
	Warnings []string          // about variables that are not settings
	settings map[string]bool   // all keys that the file may have
	places   map[string]string // of the values that were used, by flag
}

// Validate does nothing: load has checked the file.
func (s *Sources) Validate(*kong.Application) error { return nil }

// Resolve returns the value of one flag as text, nil when neither source has it. A value that does not fit the flag is
// an error that names where it stands.
func (s *Sources) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if len(flag.Envs) == 0 {
		return nil, nil //nolint:nilnil // the parser's way to say "not here"
	}
	variable := flag.Envs[0]
	if value := os.Getenv(variable); value != "" {
		return s.use(flag, entry{value: value, place: variable})
	}
	if found, ok := s.file[flag.Name]; ok {
		return s.use(flag, found)
	}
	if _, isSet := os.LookupEnv(variable); isSet && flag.HasDefault {
		return flag.Default, nil // an empty variable counts as not set
	}
	return nil, nil //nolint:nilnil // the parser's way to say "not here"
}

// Load reads the file that --config or its variable names. It runs between the flags and the rest.
func (s *Sources) Load(command *kong.Context) error {
	flags, sections := fileKeys(), map[string]section{
		HandlersKey: func(n yamlfile.Node) error {
			s.Handlers = &n // only serve knows what a handler has
			return nil
		},
		entities.Key: func(n yamlfile.Node) (err error) {
			s.Entities, err = entities.Section(n)
			return err
		},
	}
	s.settings = maps.Clone(flags)
	for key := range sections {
		s.settings[key] = true
	}
	path := configPath(command)
	if path == "" {
		return nil
	}
	var err error
	s.file, err = loadFile(path, flags, sections)
	return err
}

// IsSetting reports whether the file of serve may have a key.
func (s *Sources) IsSetting(key string) bool {
	return s.settings[key]
}

func configPath(command *kong.Context) string {
	for _, flag := range command.Flags() {
		if flag.Name != "config" {
			continue
		}
		if path, ok := command.FlagValue(flag).(string); ok && path != "" {
			return path
		}
		return os.Getenv(flag.Envs[0])
	}
	return ""
}

// fileKeys are the flags of serve, whatever verb runs: all verbs may share one file.
func fileKeys() map[string]bool {
	values := map[string]string{}
	collect(reflect.ValueOf(Settings{}), values)
	keys := map[string]bool{}
	for name := range values {
		keys[name] = name != "config"
	}
	return keys
}

func (s *Sources) use(flag *kong.Flag, found entry) (any, error) {
	if s.places == nil {
		s.places = map[string]string{}
	}
	s.places[flag.Name] = found.place
	return found.value, checkFits(flag, found.value, found.place)
}

// Given are all values that may stand in an error: of the command line, of the environment, and of the file as far as
// it was read.
func (s *Sources) Given(args []string) []string {
	all := slices.Clone(args)
	for _, variable := range os.Environ() {
		if name, value, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "SIDEBUS_") {
			all = append(all, value)
		}
	}
	for _, found := range s.file {
		all = append(all, found.value)
	}
	return all
}

// IsOnCommandLine reports whether the value of a flag came from there, of a flag that has no default of the same value.
func (s *Sources) IsOnCommandLine(flag string) bool { return s.places[flag] == "" }

// Locate adds to a complaint about a setting where its value stands, unless that is the command line.
func (s *Sources) Locate(err error) error {
	var setting *badSetting
	if errors.As(err, &setting) && s.places[setting.flag] != "" {
		return fmt.Errorf("%s: %w", s.places[setting.flag], err)
	}
	return err
}

// checkFits tries a value on a flag, because the parser's own complaint would not say where the value stands.
func checkFits(flag *kong.Flag, value, place string) error {
	trial := reflect.New(flag.Target.Type()).Elem()
	scan := kong.ScanFromTokens(kong.Token{Type: kong.FlagValueToken, Value: value})
	if err := flag.Mapper.Decode(&kong.DecodeContext{Value: flag.Value, Scan: scan}, trial); err != nil {
		return fmt.Errorf("%s: %s", place, strings.TrimSuffix(err.Error(), " (string)"))
	}
	return nil
}
