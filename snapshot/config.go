package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/pelletier/go-toml/v2"
)

// Config is the file .bole/config.toml. Unknown keys are refused, so that a
// spelling mistake does not pass for a setting.
type Config struct {
	Core CoreConfig `toml:"core"`
	User UserConfig `toml:"user"`
}

// CoreConfig is what init decided about the repository.
type CoreConfig struct {
	// Bare repositories have no working directory.
	Bare bool `toml:"bare,omitempty"`
	// Shared repositories give their group write permission.
	Shared bool `toml:"shared,omitempty"`
	// Contents is an absolute folder that holds packs and whole files; empty: .bole/contents.
	Contents string `toml:"contents,omitempty"`
	// NodeStore names the node store; only "lmdb" is known.
	NodeStore string `toml:"node_store"`
}

// UserConfig names the author of commits.
type UserConfig struct {
	Name  string `toml:"name,omitempty"`
	Email string `toml:"email,omitempty"`
}

// ErrUnknownKey is returned for a configuration key that does not exist.
var ErrUnknownKey = errors.New("unknown configuration key")

// ConfigKeys lists the keys that `bole config` reads; those of core are fixed by init.
func ConfigKeys() []string {
	return []string{"core.bare", "core.contents", "core.node_store", "core.shared", "user.email", "user.name"}
}

// Get returns the value of a key as text, "" when it is not set.
func (c *Config) Get(key string) (string, error) {
	switch key {
	case "core.bare":
		return fmt.Sprint(c.Core.Bare), nil
	case "core.shared":
		return fmt.Sprint(c.Core.Shared), nil
	case "core.contents":
		return c.Core.Contents, nil
	case "core.node_store":
		return c.Core.NodeStore, nil
	case "user.name":
		return c.User.Name, nil
	case "user.email":
		return c.User.Email, nil
	}
	return "", fmt.Errorf("%q: %w (known: %s)", key, ErrUnknownKey, strings.Join(ConfigKeys(), ", "))
}

// Set changes a user setting; the keys of core cannot be changed after init.
func (c *Config) Set(key, value string) error {
	if strings.ContainsAny(value, "\n\x00<>") {
		return fmt.Errorf("%s: a value holds no newline, NUL, '<' or '>'", key)
	}
	switch key {
	case "user.name":
		c.User.Name = value
	case "user.email":
		c.User.Email = value
	default:
		if _, err := c.Get(key); err != nil {
			return err
		}
		return fmt.Errorf("%s was decided by init and cannot be changed", key)
	}
	return nil
}

// ReadConfig reads a configuration file; a missing one is an empty Config.
func ReadConfig(path string) (Config, error) {
	var c Config
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("read configuration: %w", err)
	}
	d := toml.NewDecoder(bytes.NewReader(b)).DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("configuration %s: %w", path, err)
	}
	return c, nil
}

// WriteConfig replaces a configuration file in one step (temporary file, fsync, rename).
func WriteConfig(path string, c Config) error {
	b, err := toml.Marshal(c)
	if err != nil {
		return fmt.Errorf("encode configuration: %w", err)
	}
	if err := renameio.WriteFile(path, b, 0o644); err != nil {
		return fmt.Errorf("write configuration: %w", err)
	}
	return nil
}

// UserConfigPath is the configuration of the user, read beneath that of the repository.
func UserConfigPath() (string, error) {
	d, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the user's configuration folder: %w", err)
	}
	return filepath.Join(d, "bole", "config.toml"), nil
}
