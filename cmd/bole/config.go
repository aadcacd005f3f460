package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newConfigCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "read and change settings",
		Long: `Reads and changes settings. Those of a repository lie in .bole/config.toml and come
before those of the user (--user), which lie in the user's configuration folder.

Keys: user.name and user.email are the author of commits. The keys of core were
decided by init and can only be read.`,
		Example: `  bole config set --user user.name "Ada Lovelace"
  bole config set --user user.email ada@example.org
  bole config get user.name
  bole config list`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return usagef("config needs get, set or list") },
	}
	cmd.AddCommand(newConfigGetCmd(a), newConfigSetCmd(a), newConfigListCmd(a))
	for _, c := range cmd.Commands() {
		c.Flags().Bool("user", false, "the user's settings, not the repository's")
	}
	return cmd
}

// configPath is the file that --user and the current folder choose.
func (a *app) configPath(cmd *cobra.Command) (string, error) {
	user, err := cmd.Flags().GetBool("user")
	if err != nil {
		return "", err
	}
	if user {
		return snapshot.UserConfigPath()
	}
	root, err := a.findRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, snapshot.DirName, "config.toml"), nil
}

// readSettings reads the chosen file and, without --user, the user's beneath it.
func (a *app) readSettings(cmd *cobra.Command) (layers []snapshot.Config, err error) {
	path, err := a.configPath(cmd)
	if err != nil {
		return nil, err
	}
	paths := []string{path}
	if user, err := snapshot.UserConfigPath(); err == nil && user != path {
		paths = append(paths, user)
	}
	for _, p := range paths {
		c, err := snapshot.ReadConfig(p)
		if err != nil {
			return nil, err
		}
		layers = append(layers, c)
	}
	return layers, nil
}

// setting is the value of a key in the first layer that has one.
func setting(layers []snapshot.Config, key string) (value string, err error) {
	for i := range layers {
		if value, err = layers[i].Get(key); err != nil || value != "" {
			return value, err
		}
	}
	return "", nil
}

func newConfigGetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "get KEY",
		Short:   "print a setting",
		Long:    "Prints a setting. Exit code 1 when it is not set.",
		Example: "  bole config get user.name",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			layers, err := a.readSettings(cmd)
			if err != nil {
				return err
			}
			v, err := setting(layers, args[0])
			if err != nil {
				return err
			}
			if v == "" {
				return fmt.Errorf("%s is not set", args[0])
			}
			fmt.Fprintln(a.out, v)
			return nil
		},
	}
}

func newConfigSetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "set KEY VALUE",
		Short: "change a setting",
		Long:  "Changes a setting of the repository, or with --user of the user. An empty VALUE unsets it.",
		Example: `  bole config set user.name "Ada Lovelace"
  bole config set --user user.email ada@example.org`,
		Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			path, err := a.configPath(cmd)
			if err != nil {
				return err
			}
			c, err := snapshot.ReadConfig(path)
			if err != nil {
				return err
			}
			if err := c.Set(args[0], args[1]); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return fmt.Errorf("make configuration folder: %w", err)
			}
			return snapshot.WriteConfig(path, c)
		},
	}
}

func newConfigListCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "print all settings",
		Long:    "Prints all settings that are set, one KEY=VALUE a line.",
		Example: "  bole config list\n  bole config list --json",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			layers, err := a.readSettings(cmd)
			if err != nil {
				return err
			}
			all := map[string]string{}
			for _, key := range snapshot.ConfigKeys() {
				if len(layers) == 1 && strings.HasPrefix(key, "core.") {
					continue // init's decisions are a repository's
				}
				v, err := setting(layers, key)
				if err != nil {
					return err
				}
				if v == "" {
					continue
				}
				all[key] = v
				if !asJSON {
					fmt.Fprintf(a.out, "%s=%s\n", key, v)
				}
			}
			if asJSON {
				return a.printJSON(map[string]any{"settings": all})
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
